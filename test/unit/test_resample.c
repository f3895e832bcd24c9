/* SPDX-License-Identifier: MIT */
/*
 * test_resample.c - the resampler against a plain statement of the formula.
 * test_kernels.c compares vector code with plain C, test/parity with Pillow.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "resample/resample.h"
#include "resample/taps.h"
#include "test/lib/image_gen.h"
#include "test/lib/resized.h"

/* One output value, from the definition. */
static double weigh(uint32_t in, uint32_t out, uint32_t i, uint32_t k)
{
	double scale = (double)in / out, support = scale < 1 ? 1 : scale;
	double d = fabs((k + 0.5 - (i + 0.5) * scale) / support);

	return d < 1 ? 1 - d : 0;
}

static void a_resized_pixel_is_the_weighted_mean_of_its_surroundings(void **st)
{
	struct resized_picture s = resized_make(37, 53, 5);
	struct tsi_axis x = resized_whole(37, 20), y = resized_whole(53, 64);
	uint8_t *got = resized(TSI_SIMD_SCALAR, &s, &x, &y, TSI_PASSES_12, 16);

	(void)st;
	for (uint32_t i = 0; i < 64 * 20 * 3; i++) {
		uint32_t oy = i / 60, ox = i / 3 % 20, c = i % 3;
		double sum = 0, all = 0;

		for (uint32_t ky = 0; ky < 53; ky++)
			for (uint32_t kx = 0; kx < 37; kx++) {
				double w = weigh(37, 20, ox, kx) *
					   weigh(53, 64, oy, ky);

				sum += w * s.p[ky * s.stride + kx * 4 + c];
				all += w;
			}
		assert_true(fabs(sum / all - got[i]) <= 1.01);
	}
	free(got);
	free(s.p);
}

/* As wide a reduction as planes are for, and one more. */
static void planes_are_left_where_an_image_shrinks_too_far(void **state)
{
	struct tsi_axis same = resized_whole(20, 20), y = resized_whole(21, 20);
	uint8_t dst[64 * 20 * 3];
	struct tsi_resample *r;
	struct tsi_rect need;
	bool planes = true;

	(void)state;
	assert_int_equal(tsi_resample_create(TSI_SIMD_BEST, &r), 0);
	assert_int_equal(tsi_resample_begin(r, &same, &y, TSI_PASSES_13, true,
					    dst, 20 * 3, &need),
			 0);
	if (!tsi_resample_planes(r)) {
		print_message("this processor's kernel has no planes\n");
		tsi_resample_destroy(r);
		skip();
	}
	for (uint32_t in = 64; in <= 64 * 6; in += 8) {
		struct tsi_axis x = resized_whole(in, 64);
		bool before = planes;

		assert_int_equal(tsi_resample_begin(r, &x, &same, TSI_PASSES_13,
						    true, dst, 64 * 3, &need),
				 0);
		planes = tsi_resample_planes(r);
		assert_true(planes || in > 64 * 3);
		assert_true(before || !planes);
		if (planes) {
			struct resized_picture s = resized_make(in, 20, in);
			uint8_t *a = resized(TSI_SIMD_SCALAR, &s, &x, &same,
					     TSI_PASSES_13, 16);
			uint8_t *b = resized_as(TSI_SIMD_BEST, true, &s, &x,
						&same, TSI_PASSES_13, 16);

			assert_memory_equal(a, b, 64 * 20 * 3);
			free(a);
			free(b);
			free(s.p);
		}
	}
	assert_false(planes);
	tsi_resample_destroy(r);
}

static void a_window_is_a_part_of_the_whole(void **state)
{
	struct resized_picture s = resized_make(300, 200, 3);
	struct tsi_axis x = resized_whole(300, 150),
			y = resized_whole(200, 100);
	struct tsi_axis wx = x, wy = y;
	uint8_t *all, *part;

	(void)state;
	wx.first = 13;
	wx.count = 41;
	wx.mirror = true;
	wy.first = 57;
	wy.count = 43;
	all = resized(TSI_SIMD_BEST, &s, &x, &y, TSI_PASSES_13, 16);
	part = resized(TSI_SIMD_BEST, &s, &wx, &wy, TSI_PASSES_13, 7);
	for (uint32_t i = 0; i < 43; i++)
		for (uint32_t k = 0; k < 41; k++)
			assert_memory_equal(part + (i * 41 + 40 - k) * 3,
					    all + ((57 + i) * 150 + 13 + k) * 3,
					    3);
	free(all);
	free(part);
	free(s.p);
}

