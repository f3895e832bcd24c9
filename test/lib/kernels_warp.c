/* SPDX-License-Identifier: MIT */
/*
 * kernels_warp.c - the inner loops of operations that move pixels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/canvas.h"
#include "ops/warp_kernel.h"
#include "test/lib/image_gen.h"
#include "test/lib/kernels.h"

#define ROUNDS 300
#define MOST 300
#define UNTOUCHED 0x5a

static uint64_t state;

/* n is at most 2^23. */
static uint32_t below(uint32_t n)
{
	return (image_gen_random(&state) >> 8) % n;
}

static double between(double a, double b)
{
	return a + (b - a) * below(1000003) / 1000003;
}

static void noise(uint8_t *p, size_t n)
{
	int edges = below(3) == 0;

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(edges ? 0 - below(2) : below(256));
}

/* ------------------------------------------------------------------------
 * Places
 */

typedef void places_fn(const double *m, uint32_t column, uint32_t row,
		       uint32_t n, double *x, double *y);

static void check_places(places_fn *plain, places_fn *version)
{
	static double x[2][MOST + 8], y[2][MOST + 8];

	state = 30;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t n = 1 + below(MOST), column = 256 * below(3);
		uint32_t row = below(1000), end = (n + 7) / 8 * 8;
		double m[8];

		for (int k = 0; k < 8; k++)
			m[k] = between(-2, 2);
		memset(x, UNTOUCHED, sizeof(x));
		memset(y, UNTOUCHED, sizeof(y));
		plain(m, column, row, n, x[0], y[0]);
		version(m, column, row, n, x[1], y[1]);
		assert_memory_equal(x[0], x[1], n * sizeof(double));
		assert_memory_equal(y[0], y[1], n * sizeof(double));
		for (size_t b = end * sizeof(double); b < sizeof(x[1]); b++) {
			assert_int_equal(((uint8_t *)x[1])[b], UNTOUCHED);
			assert_int_equal(((uint8_t *)y[1])[b], UNTOUCHED);
		}
	}
}

static void compare_affine(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;

	check_places(plain->affine, version->affine);
}

static void compare_perspective(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;

	check_places(plain->perspective, version->perspective);
}

/* ------------------------------------------------------------------------
 * Pixels
 */

static uint8_t want[3 * MOST], got[3 * MOST];

/* The block has the exact size, so that a read behind its end is seen. */
static struct tsi_warp_source make_source(uint32_t top)
{
	struct tsi_warp_source s = { NULL, 1 + below(top), 1 + below(top),
				     below(3) ? 3 : 1 };
	size_t n = (size_t)s.width * s.height * s.channels + TSI_CANVAS_SLACK;
	uint8_t *p = malloc(n);

	noise(p, n);
	s.pixels = p;
	return s;
}

static void free_source(struct tsi_warp_source *s)
{
	free((void *)(uintptr_t)s->pixels);
}

/* Nothing but the n pixels may be written; outside of the source none is. */
static void begin_pixels(void)
{
	memset(want, UNTOUCHED, sizeof(want));
	memset(got, UNTOUCHED, sizeof(got));
}

static void compare_fixed(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;

	state = 31;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tsi_warp_source s = make_source(60);
		uint32_t n = 1 + below(MOST - 1);
		int64_t from[2], to[2], step[2];

		for (int d = 0; d < 2; d++) {
			uint32_t end = (d ? s.height : s.width) << 16;

			from[d] = below(end);
			to[d] = below(end);
			step[d] = (to[d] - from[d]) / (int64_t)n;
		}
		begin_pixels();
		plain->fixed(&s, from[0], from[1], step[0], step[1], n, want);
		version->fixed(&s, from[0], from[1], step[0], step[1], n, got);
		assert_memory_equal(got, want, sizeof(got));
		free_source(&s);
	}
}

typedef void pixels_fn(const struct tsi_warp_source *s, const double *x,
		       const double *y, uint32_t n, uint8_t *dst);

static void check_pixels(pixels_fn *plain, pixels_fn *version)
{
	double x[MOST], y[MOST];

	state = 32;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tsi_warp_source s = make_source(i % 2 ? 9 : 60);
		uint32_t n = 1 + below(MOST - 1);
		double wide = below(2) ? 0 : 3;

		for (uint32_t p = 0; p < n; p++) {
			x[p] = between(-wide, s.width + wide);
			y[p] = between(-wide, s.height + wide);
			if (below(9) == 0)
				x[p] = below(s.width + 1) - .5 * below(2);
		}
		begin_pixels();
		plain(&s, x, y, n, want);
		version(&s, x, y, n, got);
		assert_memory_equal(got, want, sizeof(got));
		free_source(&s);
	}
}

static void compare_bilinear(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;

	check_pixels(plain->bilinear, version->bilinear);
}

static void compare_bicubic(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;

	check_pixels(plain->bicubic, version->bicubic);
}

/* ------------------------------------------------------------------------
 * Blurs
 */

static struct tsi_warp_box make_box(void)
{
	struct tsi_warp_box b = { .radius = below(3) ? below(9) : below(150) };
	double part = between(0, 1);

	b.near = (uint32_t)((1 << 24) / ((b.radius + part) * 2 + 1));
	b.far = ((1u << 24) - (b.radius * 2 + 1) * b.near) / 2;
	return b;
}

