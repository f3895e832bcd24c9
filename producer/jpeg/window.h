/* SPDX-License-Identifier: MIT */
/*
 * window.h - the data of a JPEG scan piece by piece, without the zeros
 * that are stuffed behind each 0xff, and where in the file they come from.
 */
#ifndef TSI_JPEG_WINDOW_H
#define TSI_JPEG_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jpeg/unstuff.h"

/* Bytes of a window, and what may be read behind them. */
#define TSI_WINDOW 8192
#define TSI_WINDOW_SLACK 1344

struct tsi_jpeg_window {
	uint8_t bytes[TSI_WINDOW + TSI_WINDOW_SLACK + TSI_UNSTUFF_SLACK];
	size_t filled;
	bool ended; /* nothing comes behind them: zeros do */
	const uint8_t *src;
	const uint8_t *src_end;
	size_t origin; /* the first byte's offset in the data */
	/* The first `seen` bytes have `ffs` of 0xff among them. */
	size_t seen;
	size_t ffs;
};

/*
 * Begin at data[at], which is no stuffed zero.  Bytes from data[end] on aren't
 * needed; end 0: all may be.
 */
void tsi_jpeg_window_open(struct tsi_jpeg_window *w, tsi_unstuff_fn *unstuff,
			  const uint8_t *data, size_t len, size_t at,
			  size_t end);

/* Forget the first `used` bytes, and fill the window up. */
void tsi_jpeg_window_fill(struct tsi_jpeg_window *w, tsi_unstuff_fn *unstuff,
			  size_t used);

static inline const uint8_t *
tsi_jpeg_window_bytes(const struct tsi_jpeg_window *w)
{
	return w->bytes;
}

/* Nothing comes behind the bytes that are in the window. */
static inline bool tsi_jpeg_window_ended(const struct tsi_jpeg_window *w)
{
	return w->ended;
}

/*
 * The bit from which on the window has to be filled up; or, if it has ended,
 * the first one beyond the data.
 */
static inline uint64_t tsi_jpeg_window_stop(const struct tsi_jpeg_window *w)
{
	if (w->ended)
		return (uint64_t)w->filled * 8 + 1;
	return (uint64_t)w->filled * 8 - TSI_WINDOW_SLACK * 8;
}

/* The offset in the data of byte `at` of the window; at never decreases. */
size_t tsi_jpeg_window_offset(struct tsi_jpeg_window *w, size_t at);

#endif