/* In planes or not, mirrored or not. */
static void check_copy(enum tsi_simd level, bool planes, bool mirror,
		       uint32_t first, uint32_t count)
{
	struct resized_picture s = resized_make(131, 37, 4);
	struct tsi_axis x = resized_whole(131, 131), y = resized_whole(37, 37);
	uint8_t *got;

	x.first = first;
	x.count = count;
	x.mirror = mirror;
	y.first = 3;
	y.count = 34;
	got = resized_as(level, planes, &s, &x, &y, TSI_PASSES_13, 16);
	for (uint32_t i = 0; i < 34; i++)
		for (uint32_t k = 0; k < count; k++) {
			uint32_t at = first + (mirror ? count - 1 - k : k);

			assert_memory_equal(got + (i * count + k) * 3,
					    s.p + (3 + i) * s.stride + at * 4,
					    3);
		}
	free(got);
	free(s.p);
}

static void the_same_size_is_a_copy(void **state)
{
	static const enum tsi_simd level[] = { TSI_SIMD_SCALAR, TSI_SIMD_BEST };

	(void)state;
	for (unsigned k = 0; k < 8; k++) {
		check_copy(level[k % 2], k & 2, k & 4, 0, 131);
		check_copy(level[k % 2], k & 2, k & 4, 5, 1);
		check_copy(level[k % 2], k & 2, k & 4, 60, 71);
	}
}

static bool differ(uint32_t w, uint32_t h, uint32_t size)
{
	struct resized_picture s = resized_make(w, h, 4);
	struct tsi_axis x = resized_whole(w, size), y = resized_whole(h, size);
	uint8_t *a = resized(TSI_SIMD_BEST, &s, &x, &y, TSI_PASSES_12, 16);
	uint8_t *b = resized(TSI_SIMD_BEST, &s, &x, &y, TSI_PASSES_13, 16);
	bool d = memcmp(a, b, (size_t)size * size * 3) != 0;

	free(a);
	free(b);
	free(s.p);
	return d;
}

/* The boundaries were found by trying Pillow 13. */
static void the_vertical_pass_is_first_where_pillow_13_has_it_so(void **state)
{
	(void)state;
	assert_false(differ(60, 70, 50));
	assert_true(differ(60, 71, 50));
	assert_false(differ(100, 150, 50));
	assert_true(differ(100, 151, 50));
	assert_false(differ(40, 50, 50));
	assert_true(differ(40, 51, 50));
	assert_false(differ(150, 40, 50));
}

/* Nine pixels, in which filters with lobes leave 0..255, resized by Pillow. */
static const uint8_t nine[9] = { 0, 255, 13, 200, 255, 255, 0, 90, 31 };

static const struct known {
	enum tsi_filter filter;
	uint8_t fewer[4];
	uint8_t more[14];
} knowns[] = {
	{ TSI_FILTER_BILINEAR,
	  { 112, 167, 173, 50 },
	  { 0, 118, 229, 74, 86, 202, 237, 255, 255, 100, 23, 80, 58, 31 } },
	{ TSI_FILTER_NEAREST,
	  { 255, 200, 255, 90 },
	  { 0, 0, 255, 13, 13, 200, 255, 255, 255, 0, 0, 90, 31, 31 } },
	{ TSI_FILTER_BOX,
	  { 128, 156, 128, 61 },
	  { 0, 0, 255, 13, 13, 200, 255, 255, 255, 0, 0, 90, 31, 31 } },
	{ TSI_FILTER_HAMMING,
	  { 127, 158, 181, 57 },
	  { 0, 106, 252, 31, 63, 200, 247, 255, 255, 68, 7, 89, 56, 31 } },
	{ TSI_FILTER_BICUBIC,
	  { 106, 173, 180, 42 },
	  { 0, 122, 248, 55, 62, 204, 246, 255, 255, 87, 2, 85, 61, 27 } },
	{ TSI_FILTER_LANCZOS,
	  { 96, 183, 183, 31 },
	  { 0, 131, 251, 62, 41, 207, 249, 255, 255, 81, 0, 81, 69, 23 } },
};

static void check_known(const struct resized_picture *s, bool down,
			enum tsi_filter filter, const uint8_t *want, uint32_t n)
{
	struct tsi_axis line = resized_whole(9, n), one = resized_whole(1, 1);
	uint8_t *got;

	line.filter = one.filter = filter;
	got = resized(TSI_SIMD_SCALAR, s, down ? &one : &line,
		      down ? &line : &one, TSI_PASSES_13, 16);
	for (uint32_t i = 0; i < 3 * n; i++)
		assert_int_equal(got[i], want[i / 3]);
	free(got);
}

