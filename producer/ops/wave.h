/* SPDX-License-Identifier: MIT */
/*
 * wave.h - what operations do to a sample of audio.
 *
 * Numbers are those of torch in float32; the same on every processor.
 */
#ifndef TSI_OPS_WAVE_H
#define TSI_OPS_WAVE_H

#include <stddef.h>
#include <stdint.h>

/* Each channel's numbers, one channel behind the other, and memory to use. */
struct tsi_wave {
	float *data;
	uint32_t channels, frames;
	float *scratch; /* NULL: there is none yet; freed by the caller */
	size_t room;    /* numbers of it */
};

/* The sign of all. */
void tsi_wave_invert(struct tsi_wave *w);

/* Backward in time. */
void tsi_wave_reverse(struct tsi_wave *w);

/* As torchaudio's Vol with gain_type "db": limited to -1 to 1. */
void tsi_wave_gain(struct tsi_wave *w, double db);

/*
 * Add normal noise whose standard deviation is part of the sample's own.
 * Number i of it is made of the words of Philox 4x32-10 with this key and the
 * counter (i / 4, 0, 0, 0), by Box and Muller: the words 0 and 1 give the first
 * two of four, 2 and 3 the others.
 */
void tsi_wave_noise(struct tsi_wave *w, double part, uint64_t key);

/* (x + volume * x, so many frames before) / 2; before the begin are zeros. */
void tsi_wave_delay(struct tsi_wave *w, uint32_t frames, double volume);

/*
 * julius's lowpass_filter and highpass_filter: a sinc of 8 zeros to either
 * side in Hann's window, with the ends repeated.  cutoff: of the sample rate,
 * above 0 and up to 0.5.  Fails with TSOCK_ENOMEM.
 */
int tsi_wave_lowpass(struct tsi_wave *w, double cutoff);
int tsi_wave_highpass(struct tsi_wave *w, double cutoff);

#endif
