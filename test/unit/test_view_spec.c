/* SPDX-License-Identifier: MIT */
/*
 * test_view_spec.c - what a view is: which specs make sense, which are equal,
 * and what a spec makes of a stored field.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "view/spec.h"

static struct tsi_view_spec spec_of(uint32_t dtype, uint32_t layout,
				    uint32_t normalize)
{
	struct tsi_view_spec s = { .dtype = dtype,
				   .layout = layout,
				   .normalize = normalize,
				   .mean = { 0.485f, 0.456f, 0.406f },
				   .std = { 0.229f, 0.224f, 0.225f } };

	return s;
}

static void refused(struct tsi_view_spec s, const char *named)
{
	assert_int_equal(tsi_view_spec_check(&s), TSOCK_EARG);
	if (!strstr(tsock_errmsg(), named))
		fail_msg("\"%s\" doesn't name %s", tsock_errmsg(), named);
}

static void a_spec_without_sense_is_refused_by_name(void **state)
{
	struct tsi_view_spec good =
		spec_of(TSOCK_F32, TSOCK_CHW, TSOCK_MEAN_STD);
	struct tsi_view_spec s;

	(void)state;
	assert_int_equal(tsi_view_spec_check(&good), 0);
	for (int c = 0; c < 3; c++) {
		float bad[] = { 0, -0.0f, NAN, INFINITY, -INFINITY };
		char name[32];

		snprintf(name, sizeof(name), "channel %d", c);
		for (int i = 0; i < 5; i++) {
			s = good;
			s.std[c] = bad[i];
			refused(s, "std");
			refused(s, name);
			if (i < 2)
				continue;
			s = good;
			s.mean[c] = bad[i];
			refused(s, "mean");
			refused(s, name);
		}
	}
	s = good, s.dtype = TSOCK_U8;
	refused(s, "u8");
	s.normalize = TSOCK_UNIT;
	refused(s, "u8");
	s.normalize = TSOCK_RAW;
	assert_int_equal(tsi_view_spec_check(&s), 0);
	s = good, s.dtype = TSOCK_I64;
	refused(s, "dtype");
	s.dtype = 0;
	refused(s, "dtype");
	s.dtype = 99;
	refused(s, "99");
	s = good, s.layout = 2;
	refused(s, "layout");
	s = good, s.normalize = 3;
	refused(s, "normalize");
	/* What isn't used isn't judged. */
	s = good, s.normalize = TSOCK_UNIT, s.std[1] = 0, s.mean[0] = NAN;
	assert_int_equal(tsi_view_spec_check(&s), 0);
}

static void a_field_takes_dtype_and_layout_and_keeps_its_name(void **state)
{
	struct tsock_field in = { "image", TSOCK_U8, TSOCK_FIELD_IMAGE,
				  3,       0,        { 20, 30, 3, 0 } };
	struct tsock_field out;
	struct tsi_view_spec s = spec_of(TSOCK_F16, TSOCK_CHW, TSOCK_UNIT);

	(void)state;
	tsi_view_spec_field(&s, &in, &out);
	assert_string_equal(out.name, "image");
	assert_int_equal(out.dtype, TSOCK_F16);
	assert_int_equal(out.ndim, 3);
	assert_int_equal(out.flags & TSOCK_FIELD_IMAGE, 0);
	assert_int_equal(out.shape[0], 3);
	assert_int_equal(out.shape[1], 20);
	assert_int_equal(out.shape[2], 30);
	s.layout = TSOCK_HWC;
	tsi_view_spec_field(&s, &in, &out);
	assert_int_equal(out.shape[0], 20);
	assert_int_equal(out.shape[2], 3);
	/* In place, as a caller may well do. */
	s.layout = TSOCK_CHW;
	tsi_view_spec_field(&s, &in, &in);
	assert_int_equal(in.shape[0], 3);
	assert_int_equal(in.shape[2], 30);
}

static void one_channel_has_one_mean_and_one_std(void **state)
{
	struct tsock_field f = { "grey", TSOCK_U8, TSOCK_FIELD_IMAGE,
				 3,      0,        { 28, 20, 1, 0 } };
	struct tsi_view_spec s = { .dtype = TSOCK_F32,
				   .layout = TSOCK_CHW,
				   .normalize = TSOCK_MEAN_STD,
				   .mean = { 0.5f, 0.5f, 0.5f },
				   .std = { 0.3f, 0.3f, 0.3f } };

	(void)state;
	assert_int_equal(tsi_view_spec_check_field(&s, &f), 0);
	s.std[2] = 0.2f;
	assert_int_equal(tsi_view_spec_check_field(&s, &f), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "'grey' have one channel"));
	s.std[2] = 0.3f, s.mean[1] = 0;
	assert_int_equal(tsi_view_spec_check_field(&s, &f), TSOCK_EARG);
	/* Three channels may have three, and others aren't converted. */
	f.shape[2] = 3;
	assert_int_equal(tsi_view_spec_check_field(&s, &f), 0);
	f.shape[2] = 1, f.flags = 0;
	assert_int_equal(tsi_view_spec_check_field(&s, &f), 0);
	f.flags = TSOCK_FIELD_IMAGE, s.normalize = TSOCK_UNIT;
	assert_int_equal(tsi_view_spec_check_field(&s, &f), 0);
}

