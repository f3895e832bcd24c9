/* SPDX-License-Identifier: MIT */
/*
 * source.h - the frames of an audio file of any format.
 */
#ifndef TSI_AUDIO_SOURCE_H
#define TSI_AUDIO_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audio/sndfile.h"
#include "audio/wav.h"

struct tsi_audio_parts;

struct tsi_audio_source {
	uint32_t rate, channels;
	uint64_t frames;
	struct tsi_wav wav;
	const uint8_t *data; /* of a WAV file that is read here */
	const struct tsi_audio_parts *parts; /* that data has; NULL: all */
	struct tsi_sndfile *by;              /* NULL: it is read here */
	uint64_t at;                         /* where by goes on */
};

/*
 * Open data[0..len), by lib if that has to.  Fails with EDATA, and there is
 * nothing to close then.
 */
int tsi_audio_source_open(struct tsi_audio_source *s, struct tsi_sndfile *lib,
			  const void *data, size_t len);

/*
 * Open a WAV file that is read here, of size bytes, by its first ones; it needn't
 * be closed, and has no frames to read.  Fails with EDATA: it is none, or its
 * head is longer.
 */
int tsi_audio_source_head(struct tsi_audio_source *s, const void *head,
			  size_t len, uint64_t size);

/* Where a frame of it begins in the file, and are so many of them there? */
uint64_t tsi_audio_source_place(const struct tsi_audio_source *s,
				uint64_t frame);
bool tsi_audio_source_has(const struct tsi_audio_source *s, uint64_t frames);

/* Its frames are those that data has of these parts, which hold them. */
void tsi_audio_source_parts(struct tsi_audio_source *s, const void *data,
			    const struct tsi_audio_parts *parts);

void tsi_audio_source_close(struct tsi_audio_source *s);

/* n frames from frame at on.  Fails with EDATA: they aren't all there. */
int tsi_audio_source_read(struct tsi_audio_source *s, uint64_t at, size_t n,
			  float *to);

/* Are all frames there, as far as that is known without a decode? */
bool tsi_audio_source_whole(const struct tsi_audio_source *s);

/*
 * How many frames from the first one on are there, read in pieces of n to
 * buffer.
 */
uint64_t tsi_audio_source_there(struct tsi_audio_source *s, size_t n,
				float *buffer);

#endif
