/* SPDX-License-Identifier: MIT */
/*
 * window.c - the data of a JPEG scan piece by piece.
 *
 * Each 0xff in a window has lost one stuffed zero: counting them gives the
 * place in the file.
 */
#include "jpeg/window.h"

#include <string.h>

static size_t count_ffs(const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	size_t ffs = 0;

	while ((p = memchr(p, 0xff, (size_t)(end - p)))) {
		ffs++;
		p++;
	}
	return ffs;
}

void tsi_jpeg_window_fill(struct tsi_jpeg_window *w, tsi_unstuff_fn *unstuff,
			  size_t used)
{
	size_t keep = w->filled - used;
	struct tsi_unstuffed r;

	w->origin = tsi_jpeg_window_offset(w, used);
	w->seen = 0;
	w->ffs = 0;
	memmove(w->bytes, w->bytes + used, keep);
	r = unstuff(w->src, (size_t)(w->src_end - w->src), w->bytes + keep,
		    TSI_WINDOW - keep);
	w->src += r.read;
	w->filled = keep + r.written;
	w->ended = r.ended || w->src == w->src_end;
	if (w->ended)
		memset(w->bytes + w->filled, 0, TSI_WINDOW_SLACK);
}

void tsi_jpeg_window_open(struct tsi_jpeg_window *w, tsi_unstuff_fn *unstuff,
			  const uint8_t *data, size_t len, size_t at,
			  size_t end)
{
	if (at > len)
		at = len;
	/* A stuffed zero may stand behind the last byte. */
	if (!end || end < at || end > len || len - end < 2)
		end = len;
	else
		end += 2;
	w->filled = 0;
	w->seen = 0;
	w->ffs = 0;
	w->origin = at;
	w->src = data + at;
	w->src_end = data + end;
	tsi_jpeg_window_fill(w, unstuff, 0);
}

size_t tsi_jpeg_window_offset(struct tsi_jpeg_window *w, size_t at)
{
	w->ffs += count_ffs(w->bytes + w->seen, at - w->seen);
	w->seen = at;
	return w->origin + w->ffs + at;
}