static void a_field_that_is_no_image_stays_as_it_is(void **state)
{
	struct tsock_field in = { "label", TSOCK_U8, 0, 3, 0, { 2, 5, 3, 0 } };
	struct tsi_view_spec s = spec_of(TSOCK_F16, TSOCK_CHW, TSOCK_UNIT);
	struct tsock_field out;

	(void)state;
	tsi_view_spec_field(&s, &in, &out);
	assert_memory_equal(&in, &out, sizeof(in));
}

static void make(uint32_t dtype, uint32_t layout, uint32_t normalize,
		 const float mean[3], struct tsi_view_spec *out)
{
	static const float std[3] = { 0.229f, 0.224f, 0.225f };

	memset(out, 0xff, sizeof(*out));
	assert_int_equal(
		tsi_view_spec_make(dtype, layout, normalize, mean, std, out),
		0);
}

static void what_gives_the_same_pixels_is_one_spec(void **state)
{
	static const float mean[3] = { 0, 0.5f, 0.25f };
	static const float minus[3] = { -0.0f, 0.5f, 0.25f };
	static const float other[3] = { 1, 2, 3 };
	struct tsi_view_spec a, b;

	(void)state;
	make(TSOCK_F32, TSOCK_CHW, TSOCK_MEAN_STD, mean, &a);
	make(TSOCK_F32, TSOCK_CHW, TSOCK_MEAN_STD, minus, &b);
	assert_true(tsi_view_spec_equal(&a, &b));
	make(TSOCK_F32, TSOCK_CHW, TSOCK_MEAN_STD, other, &b);
	assert_false(tsi_view_spec_equal(&a, &b));
	/* Without MEAN_STD no mean and no std makes a difference. */
	make(TSOCK_F32, TSOCK_CHW, TSOCK_UNIT, mean, &a);
	make(TSOCK_F32, TSOCK_CHW, TSOCK_UNIT, other, &b);
	assert_true(tsi_view_spec_equal(&a, &b));
	make(TSOCK_F32, TSOCK_HWC, TSOCK_UNIT, mean, &b);
	assert_false(tsi_view_spec_equal(&a, &b));
	b = a;
	b.uuid[TSI_UUID - 1] = 1;
	assert_false(tsi_view_spec_equal(&a, &b));
}

static void images_as_stored_are_the_base_view(void **state)
{
	static const float mean[3] = { 0 };
	struct tsi_view_spec s;

	(void)state;
	make(0, TSOCK_HWC, TSOCK_RAW, mean, &s);
	assert_true(tsi_view_spec_is_base(&s));
	make(TSOCK_U8, TSOCK_HWC, TSOCK_RAW, mean, &s);
	assert_true(tsi_view_spec_is_base(&s));
	make(0, TSOCK_CHW, TSOCK_RAW, mean, &s);
	assert_int_equal(s.dtype, TSOCK_U8);
	assert_false(tsi_view_spec_is_base(&s));
	assert_false(tsi_view_spec_is_stored(&s));
	/* On a GPU the samples as stored are a view of their own. */
	s = (struct tsi_view_spec){ .dtype = TSOCK_U8, .gpu = 1 };
	assert_false(tsi_view_spec_is_base(&s));
	assert_true(tsi_view_spec_is_stored(&s));
}

static void what_makes_no_sense_makes_no_spec(void **state)
{
	static const float zero[3] = { 0 };
	struct tsi_view_spec s = { .gpu = 7 };

	(void)state;
	assert_int_equal(tsi_view_spec_make(TSOCK_F32, TSOCK_CHW,
					    TSOCK_MEAN_STD, zero, zero, &s),
			 TSOCK_EARG);
	assert_int_equal(s.gpu, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spec_without_sense_is_refused_by_name),
		cmocka_unit_test(
			a_field_takes_dtype_and_layout_and_keeps_its_name),
		cmocka_unit_test(one_channel_has_one_mean_and_one_std),
		cmocka_unit_test(a_field_that_is_no_image_stays_as_it_is),
		cmocka_unit_test(what_gives_the_same_pixels_is_one_spec),
		cmocka_unit_test(images_as_stored_are_the_base_view),
		cmocka_unit_test(what_makes_no_sense_makes_no_spec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
