/* SPDX-License-Identifier: MIT */
/*
 * wav.h - WAV files: what their head says, and their samples as float32.
 *
 * RIFF and RF64 with PCM of 8, 16, 24 or 32 bits or floats of 32 or 64, which
 * WAVE_FORMAT_EXTENSIBLE may say, too.  Chunks of other kinds are passed over.
 * Values are those of libsndfile: an integer over 2^(bits - 1).
 */
#ifndef TSI_AUDIO_WAV_H
#define TSI_AUDIO_WAV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_wav {
	uint32_t rate;     /* of frames, per second */
	uint32_t channels; /* numbers of a frame */
	uint32_t bytes;    /* of a number: 1 to 4, or 8 */
	bool floats;
	uint64_t frames; /* that the head says the file has */
	uint64_t there;  /* of these, whose bytes are in the file */
	uint64_t at;     /* of the first frame, in the file */
	uint16_t coding; /* the format tag of another coding; 0: none */
};

/* Does a file that begins so name itself a WAV file? */
bool tsi_wav_claims(const uint8_t *data, size_t len);

/*
 * Read the head of a file that claims to be one.  Of the file's size bytes
 * data[0..len) are there.  Fails with EDATA, or, where len is less than size,
 * with EAGAIN: more bytes are needed.  With coding all but rate and channels is
 * 0.
 */
int tsi_wav_head(const uint8_t *data, size_t len, uint64_t size,
		 struct tsi_wav *out);

/* Where frame i begins, in the file. */
uint64_t tsi_wav_frame(const struct tsi_wav *w, uint64_t i);

/* n frames that begin at from: n * channels numbers. */
void tsi_wav_read(const struct tsi_wav *w, const uint8_t *from, size_t n,
		  float *to);

#endif
