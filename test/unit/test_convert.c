/* SPDX-License-Identifier: MIT */
/*
 * test_convert.c - the conversion of images: against the definition written
 * out anew, level by level, over every value, odd sizes and odd addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/convert.h"
#include "convert/impl.h"

#define GUARD 128
#define GUARD_BYTE 0xa5

static const uint32_t dtypes[] = { TSOCK_U8, TSOCK_F16, TSOCK_BF16, TSOCK_F32 };
static const uint32_t layouts[] = { TSOCK_HWC, TSOCK_CHW };
static const struct {
	uint64_t h, w;
} sizes[] = { { 1, 1 },   { 3, 5 },     { 1, 15 },   { 4, 4 },   { 1, 17 },
	      { 7, 9 },   { 8, 8 },     { 5, 13 },   { 31, 33 }, { 16, 128 },
	      { 43, 48 }, { 224, 224 }, { 299, 299 } };

static struct tsi_view_spec imagenet(uint32_t dtype, uint32_t layout,
				     uint32_t normalize)
{
	struct tsi_view_spec s = { .dtype = dtype,
				   .layout = layout,
				   .normalize = normalize,
				   .mean = { 0.485f, 0.456f, 0.406f },
				   .std = { 0.229f, 0.224f, 0.225f } };

	return s;
}

/* Volatile: each step must be a float32 by itself, whatever the flags. */
static float definition(const struct tsi_view_spec *s, int ch, int v)
{
	volatile float x = (float)v;

	if (s->normalize != TSOCK_RAW)
		x = x / 255.0f;
	if (s->normalize == TSOCK_MEAN_STD) {
		x = x - s->mean[ch];
		x = x / s->std[ch];
	}
	return x;
}

static double half_value(unsigned bits)
{
	double mant = bits & 0x3ff;
	int exp = bits >> 10 & 31;

	if (exp == 31)
		return 65536; /* where infinity begins when rounding */
	return exp ? ldexp(1024 + mant, exp - 25) : ldexp(mant, -24);
}

static double bfloat_value(unsigned bits)
{
	uint32_t u = bits << 16;
	float f;

	memcpy(&f, &u, sizeof(f));
	return isinf(f) ? ldexp(1, 128) : (double)f;
}

/* Nearest of all finite encodings and infinity; of two, the even one. */
static uint16_t nearest(float f, double (*value)(unsigned), unsigned inf)
{
	double x = fabs((double)f);
	unsigned low = 0, high = inf;
	unsigned sign = signbit(f) ? 0x8000 : 0;
	double a, b;

	if (isinf(f))
		return (uint16_t)(sign | inf);
	while (high - low > 1) {
		unsigned mid = (low + high) / 2;

		if (value(mid) <= x)
			low = mid;
		else
			high = mid;
	}
	a = x - value(low);
	b = value(high) - x;
	if (b < a || (b == a && (high & 1) == 0))
		low = high;
	return (uint16_t)(sign | low);
}

static void expected(const struct tsi_view_spec *s, int ch, int v, uint8_t *out)
{
	float f = definition(s, ch, v);
	uint16_t u;

	switch (s->dtype) {
	case TSOCK_U8:
		*out = (uint8_t)v;
		return;
	case TSOCK_F32:
		memcpy(out, &f, sizeof(f));
		return;
	case TSOCK_F16:
		u = nearest(f, half_value, 0x7c00);
		break;
	default:
		u = nearest(f, bfloat_value, 0x7f80);
	}
	memcpy(out, &u, sizeof(u));
}

/* What each() has got to. */
static enum tsi_simd level;

static size_t width_of(uint32_t dtype)
{
	return dtype == TSOCK_U8 ? 1 : dtype == TSOCK_F32 ? 4 : 2;
}

/* What a level has for a spec. */
static tsi_convert_fn *version(enum tsi_simd at, const struct tsi_view_spec *s)
{
	struct tsi_convert_kernel k;

	tsi_convert_kernel_init(&k, at);
	return tsi_convert_kernel_for(&k, s);
}

/* Convert into the middle of a guarded buffer, offset by elements. */
static void check_channels(const struct tsi_convert *c, const uint8_t *src,
			   uint64_t h, uint64_t w, size_t channels,
			   size_t offset)
{
	const struct tsi_view_spec *s = &c->spec;
	const uint64_t shape[] = { h, w, channels };
	size_t width = width_of(s->dtype), n = (size_t)(h * w);
	size_t len = n * channels * width, before = GUARD + offset * width;
	size_t room = (before + len + GUARD + 63) & ~(size_t)63;
	uint8_t table[3][256][4];
	uint8_t *buf = aligned_alloc(64, room), *dst = buf + before;

	assert_non_null(buf);
	for (int i = 0; i < 3 * 256; i++)
		expected(s, i / 256, i % 256, table[i / 256][i % 256]);
	memset(buf, GUARD_BYTE, room);
	tsi_convert_image(c, shape, src, dst);
	for (size_t i = 0; i < before; i++)
		assert_int_equal(buf[i], GUARD_BYTE);
	for (size_t i = before + len; i < room; i++)
		assert_int_equal(buf[i], GUARD_BYTE);
	for (size_t i = 0; i < n * channels; i++) {
		size_t pixel = i / channels, ch = i % channels;
		size_t at = s->layout == TSOCK_CHW ? ch * n + pixel : i;

		if (memcmp(dst + at * width, table[ch][src[i]], width))
			fail_msg("level %s, dtype %u, layout %u, normalize %u, "
				 "%ux%u, offset %zu: pixel %zu channel %zu "
				 "value %u",
				 tsi_simd_name(level), s->dtype, s->layout,
				 s->normalize, (unsigned)h, (unsigned)w, offset,
				 pixel, ch, src[i]);
	}
	free(buf);
}

