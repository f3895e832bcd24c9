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
	struct tsi_axis same = resized_whole(20, 20);
	uint8_t dst[64 * 20 * 3];
	struct tsi_resample *r;
	struct tsi_rect need;
	bool planes = true;

	(void)state;
	assert_int_equal(tsi_resample_create(TSI_SIMD_BEST, &r), 0);
	assert_int_equal(tsi_resample_begin(r, &same, &same, TSI_PASSES_13,
					    true, dst, 20 * 3, &need),
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

static void the_same_size_is_a_copy(void **state)
{
	struct resized_picture s = resized_make(31, 17, 4);
	struct tsi_axis x = resized_whole(31, 31), y = resized_whole(17, 17);
	uint8_t *got = resized(TSI_SIMD_BEST, &s, &x, &y, TSI_PASSES_13, 16);

	(void)state;
	for (uint32_t i = 0; i < 31 * 17; i++)
		assert_memory_equal(got + i * 3,
				    s.p + i / 31 * s.stride + i % 31 * 4, 3);
	free(got);
	free(s.p);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
