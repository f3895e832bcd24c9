/* SPDX-License-Identifier: MIT */
/*
 * window.c - which frames of a file a resampled crop is made of.
 */
#include "audio/window.h"

/* Frames of the lower rate: HQ's filters reach less than half as far. */
#define REACH 1024
#define SMALL 1024

static uint32_t common(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Of frames at..end. */
static struct tsi_audio_window window_of(uint32_t from, uint32_t to,
					 uint64_t frames, uint64_t at,
					 uint64_t end)
{
	const uint32_t divisor = common(from, to);
	const uint64_t p = to / divisor, q = from / divisor;
	const uint64_t reach = REACH * (from > to ? from / to + 1 : 1);
	struct tsi_audio_window w = { .from = at / p * q,
				      .to = (end / p + 1) * q + reach };

	if (p > SMALL || q > SMALL)
		return (struct tsi_audio_window){ 0, frames, 0 };
	w.from = w.from > reach ? (w.from - reach) / q * q : 0;
	w.first = w.from / q * p;
	if (w.to > frames)
		w.to = frames;
	return w;
}

unsigned tsi_audio_windows(uint32_t from, uint32_t to, uint64_t frames,
			   const uint64_t *first, uint64_t length, unsigned n,
			   struct tsi_audio_window *w)
{
	uint64_t all = 0;

	for (unsigned k = 0; k < n; k++) {
		w[k] = window_of(from, to, frames, first[k], first[k] + length);
		all += w[k].to - w[k].from;
	}
	if (all < frames)
		return n;
	w[0] = (struct tsi_audio_window){ 0, frames, 0 };
	return 1;
}