static void check_image(const struct tsi_convert *c, const uint8_t *src,
			uint64_t h, uint64_t w, size_t offset)
{
	check_channels(c, src, h, w, 3, offset);
}

/* Exactly as large as an image, so that a sanitizer sees a read beyond. */
static uint8_t *image(size_t n, unsigned seed)
{
	uint8_t *p = malloc(n * 3);

	assert_non_null(p);
	for (size_t i = 0; i < n * 3; i++) {
		seed = seed * 1664525u + 1013904223u;
		p[i] = (uint8_t)(seed >> 24);
	}
	return p;
}

/* Each version that this processor's levels have, and each spec. */
static void each(void (*fn)(const struct tsi_convert *c))
{
	for (level = TSI_SIMD_SCALAR; level <= tsi_simd_best(); level++) {
		unsigned own = 0;

		for (unsigned j = 0; j < 4 * 2 * 3; j++) {
			struct tsi_view_spec s = imagenet(
				dtypes[j / 6], layouts[j / 3 % 2], j % 3);
			tsi_convert_fn *run = version(level, &s);
			struct tsi_convert *c;

			if (tsi_view_spec_check(&s) ||
			    (level && run == version(level - 1, &s)))
				continue;
			own++;
			assert_int_equal(tsi_convert_create(&s, &c), 0);
			c->run = run;
			fn(c);
			tsi_convert_destroy(c);
		}
		print_message("%s: %u specs\n", tsi_simd_name(level), own);
		if (level == TSI_SIMD_SCALAR)
			assert_int_equal(own, 2 + 3 * 2 * 3);
		else
			assert_int_not_equal(own, 0);
	}
}

static void all_values_once(const struct tsi_convert *c)
{
	uint8_t *src = malloc((size_t)256 * 3);

	assert_non_null(src);
	for (int i = 0; i < 256 * 3; i++)
		src[i] = (uint8_t)(i / 3 + i % 3 * 85);
	check_image(c, src, 16, 16, 0);
	free(src);
}

static void every_level_gives_every_value_as_defined(void **state)
{
	(void)state;
	each(all_values_once);
}

static void all_sizes(const struct tsi_convert *c)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t h = sizes[i].h, w = sizes[i].w;
		uint8_t *src = image((size_t)(h * w), (unsigned)i);

		check_image(c, src, h, w, 0);
		check_image(c, src, h, w, 1);
		free(src);
	}
}

static void odd_sizes_are_exact_and_stay_in_their_bytes(void **state)
{
	(void)state;
	each(all_sizes);
}

static void all_offsets(const struct tsi_convert *c)
{
	uint8_t *src = image(64 * 5, 7);

	for (size_t offset = 0; offset < 64; offset++)
		check_image(c, src, 5, 64, offset);
	free(src);
}

static void any_aligned_element_is_a_place_to_write(void **state)
{
	(void)state;
	each(all_offsets);
}

/* One behind the other, in both layouts: the version of HWC makes them. */
static void one_channel(const struct tsi_convert *c)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t h = sizes[i].h, w = sizes[i].w;
		size_t n = (size_t)(h * w);
		uint8_t *all = image(n, (unsigned)i), *src = malloc(n);

		assert_non_null(src);
		memcpy(src, all, n);
		if (c->spec.layout == TSOCK_HWC)
			c->grey->run = c->run;
		check_channels(c, src, h, w, 1, i % 3);
		free(src);
		free(all);
	}
}

static void images_of_one_channel_have_the_first_mean_and_std(void **state)
{
	(void)state;
	each(one_channel);
}

static void no_pixels_write_nothing(void **state)
{
	struct tsi_view_spec s = imagenet(TSOCK_F32, TSOCK_CHW, TSOCK_UNIT);
	struct tsi_convert *c;
	const uint64_t none[] = { 0, 5, 3 }, grey[] = { 0, 5, 1 };
	uint8_t src = 0, dst = GUARD_BYTE;

	(void)state;
	assert_int_equal(tsi_convert_create(&s, &c), 0);
	tsi_convert_image(c, none, &src, &dst);
	tsi_convert_image(c, grey, &src, &dst);
	assert_int_equal(dst, GUARD_BYTE);
	tsi_convert_destroy(c);
	tsi_convert_destroy(NULL);
}