static void every_filter_gives_what_pillow_gives(void **state)
{
	struct resized_picture across = resized_make(9, 1, 1);
	struct resized_picture down = resized_make(1, 9, 1);

	(void)state;
	for (size_t i = 0; i < 9; i++) {
		memset(across.p + 4 * i, nine[i], 4);
		memset(down.p + i * down.stride, nine[i], 4);
	}
	for (size_t i = 0; i < sizeof(knowns) / sizeof(knowns[0]); i++) {
		const struct known *k = &knowns[i];

		check_known(&across, false, k->filter, k->fewer, 4);
		check_known(&across, false, k->filter, k->more, 14);
		check_known(&down, true, k->filter, k->fewer, 4);
		check_known(&down, true, k->filter, k->more, 14);
	}
	free(across.p);
	free(down.p);
}

/* What the vector code counts on, and what rows are held by. */
static void check_taps(enum tsi_filter filter, uint32_t in, uint32_t out)
{
	struct tsi_axis a = resized_whole(in, out);
	struct tsi_taps t = { 0 };

	a.filter = filter;
	assert_int_equal(tsi_taps_make(&t, &a), 0);
	assert_true(t.memory.len <= tsi_taps_need(&a));
	assert_true(tsi_taps_most(&t) <= tsi_taps_widest(&a));
	for (uint32_t i = 0; i < out; i++) {
		const int32_t *w = t.weight + (size_t)i * t.pad;
		int64_t above = 0, below = 0;

		for (uint32_t k = 0; k < t.pad; k++) {
			assert_true(k < t.count[i] || !w[k]);
			*(w[k] < 0 ? &below : &above) += w[k];
		}
		assert_true(t.first[i] + t.count[i] <= in);
		assert_true(llabs(above + below - (1 << TSI_WEIGHT_BITS)) <=
			    t.count[i]);
		assert_true(above < 2 << TSI_WEIGHT_BITS);
		if (!i)
			continue;
		assert_true(t.first[i] >= t.first[i - 1]);
		assert_true(t.first[i] + t.count[i] >=
			    t.first[i - 1] + t.count[i - 1]);
	}
	tsi_taps_fini(&t);
}

static void weights_stay_within_their_bounds(void **state)
{
	static const uint32_t odd[] = { 97, 224, 500, 4001 };

	(void)state;
	for (int f = 0; f <= TSI_FILTER_LANCZOS; f++) {
		for (uint32_t in = 1; in <= 40; in++)
			for (uint32_t out = 1; out <= 80; out++)
				check_taps((enum tsi_filter)f, in, out);
		for (size_t i = 0; i < 16; i++)
			check_taps((enum tsi_filter)f, odd[i / 4], odd[i % 4]);
	}
}

static double lanczos(double x)
{
	double p = x * M_PI, q = x / 3 * M_PI;

	if (!(x >= -3 && x < 3))
		return 0;
	return x == 0 ? 1 : sin(p) / p * (sin(q) / q);
}

/* All of them by their definition, of which our code has a shorter way. */
static void check_lanczos(uint32_t in, uint32_t out)
{
	struct tsi_axis a = resized_whole(in, out);
	double scale = (double)in / out, wide = scale < 1 ? 1 : scale;
	struct tsi_taps t = { 0 };

	a.filter = TSI_FILTER_LANCZOS;
	assert_int_equal(tsi_taps_make(&t, &a), 0);
	for (uint32_t i = 0; i < out && in != out; i++) {
		const int32_t *w = t.weight + (size_t)i * t.pad;
		double sum = 0, centre = (i + 0.5) * scale;

		for (uint32_t x = 0; x < in; x++)
			sum += lanczos((x - centre + 0.5) * (1 / wide));
		for (uint32_t k = 0; k < t.count[i]; k++) {
			double x = t.first[i] + k - centre + 0.5;

			assert_int_equal(w[k],
					 lround(lanczos(x * (1 / wide)) / sum *
						(1 << TSI_WEIGHT_BITS)));
		}
	}
	tsi_taps_fini(&t);
}

static void weights_of_lanczos_are_those_of_its_formula(void **state)
{
	(void)state;
	for (uint32_t in = 1; in <= 60; in++)
		for (uint32_t out = 1; out <= 60; out += 1 + out / 9)
			check_lanczos(in, out);
	for (uint32_t in = 100; in < 4000; in += in / 3)
		check_lanczos(in, 97);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_resized_pixel_is_the_weighted_mean_of_its_surroundings),
		cmocka_unit_test(
			planes_are_left_where_an_image_shrinks_too_far),
		cmocka_unit_test(a_window_is_a_part_of_the_whole),
		cmocka_unit_test(the_same_size_is_a_copy),
		cmocka_unit_test(
			the_vertical_pass_is_first_where_pillow_13_has_it_so),
		cmocka_unit_test(every_filter_gives_what_pillow_gives),
		cmocka_unit_test(weights_stay_within_their_bounds),
		cmocka_unit_test(weights_of_lanczos_are_those_of_its_formula),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