static void compare_box(const struct kernels_at *k)
{
	enum { STRIDE = TSI_WARP_LANES + 7 };
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;
	static uint8_t src[STRIDE * MOST], a[STRIDE * MOST], b[STRIDE * MOST];

	state = 33;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct tsi_warp_box box = make_box();
		unsigned lanes = 1 + below(TSI_WARP_LANES);
		unsigned end = (lanes + 31) / 32 * 32;
		uint32_t n = 1 + below(MOST - 1);

		noise(src, sizeof(src));
		memset(b, UNTOUCHED, sizeof(b));
		plain->box(&box, src, STRIDE, a, STRIDE, n, lanes);
		version->box(&box, src, STRIDE, b, STRIDE, n, lanes);
		for (uint32_t y = 0; y < n; y++) {
			uint8_t *row = b + (size_t)y * STRIDE;

			assert_memory_equal(a + (size_t)y * STRIDE, row, lanes);
			for (unsigned x = end; x < STRIDE; x++)
				assert_int_equal(row[x], UNTOUCHED);
		}
	}
}

static void compare_transpose(const struct kernels_at *k)
{
	enum { SIDE = 70 };
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;
	static uint8_t src[SIDE * SIDE], a[SIDE * SIDE], b[SIDE * SIDE];

	state = 34;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t width = 1 + below(SIDE), height = 1 + below(SIDE);

		noise(src, sizeof(src));
		memset(a, UNTOUCHED, sizeof(a));
		memset(b, UNTOUCHED, sizeof(b));
		plain->transpose(src, SIDE, width, height, a, SIDE);
		version->transpose(src, SIDE, width, height, b, SIDE);
		assert_memory_equal(a, b, sizeof(a));
	}
}

static float numbers[3 * MOST];

static void make_numbers(void)
{
	for (size_t i = 0; i < 3 * MOST; i++)
		numbers[i] = (float)between(0, 255);
}

/* Taps of this radius whose sum is 1. */
static void make_taps(float *tap, uint32_t radius)
{
	double sum = 0;

	for (uint32_t i = 0; i <= radius; i++) {
		tap[i] = (float)between(.01, 1);
		sum += (i ? 2 : 1) * (double)tap[i];
	}
	for (uint32_t i = 0; i <= radius; i++)
		tap[i] /= (float)sum;
}

static void check_floats(const float *a, const float *b, size_t n,
			 size_t multiple)
{
	float untouched;

	memset(&untouched, UNTOUCHED, sizeof(untouched));
	assert_memory_equal(a, b, n * sizeof(float));
	for (size_t i = (n + multiple - 1) / multiple * multiple; i < MOST; i++)
		assert_memory_equal(&b[i], &untouched, sizeof(float));
}

static void compare_floats(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;
	static float a[MOST], b[MOST];
	uint8_t src[MOST];

	state = 35;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST - 16);

		noise(src, sizeof(src));
		memset(b, UNTOUCHED, sizeof(b));
		plain->floats(src, n, a);
		version->floats(src, n, b);
		check_floats(a, b, n, 16);
	}
}

static void compare_across(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;
	static float a[MOST], b[MOST];
	float tap[20];

	state = 36;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t radius = below(20);
		size_t step = below(2) ? 3 : 1, n = 1 + below(MOST - 32);

		make_numbers();
		make_taps(tap, radius);
		memset(b, UNTOUCHED, sizeof(b));
		plain->across(numbers + MOST, step, tap, radius, a, n);
		version->across(numbers + MOST, step, tap, radius, b, n);
		check_floats(a, b, n, 32);
	}
}

static void compare_down(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;
	const float *row[39];
	float tap[20];

	state = 37;
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t radius = below(20);
		size_t n = 1 + below(MOST - 32);

		make_numbers();
		make_taps(tap, radius);
		for (int r = 0; r < 39; r++)
			row[r] = numbers + below(2 * MOST);
		begin_pixels();
		plain->down(row + 19, tap, radius, want, n);
		version->down(row + 19, tap, radius, got, n);
		assert_memory_equal(got, want, sizeof(got));
	}
}

static void compare_widen(const struct kernels_at *k)
{
	const struct tsi_warp_kernel *plain = k->plain, *version = k->kernel;
	static uint8_t src[3 * MOST + TSI_CANVAS_SLACK], a[4 * MOST],
		b[4 * MOST];

	state = 38;
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = 1 + below(MOST - 16), end = (n + 15) / 16 * 16;

		noise(src, sizeof(src));
		memset(b, UNTOUCHED, sizeof(b));
		plain->widen(src, n, a);
		version->widen(src, n, b);
		for (size_t p = 0; p < n; p++)
			assert_memory_equal(a + 4 * p, b + 4 * p, 3);
		for (size_t p = 4 * end; p < sizeof(b); p++)
			assert_int_equal(b[p], UNTOUCHED);
	}
}

KERNELS_INIT(warp)

#define SLOT(name) \
	{ \
#name, offsetof(struct tsi_warp_kernel, name), compare_##name \
	}

const struct kernels_group kernels_warp = {
	.name = "moved_pixels_are_those_of_plain_c",
	.size = sizeof(struct tsi_warp_kernel),
	.init = init_warp,
	.slot = {
		SLOT(affine),
		SLOT(perspective),
		SLOT(fixed),
		SLOT(bilinear),
		SLOT(bicubic),
		SLOT(box),
		SLOT(transpose),
		SLOT(floats),
		SLOT(across),
		SLOT(down),
		SLOT(widen),
	},
};
