/* SPDX-License-Identifier: MIT */
/*
 * window.h - which frames of a file a resampled crop is made of.
 *
 * Of frames m * Q and m * P, for P / Q the ratio of the rates, libsoxr makes the
 * same numbers wherever it begins, but for the last bits: so it begins shortly
 * before the crop, by more than its filters reach, and ends as far behind it.
 * Between rates whose ratio isn't of small numbers it draws a line between
 * filters, and begins with the file.
 */
#ifndef TSI_AUDIO_WINDOW_H
#define TSI_AUDIO_WINDOW_H

#include <stdint.h>

struct tsi_audio_window {
	uint64_t from, to; /* frames of the file */
	uint64_t first;    /* the number of the first frame made of these */
};

/*
 * Of a file of so many frames at a rate from, for crops of length frames at rate
 * to, which begin at first[0..n): a window for each or, if all of them are more
 * than the file, one that is the file.  Returns how many.
 */
unsigned tsi_audio_windows(uint32_t from, uint32_t to, uint64_t frames,
			   const uint64_t *first, uint64_t length, unsigned n,
			   struct tsi_audio_window *w);

#endif
