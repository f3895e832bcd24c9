/* SPDX-License-Identifier: MIT */
/*
 * test_resample.c - the vector kernels against the scalar one, and that one
 * against a plain statement of the formula.  test/parity compares with Pillow.
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

struct picture {
	uint32_t width;
	uint32_t height;
	size_t stride;
	uint8_t *p;
};

/* Nothing behind the last row but what the contract asks for. */
static struct picture make_picture(uint32_t width, uint32_t height,
				   uint64_t seed)
{
	struct picture s = { width, height, (size_t)width * 4 + 5, NULL };
	size_t len =
		s.stride * (height - 1) + (size_t)width * 4 + TSI_ROW_SLACK;

	s.p = malloc(len);
	for (size_t i = 0; i < len; i++)
		s.p[i] = (uint8_t)image_gen_random(&seed);
	/* Whole stretches of the extremes, where rounding could overflow. */
	for (size_t i = 0; i < len / 3; i++)
		s.p[i] = seed & 1 ? 255 : 0;
	return s;
}

/* Rows of the picture in planes, and nothing more than the contract asks. */
static void in_planes(const struct picture *s, const struct tsi_rect *r,
		      struct tsi_strip *part, uint32_t at)
{
	size_t plane = r->width + TSI_PLANE_SLACK;
	uint8_t *to = malloc(3 * plane * part->rows);

	part->stride = 3 * plane;
	part->plane = plane;
	part->pixels = to;
	for (size_t i = 0; i < part->rows * 3; i++, to += plane) {
		const uint8_t *from = s->p + (r->top + at + i / 3) * s->stride +
				      r->left * 4 + i % 3;

		memset(to, 0xa5, plane);
		for (uint32_t k = 0; k < r->width; k++)
			to[k] = from[4 * k];
	}
}

static uint8_t *resize_as(enum tsi_simd simd, bool planes,
			  const struct picture *s, const struct tsi_axis *x,
			  const struct tsi_axis *y, enum tsi_passes passes,
			  uint32_t strip)
{
	size_t stride = (size_t)x->count * 3;
	uint8_t *dst = malloc(stride * y->count);
	struct tsi_resample *r;
	struct tsi_rect need;

	assert_int_equal(tsi_resample_create(simd, &r), 0);
	assert_int_equal(
		tsi_resample_begin(r, x, y, passes, planes, dst, stride, &need),
		0);
	assert_true(need.left + need.width <= s->width);
	assert_true(need.top + need.height <= s->height);
	for (uint32_t at = 0; at < need.height; at += strip) {
		struct tsi_strip part = {
			s->p + (need.top + at) * s->stride + need.left * 4,
			s->stride,
			need.height - at < strip ? need.height - at : strip,
			0,
		};

		if (tsi_resample_planes(r))
			in_planes(s, &need, &part, at);
		tsi_resample_push(r, &part);
		if (tsi_resample_planes(r))
			free((void *)(uintptr_t)part.pixels);
	}
	tsi_resample_destroy(r);
	return dst;
}

static uint8_t *resize(enum tsi_simd simd, const struct picture *s,
		       const struct tsi_axis *x, const struct tsi_axis *y,
		       enum tsi_passes passes, uint32_t strip)
{
	return resize_as(simd, false, s, x, y, passes, strip);
}

static struct tsi_axis whole(uint32_t in, uint32_t out)
{
	return (struct tsi_axis){ .in = in, .out = out, .count = out };
}

/* One output value, from the definition. */
static double weigh(uint32_t in, uint32_t out, uint32_t i, uint32_t k)
{
	double scale = (double)in / out, support = scale < 1 ? 1 : scale;
	double d = fabs((k + 0.5 - (i + 0.5) * scale) / support);

	return d < 1 ? 1 - d : 0;
}

