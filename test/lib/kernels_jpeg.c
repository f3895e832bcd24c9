/* SPDX-License-Identifier: MIT */
/*
 * kernels_jpeg.c - transforms of blocks, and rows of samples to rows of pixels:
 * also where words wrap and saturate, and with rows of every length.
 */
#include "jpeg/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/lib/image_gen.h"
#include "test/lib/kernels.h"
#include "test/lib/sanitized.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROUNDS (SANITIZED ? 4000u : 30000u)
#define BLOCKS 9u /* side by side, at most */
#define LENGTH 150u
#define GUARD 16u
#define UNTOUCHED 0xa5
/* Bytes of a row of output, of what may be written behind it, and a guard. */
#define STRIDE (4 * LENGTH + 2 * TSI_JPEG_SLACK + GUARD)

static uint64_t state;

static uint64_t below(uint64_t n)
{
	return image_gen_random(&state) % n;
}

/* ------------------------------------------------------------------------
 * Blocks
 */

static const uint8_t zigzag[64] = {
	0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

static struct {
	_Alignas(64) int16_t coef[BLOCKS][64];
	uint8_t last[BLOCKS];
	uint16_t quant[64];
	uint32_t n;
} in;

static int16_t coefficient(unsigned most)
{
	static const int16_t edge[] = { 32767, -32768, 8191, 8192, -8193, 1 };

	return most ? (int16_t)(below(2 * most + 1) - most)
		    : edge[below(COUNT(edge))];
}

/* A block that ends at a position of the zigzag, of one row, or of one column. */
static void make_block(unsigned i, unsigned most)
{
	unsigned shape = (unsigned)below(4), end = (unsigned)below(64);

	memset(in.coef[i], 0, sizeof(in.coef[i]));
	in.last[i] = 0;
	for (uint8_t k = 0; k <= end; k++) {
		unsigned at = zigzag[k];

		if ((shape == 1 && at >= 8) || (shape == 2 && at % 8) ||
		    (shape == 3 && k && below(4)))
			continue;
		in.coef[i][at] = coefficient(most);
		if (in.coef[i][at])
			in.last[i] = k;
	}
	/* The index of the last coefficient may be too great. */
	if (!below(8))
		in.last[i] = 63;
}

static void make_blocks(void)
{
	static const unsigned most[] = { 3, 40, 1023, 2047, 32767, 0 };
	static const uint32_t quant[] = { 1, 20, 255, 3000, 65535 };
	uint32_t q = quant[below(COUNT(quant))];
	unsigned m = most[below(COUNT(most))];

	in.n = 1 + (uint32_t)below(BLOCKS);
	for (unsigned i = 0; i < 64; i++)
		in.quant[i] = (uint16_t)(1 + below(q));
	for (unsigned i = 0; i < in.n; i++)
		make_block(i, m);
}

/* To `edge` rows of as many samples a block. */
static void check_idct(tsi_jpeg_idct_fn *want_of, tsi_jpeg_idct_fn *got_of,
		       uint32_t edge)
{
	static uint8_t want[8][STRIDE], got[8][STRIDE];
	size_t row = (size_t)in.n * edge, all = row + TSI_JPEG_SLACK;

	memset(got, UNTOUCHED, sizeof(got));
	want_of(in.coef, in.last, in.n, in.quant, want[0], STRIDE);
	got_of(in.coef, in.last, in.n, in.quant, got[0], STRIDE);
	for (uint32_t y = 0; y < edge; y++) {
		assert_memory_equal(got[y], want[y], row);
		/* A call for each byte would take as long as all else. */
		for (size_t x = all; x < STRIDE; x++)
			if (got[y][x] != UNTOUCHED)
				fail_msg("row %u: byte %zu is written", y, x);
	}
}

static void compare_idct(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 8;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_blocks();
		check_idct(plain->idct, version->idct, 8);
	}
}

static void compare_idct4(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 4;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_blocks();
		check_idct(plain->idct4, version->idct4, 4);
	}
}

static void compare_idct2(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 2;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_blocks();
		check_idct(plain->idct2, version->idct2, 2);
	}
}

static void compare_idct1(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 1;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_blocks();
		check_idct(plain->idct1, version->idct1, 1);
	}
}

/* ------------------------------------------------------------------------
 * Rows
 */

#define ROW (TSI_JPEG_SLACK + LENGTH + TSI_JPEG_SLACK)

static uint8_t rows[3][ROW];
static uint8_t want[STRIDE], got[STRIDE];
static size_t length;

