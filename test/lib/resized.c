/* SPDX-License-Identifier: MIT */
/*
 * resized.c - pictures to resize, and what the resampler makes of them.
 */
#include "test/lib/resized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/lib/image_gen.h"

/* Nothing behind the last row but what the contract asks for. */
struct resized_picture resized_make(uint32_t width, uint32_t height,
				    uint64_t seed)
{
	struct resized_picture s = { width, height, (size_t)width * 4 + 5,
				     NULL };
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
static void in_planes(const struct resized_picture *s, const struct tsi_rect *r,
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

uint8_t *resized_as(enum tsi_simd simd, bool planes,
		    const struct resized_picture *s, const struct tsi_axis *x,
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

uint8_t *resized(enum tsi_simd simd, const struct resized_picture *s,
		 const struct tsi_axis *x, const struct tsi_axis *y,
		 enum tsi_passes passes, uint32_t strip)
{
	return resized_as(simd, false, s, x, y, passes, strip);
}

struct tsi_axis resized_whole(uint32_t in, uint32_t out)
{
	return (struct tsi_axis){ .in = in, .out = out, .count = out };
}