static void a_resized_pixel_is_the_weighted_mean_of_its_surroundings(void **st)
{
	struct picture s = make_picture(37, 53, 5);
	struct tsi_axis x = whole(37, 20), y = whole(53, 64);
	uint8_t *got = resize(TSI_SIMD_SCALAR, &s, &x, &y, TSI_PASSES_12, 16);

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

static void compare(enum tsi_simd simd, bool planes, uint64_t *r, uint32_t top)
{
	uint32_t w = 1 + image_gen_random(r) % top;
	uint32_t h = 1 + image_gen_random(r) % top;
	struct picture s = make_picture(w, h, *r);
	struct tsi_axis x = whole(w, 1 + image_gen_random(r) % 300);
	struct tsi_axis y = whole(h, 1 + image_gen_random(r) % 300);
	enum tsi_passes passes = image_gen_random(r) % 2;
	uint8_t *a, *b;

	x.first = image_gen_random(r) % x.out;
	x.count = 1 + image_gen_random(r) % (x.out - x.first);
	y.first = image_gen_random(r) % y.out;
	y.count = 1 + image_gen_random(r) % (y.out - y.first);
	x.mirror = image_gen_random(r) % 2;
	a = resize(TSI_SIMD_SCALAR, &s, &x, &y, passes, 16);
	b = resize_as(simd, planes, &s, &x, &y, passes,
		      1 + image_gen_random(r) % 16);
	assert_memory_equal(a, b, (size_t)x.count * y.count * 3);
	free(a);
	free(b);
	free(s.p);
}

static void kernel_equals_scalar(enum tsi_simd simd, bool planes)
{
	struct tsi_resample *r;
	uint64_t state = 11;

	if (tsi_resample_create(simd, &r)) {
		print_message("not on this processor\n");
		skip();
	}
	tsi_resample_destroy(r);
	for (int i = 0; i < 300; i++)
		compare(simd, planes, &state, i % 10 ? 200 : 1500);
}

static void avx2_gives_the_bits_of_scalar(void **state)
{
	(void)state;
	kernel_equals_scalar(TSI_SIMD_AVX2, false);
}

static void avx512_gives_the_bits_of_scalar(void **state)
{
	(void)state;
	kernel_equals_scalar(TSI_SIMD_AVX512, false);
}

static void neon_gives_the_bits_of_scalar(void **state)
{
	(void)state;
	kernel_equals_scalar(TSI_SIMD_NEON, false);
}

static void planes_give_the_bits_of_pixels(void **state)
{
	(void)state;
	kernel_equals_scalar(TSI_SIMD_AVX512, true);
}

/* As wide a reduction as planes are for, and one more. */
static void planes_are_left_where_an_image_shrinks_too_far(void **state)
{
	struct tsi_axis same = whole(20, 20);
	uint8_t dst[64 * 20 * 3];
	struct tsi_resample *r;
	struct tsi_rect need;
	bool planes = true;

	(void)state;
	if (tsi_resample_create(TSI_SIMD_AVX512, &r)) {
		print_message("not on this processor\n");
		skip();
	}
	for (uint32_t in = 64; in <= 64 * 6; in += 8) {
		struct tsi_axis x = whole(in, 64);
		bool before = planes;

		assert_int_equal(tsi_resample_begin(r, &x, &same, TSI_PASSES_13,
						    true, dst, 64 * 3, &need),
				 0);
		planes = tsi_resample_planes(r);
		assert_true(planes || in > 64 * 3);
		assert_true(before || !planes);
		if (planes) {
			struct picture s = make_picture(in, 20, in);
			uint8_t *a = resize(TSI_SIMD_SCALAR, &s, &x, &same,
					    TSI_PASSES_13, 16);
			uint8_t *b = resize_as(TSI_SIMD_AVX512, true, &s, &x,
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
	struct picture s = make_picture(300, 200, 3);
	struct tsi_axis x = whole(300, 150), y = whole(200, 100);
	struct tsi_axis wx = x, wy = y;
	uint8_t *all, *part;

	(void)state;
	wx.first = 13;
	wx.count = 41;
	wx.mirror = true;
	wy.first = 57;
	wy.count = 43;
	all = resize(TSI_SIMD_BEST, &s, &x, &y, TSI_PASSES_13, 16);
	part = resize(TSI_SIMD_BEST, &s, &wx, &wy, TSI_PASSES_13, 7);
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
	struct picture s = make_picture(31, 17, 4);
	struct tsi_axis x = whole(31, 31), y = whole(17, 17);
	uint8_t *got = resize(TSI_SIMD_BEST, &s, &x, &y, TSI_PASSES_13, 16);

	(void)state;
	for (uint32_t i = 0; i < 31 * 17; i++)
		assert_memory_equal(got + i * 3,
				    s.p + i / 31 * s.stride + i % 31 * 4, 3);
	free(got);
	free(s.p);
}

static bool differ(uint32_t w, uint32_t h, uint32_t size)
{
	struct picture s = make_picture(w, h, 4);
	struct tsi_axis x = whole(w, size), y = whole(h, size);
	uint8_t *a = resize(TSI_SIMD_BEST, &s, &x, &y, TSI_PASSES_12, 16);
	uint8_t *b = resize(TSI_SIMD_BEST, &s, &x, &y, TSI_PASSES_13, 16);
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

static void a_missing_instruction_set_is_an_error_not_a_crash(void **state)
{
	struct tsi_resample *r = NULL;
	int err = tsi_resample_create(TSI_SIMD_AVX2, &r);

	(void)state;
	if (err)
		assert_int_equal(err, TSOCK_ENOTSUP);
	else
		assert_string_equal(tsi_resample_name(r), "avx2");
	tsi_resample_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_resized_pixel_is_the_weighted_mean_of_its_surroundings),
		cmocka_unit_test(avx2_gives_the_bits_of_scalar),
		cmocka_unit_test(avx512_gives_the_bits_of_scalar),
		cmocka_unit_test(neon_gives_the_bits_of_scalar),
		cmocka_unit_test(planes_give_the_bits_of_pixels),
		cmocka_unit_test(
			planes_are_left_where_an_image_shrinks_too_far),
		cmocka_unit_test(a_window_is_a_part_of_the_whole),
		cmocka_unit_test(the_same_size_is_a_copy),
		cmocka_unit_test(
			the_vertical_pass_is_first_where_pillow_13_has_it_so),
		cmocka_unit_test(
			a_missing_instruction_set_is_an_error_not_a_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