/* What create chose must be the definition for numbers of any kind. */
static void awkward_numbers_are_still_the_definition(void **state)
{
	static const float odd[][2] = {
		{ 0, 1 },
		{ 0.5f, -0.5f },
		{ -3, 7 },
		{ 0.1f, 1e-5f },
		{ 0, 1e-7f },
		{ 0, 1e-30f },
		{ 1e30f, 1 },
		{ 0, 1e38f },
		{ 0.3f, 1e-45f },
		{ 0, 3e7f },
		{ 0, 5e5f },
		{ 1, 3 },
		{ 0.4914f, 0.2023f },
		{ 0.5f, 6.1e-5f },
		{ 0, 1.1e-40f },
		{ 3e38f, 1e-3f },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		for (unsigned j = 0; j < 6; j++) {
			struct tsi_view_spec s =
				imagenet(dtypes[1 + j / 2], layouts[j % 2],
					 TSOCK_MEAN_STD);
			struct tsi_convert *c;

			s.mean[i % 3] = odd[i][0];
			s.std[i % 3] = odd[i][1];
			assert_int_equal(tsi_convert_create(&s, &c), 0);
			all_values_once(c);
			tsi_convert_destroy(c);
		}
	}
}

/* Else speed is lost without anybody seeing it. */
static void usual_numbers_take_the_best_version(void **state)
{
	(void)state;
	for (unsigned j = 0; j < 4 * 2 * 3; j++) {
		struct tsi_view_spec s =
			imagenet(dtypes[j / 6], layouts[j / 3 % 2], j % 3);
		struct tsi_convert *c;

		if (tsi_view_spec_check(&s))
			continue;
		assert_int_equal(tsi_convert_create(&s, &c), 0);
		assert_ptr_equal(c->run, version(tsi_simd_best(), &s));
		tsi_convert_destroy(c);
	}
}

/* 1 - mean and its quotient are exact in each row but two. */
static void half_rounds_at_its_limits_as_ieee_says(void **state)
{
	static const struct {
		float mean, std;
		uint16_t bits; /* of (1 - mean) / std */
	} rows[] = {
		{ 0, 1, 0x3c00 },                /* 1 */
		{ 0, -1, 0xbc00 },               /* -1 */
		{ 0, 0x1p-16f, 0x7c00 },         /* infinity */
		{ 0x1p-11f, 0x1p-16f, 0x7bff },  /* the largest, 65504 */
		{ 0x1p-12f, 0x1p-16f, 0x7c00 },  /* 65520, a tie */
		{ 0x11p-16f, 0x1p-16f, 0x7bff }, /* 65519 */
		{ 0, 0x1p14f, 0x0400 },          /* the smallest normal */
		{ 0, 0x1p15f, 0x0200 },          /* subnormal */
		{ 0, 0x1p24f, 0x0001 },          /* the smallest */
		{ 0, 0x1p25f, 0x0000 },          /* half of it: a tie to 0 */
		{ 0, 33554430.0f, 0x0001 },      /* just above that */
		{ 0.25f, 0x1p22f, 0x0003 },      /* 3 units */
		{ 0.375f, 0x1p22f, 0x0002 },     /* 2.5 units, a tie to 2 */
		{ 0.125f, 0x1p22f, 0x0004 },     /* 3.5 units, a tie to 4 */
		{ 0, 1e-30f, 0x7c00 },           /* far too large */
	};
	const uint64_t one[] = { 1, 1, 3 };
	uint8_t src[3] = { 255, 255, 255 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tsi_view_spec s =
			imagenet(TSOCK_F16, TSOCK_HWC, TSOCK_MEAN_STD);
		struct tsi_convert *c;
		uint16_t got[3];

		s.mean[1] = rows[i].mean;
		s.std[1] = rows[i].std;
		assert_int_equal(tsi_convert_create(&s, &c), 0);
		tsi_convert_image(c, one, src, got);
		if (got[1] != rows[i].bits)
			fail_msg("row %zu: %04x, not %04x", i, got[1],
				 rows[i].bits);
		all_values_once(c);
		tsi_convert_destroy(c);
	}
}

static void a_spec_without_sense_makes_no_converter(void **state)
{
	struct tsi_view_spec bad[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		bad[i] = imagenet(TSOCK_F32, TSOCK_CHW, TSOCK_MEAN_STD);
	bad[0].dtype = TSOCK_I64;
	bad[1].layout = 2;
	bad[2].std[1] = 0;
	for (int i = 0; i < 3; i++) {
		struct tsi_convert *c = (void *)&bad;

		assert_int_equal(tsi_convert_create(&bad[i], &c), TSOCK_EARG);
		assert_ptr_equal(c, &bad);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_level_gives_every_value_as_defined),
		cmocka_unit_test(odd_sizes_are_exact_and_stay_in_their_bytes),
		cmocka_unit_test(any_aligned_element_is_a_place_to_write),
		cmocka_unit_test(
			images_of_one_channel_have_the_first_mean_and_std),
		cmocka_unit_test(no_pixels_write_nothing),
		cmocka_unit_test(awkward_numbers_are_still_the_definition),
		cmocka_unit_test(usual_numbers_take_the_best_version),
		cmocka_unit_test(half_rounds_at_its_limits_as_ieee_says),
		cmocka_unit_test(a_spec_without_sense_makes_no_converter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
