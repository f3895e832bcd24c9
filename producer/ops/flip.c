/* SPDX-License-Identifier: MIT */
/*
 * flip.c - pixels that change their places.
 */
#include "ops/flip.h"

#include <string.h>

/* Rows and columns of a part of a picture that stays in the first cache. */
#define TILE 32

static void swap_bytes(uint8_t *a, uint8_t *b)
{
	uint8_t v = *a;

	*a = *b;
	*b = v;
}

static void mirror_row3(uint8_t *row, uint32_t width)
{
	uint8_t *a = row, *b = row + (size_t)(width - 1) * 3;

	for (; a < b; a += 3, b -= 3) {
		swap_bytes(a, b);
		swap_bytes(a + 1, b + 1);
		swap_bytes(a + 2, b + 2);
	}
}

static void mirror_row1(uint8_t *row, uint32_t width)
{
	for (uint8_t *a = row, *b = row + width - 1; a < b; a++, b--)
		swap_bytes(a, b);
}

void tsi_flip_x(struct tsi_canvas *c)
{
	uint8_t *row = c->pixels;

	for (uint32_t y = 0; y < c->height; y++, row += tsi_canvas_row(c)) {
		if (c->channels == 3)
			mirror_row3(row, c->width);
		else
			mirror_row1(row, c->width);
	}
}

void tsi_flip_y(struct tsi_canvas *c)
{
	size_t bytes = tsi_canvas_row(c);
	uint8_t *a = c->pixels, *b = a + bytes * (c->height - 1);
	uint8_t held[512];

	for (; a < b; a += bytes, b -= bytes) {
		for (size_t at = 0; at < bytes; at += sizeof(held)) {
			size_t n = bytes - at < sizeof(held) ? bytes - at
							     : sizeof(held);

			memcpy(held, a + at, n);
			memcpy(a + at, b + at, n);
			memcpy(b + at, held, n);
		}
	}
}

/* The pixel at src goes to dst; the next of its row `step` bytes further. */
static void place_tile(const struct tsi_canvas *c, uint32_t x, uint32_t y,
		       uint8_t *dst, ptrdiff_t right, ptrdiff_t down)
{
	uint32_t w = c->width - x < TILE ? c->width - x : TILE;
	uint32_t h = c->height - y < TILE ? c->height - y : TILE;

	for (uint32_t j = 0; j < h; j++) {
		const uint8_t *src = c->pixels + ((size_t)(y + j) * c->width +
						  x) * c->channels;
		uint8_t *to =
			dst + (ptrdiff_t)(y + j) * down + (ptrdiff_t)x * right;

		for (uint32_t i = 0; i < w; i++, to += right) {
			if (c->channels == 3)
				memcpy(to, src + (size_t)i * 3, 3);
			else
				*to = src[i];
		}
	}
}

/* The pixel at (0, 0) goes to dst; that right and that below of it follow. */
static void place(const struct tsi_canvas *c, uint8_t *dst, ptrdiff_t right,
		  ptrdiff_t down)
{
	for (uint32_t y = 0; y < c->height; y += TILE)
		for (uint32_t x = 0; x < c->width; x += TILE)
			place_tile(c, x, y, dst, right, down);
}

int tsi_flip_turn(struct tsi_canvas *c, unsigned quarters)
{
	uint32_t w = c->width, h = c->height;
	ptrdiff_t pixel = c->channels, column = pixel * h;
	uint8_t *dst;
	int err;

	quarters %= 4;
	if (quarters == 0)
		return 0;
	if (quarters == 2) {
		tsi_flip_x(c);
		tsi_flip_y(c);
		return 0;
	}
	err = tsi_canvas_other(c, h, w, c->channels, &dst);
	if (err)
		return err;
	if (quarters == 1)
		place(c, dst + (ptrdiff_t)(w - 1) * column, -column, pixel);
	else
		place(c, dst + (ptrdiff_t)(h - 1) * pixel, column, -pixel);
	tsi_canvas_turn(c, h, w, c->channels);
	return 0;
}

void tsi_flip_crop(struct tsi_canvas *c, uint32_t left, uint32_t top,
		   uint32_t width, uint32_t height)
{
	size_t bytes = (size_t)width * c->channels;
	const uint8_t *src = c->pixels + (size_t)top * tsi_canvas_row(c) +
			     (size_t)left * c->channels;

	for (uint32_t y = 0; y < height; y++, src += tsi_canvas_row(c))
		memmove(c->pixels + y * bytes, src, bytes);
	c->width = width;
	c->height = height;
}
