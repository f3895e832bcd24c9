/* SPDX-License-Identifier: MIT */
/*
 * load.h - the bytes of an audio file to the numbers of one sample.
 *
 * A sample is float32 [channels, frames]: a crop of the file, which begins at a
 * frame drawn from (seed, epoch, index), or in the middle of what is left; a
 * shorter file is followed by zeros.  The values are those of soundfile.read()
 * with dtype float32.  One channel is the mean of a file's; otherwise a file has
 * as many channels as samples, or one, which is every channel then.
 *
 * Where a rate is asked for, a file of another one is resampled, by libsoxr's
 * HQ, from the mean of its channels if that is wanted; and the crop is of what
 * comes out.  As much of the file is resampled as the crop needs (window.h).
 *
 * Samples may also be whole files, or crops of those alone that have more frames
 * than a sample: tsi_audio_last() says how many frames one has, and zeros follow.
 *
 * The crop of view k draws as operation TSI_AUDIO_OP + k (pixel/draw.h): word 0
 * modulo the number of frames at which it may begin.
 *
 * It never opens a file, never logs, and never keeps a pointer to the caller's
 * bytes after it has returned.
 */
#ifndef TSI_AUDIO_LOAD_H
#define TSI_AUDIO_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSI_AUDIO_VIEWS 12
#define TSI_AUDIO_OP 0xc001

/* What --clips says; in the order of its words. */
enum tsi_audio_clips {
	TSI_AUDIO_CROP,  /* every sample has all frames */
	TSI_AUDIO_WHOLE, /* a file; one of more frames is bad */
	TSI_AUDIO_CUT,   /* a file, or a crop of one of more frames */
};

struct tsi_audio_opts {
	uint32_t channels, frames; /* of a sample, at most; neither is 0 */
	uint32_t rate;             /* of its frames; 0: any file's own */
	bool resamples;            /* files of other rates, else they are bad */
	bool centre;               /* crops are of the middle */
	enum tsi_audio_clips clips;
	unsigned views; /* crops of each file; 1 but for TSI_AUDIO_CROP */
	uint64_t seed;
};

/* Bytes of a file. */
struct tsi_audio_part {
	uint64_t at;
	size_t len;
};

/* Decoders and scratch memory of one worker thread. */
struct tsi_audio;

/* Fails with TSOCK_ENOMEM. */
int tsi_audio_create(const struct tsi_audio_opts *o, struct tsi_audio **out);

/* NULL is allowed. */
void tsi_audio_destroy(struct tsi_audio *a);

/*
 * Decode data[0..len) and write view k to to[k], channels * frames floats.
 * Fails with TSOCK_EDATA (no audio file, one that ends within the crop, one of
 * another rate or number of channels, one that is too long), ENOMEM, ESYS; to
 * may be half written then.
 */
int tsi_audio_load(struct tsi_audio *a, const void *data, size_t len,
		   uint32_t epoch, uint64_t index, float *const *to);

/* The frames of the sample that was loaded last that are the file's. */
uint32_t tsi_audio_last(const struct tsi_audio *a);

/*
 * Of which parts of a file of size bytes this sample is made, by the file's
 * first head bytes: up to TSI_AUDIO_VIEWS of them, ascending, behind the head
 * and in the file.  Returns how many; 0: the whole file is needed, as for all
 * but WAV files, or little of it isn't.  Any thread.
 */
unsigned tsi_audio_choose(const struct tsi_audio *a, const void *data,
			  size_t head, uint64_t size, uint32_t epoch,
			  uint64_t index, struct tsi_audio_part *to);

/*
 * As tsi_audio_load(), where tsi_audio_choose() has chosen: data has the head
 * and the parts, one behind the other.
 */
int tsi_audio_load_parts(struct tsi_audio *a, const void *data, size_t head,
			 uint64_t size, uint32_t epoch, uint64_t index,
			 float *const *to);

/*
 * The frames that a file says it has, and how many of these, from the first one
 * on, are there.  Fails with EDATA: not even the first one, or it is the file of
 * no sample.  The cost is that of a whole decode, but for WAV files.
 */
int tsi_audio_measure(struct tsi_audio *a, const void *data, size_t len,
		      uint32_t *frames, uint32_t *there);

/* Each sample needs the same frames of a file, whatever its draws. */
bool tsi_audio_same_frames(const struct tsi_audio *a);

/*
 * How many frames from the first one on this sample needs of a file that has so
 * many, and the least that any does.
 */
uint32_t tsi_audio_end(const struct tsi_audio *a, uint32_t frames,
		       uint32_t epoch, uint64_t index);
uint32_t tsi_audio_least_end(const struct tsi_audio *a, uint32_t frames);

/* The rate of a file.  Fails with EDATA, ENOMEM. */
int tsi_audio_rate(const void *data, size_t len, uint32_t *rate);

/*
 * Does a file begin as an audio file does that this can read?  whole: there are
 * no more bytes.  Fails with EDATA, EAGAIN (more bytes are needed).
 */
int tsi_audio_sniff(const void *data, size_t len, bool whole);

/* A number for what tsi_audio_sniff() calls good in this build. */
uint32_t tsi_audio_formats_read(void);

#endif