/* Noise, or the least and greatest samples. */
static void make_rows(void)
{
	bool edges = below(2);

	length = 1 + below(LENGTH);
	for (size_t i = 0; i < 3 * ROW; i++) {
		uint8_t v = (uint8_t)below(256);

		rows[i / ROW][i % ROW] = edges ? (v & 1 ? 255 : 0) : v;
	}
	memset(got, UNTOUCHED, sizeof(got));
	memset(want, UNTOUCHED, sizeof(want));
}

static const uint8_t *row(int i)
{
	return rows[i] + TSI_JPEG_SLACK;
}

/* Bytes are equal, and nothing is written behind what may be. */
static void check_rows(size_t bytes, size_t slack)
{
	assert_memory_equal(got, want, bytes);
	for (size_t i = bytes + slack; i < sizeof(got); i++)
		assert_int_equal(got[i], UNTOUCHED);
}

static void compare_twice(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 20;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_rows();
		plain->twice(row(0), want, length);
		version->twice(row(0), got, length);
		check_rows(2 * length, TSI_JPEG_SLACK);
	}
}

static void compare_h2v1(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 20;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_rows();
		plain->h2v1(row(0), want, length);
		version->h2v1(row(0), got, length);
		check_rows(2 * length, TSI_JPEG_SLACK);
	}
}

static void compare_h2v2(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 20;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_rows();
		plain->h2v2(row(0), row(1), want, length);
		version->h2v2(row(0), row(1), got, length);
		check_rows(2 * length, TSI_JPEG_SLACK);
	}
}

static void compare_rgb(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 20;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_rows();
		plain->rgb(row(0), row(1), row(2), want, length);
		version->rgb(row(0), row(1), row(2), got, length);
		check_rows(4 * length, 2 * TSI_JPEG_SLACK);
	}
}

static void compare_h1v2(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 21;
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned bias = 1 + i % 2;

		make_rows();
		plain->h1v2(row(0), row(1), bias, want, length);
		version->h1v2(row(0), row(1), bias, got, length);
		check_rows(length, TSI_JPEG_SLACK);
	}
}

static void check_every_colour(const struct tsi_jpeg_kernel *plain,
			       const struct tsi_jpeg_kernel *version)
{
	enum { AT = TSI_JPEG_SLACK };
	static uint8_t y[AT + 256 + AT], cb[sizeof(y)], cr[sizeof(y)];
	static uint8_t a[4 * 256 + 2 * TSI_JPEG_SLACK], b[sizeof(a)];
	unsigned step = SANITIZED ? 7 : 1;

	for (unsigned i = 0; i < 256; i++)
		y[AT + i] = (uint8_t)i;
	for (unsigned i = 0; i < 65536; i += step) {
		memset(cb, (int)(i / 256), sizeof(cb));
		memset(cr, (int)(i % 256), sizeof(cr));
		plain->ycc(y + AT, cb + AT, cr + AT, a, 256);
		version->ycc(y + AT, cb + AT, cr + AT, b, 256);
		assert_memory_equal(a, b, (size_t)4 * 256);
	}
}

static void compare_ycc(const struct kernels_at *k)
{
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 22;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_rows();
		plain->ycc(row(0), row(1), row(2), want, length);
		version->ycc(row(0), row(1), row(2), got, length);
		check_rows(4 * length, 2 * TSI_JPEG_SLACK);
	}
	check_every_colour(plain, version);
}

/* Plain C has no planes, but pixels of the same bytes. */
static void compare_ycc_planes(const struct kernels_at *k)
{
	static uint8_t planes[3 * 256 + TSI_JPEG_SLACK];
	const struct tsi_jpeg_kernel *plain = k->plain, *version = k->kernel;

	state = 23;
	for (unsigned i = 0; i < ROUNDS; i++) {
		make_rows();
		plain->ycc(row(0), row(1), row(2), want, length);
		version->ycc_planes(row(0), row(1), row(2), planes, 256,
				    length);
		for (size_t x = 0; x < length * 3; x++)
			assert_int_equal(planes[x % 3 * 256 + x / 3],
					 want[x / 3 * 4 + x % 3]);
	}
}

KERNELS_INIT(jpeg)

#define SLOT(name) \
	{ \
#name, offsetof(struct tsi_jpeg_kernel, name), compare_##name \
	}

const struct kernels_group kernels_jpeg = {
	.name = "transforms_and_rows_are_those_of_plain_c",
	.size = sizeof(struct tsi_jpeg_kernel),
	.init = init_jpeg,
	.slot = {
		SLOT(idct),
		SLOT(idct4),
		SLOT(idct2),
		SLOT(idct1),
		SLOT(twice),
		SLOT(h2v1),
		SLOT(h2v2),
		SLOT(h1v2),
		SLOT(ycc),
		SLOT(rgb),
		SLOT(ycc_planes),
	},
};
