/* SPDX-License-Identifier: MIT */
/*
 * sndfile.h - FLAC, Ogg Vorbis, Opus, MP3 and all else that libsndfile reads.
 *
 * sndfile_none.c stands in for sndfile.c in a build without libsndfile: all
 * files are bad then, and the message says why.
 */
#ifndef TSI_AUDIO_SNDFILE_H
#define TSI_AUDIO_SNDFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_sndfile;

struct tsi_sndfile_head {
	uint32_t rate, channels;
	uint64_t frames;
};

/* Was this built with libsndfile? */
bool tsi_sndfile_is_there(void);

/* For one thread, for one file after the other.  Fails with ENOMEM. */
int tsi_sndfile_create(struct tsi_sndfile **out);

/* NULL is allowed. */
void tsi_sndfile_destroy(struct tsi_sndfile *s);

/*
 * Open a file, whose len bytes live until it is closed.  Fails with EDATA; then
 * there is nothing to close.
 */
int tsi_sndfile_open(struct tsi_sndfile *s, const void *data, size_t len,
		     struct tsi_sndfile_head *out);

/* Nothing needs to be open. */
void tsi_sndfile_close(struct tsi_sndfile *s);

/* Go on with frame at.  Fails with EDATA. */
int tsi_sndfile_seek(struct tsi_sndfile *s, uint64_t at);

/* The next n frames; how many there were. */
size_t tsi_sndfile_read(struct tsi_sndfile *s, size_t n, float *to);

#endif
