/* SPDX-License-Identifier: MIT */
/*
 * test_boxes.c - bounding boxes follow what is done to their picture.
 */
#include "ops/boxes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void is(const tsi_boxes_edges box, float left, float top, float right,
	       float bottom)
{
	const tsi_boxes_edges want = { left, top, right, bottom };

	for (unsigned k = 0; k < 4; k++)
		assert_float_equal(box[k], want[k], 1e-4);
}

static void a_crop_moves_boxes_and_cuts_them_off(void **state)
{
	tsi_boxes_edges box[] = { { 10, 20, 30, 40 }, { 0, 0, 100, 80 } };
	struct tsi_boxes b = { box, 2, 100, 80 };
	struct tsi_framing g = tsi_framing_of(100, 80);

	(void)state;
	assert_true(tsi_framing_crop(&g, 15, 10, 50, 25, (uint8_t[3]){ 0 }));
	tsi_boxes_frame(&b, &g);
	is(box[0], 0, 10, 15, 25);
	is(box[1], 0, 0, 50, 25);
	assert_int_equal(b.width, 50);
	assert_int_equal(b.height, 25);
}

static void a_resize_scales_and_a_flip_mirrors_them(void **state)
{
	tsi_boxes_edges box[] = { { 10, 20, 30, 40 } };
	struct tsi_boxes b = { box, 1, 100, 80 };
	struct tsi_framing g = tsi_framing_of(100, 80);

	(void)state;
	assert_true(tsi_framing_resize(&g, 50, 160, TSI_FILTER_BILINEAR));
	tsi_framing_flip(&g, true, false);
	tsi_boxes_frame(&b, &g);
	is(box[0], 35, 40, 45, 80);
	g = tsi_framing_of(50, 160);
	tsi_framing_flip(&g, false, true);
	tsi_boxes_frame(&b, &g);
	is(box[0], 35, 80, 45, 120);
}

static void a_border_moves_them(void **state)
{
	tsi_boxes_edges box[] = { { -2, 1, 3, 4 } };
	struct tsi_boxes b = { box, 1, 10, 10 };
	const struct tsi_pad_border border = { 1, 2, 3, 4 };

	(void)state;
	tsi_boxes_pad(&b, &border);
	is(box[0], 0, 3, 4, 6);
	assert_int_equal(b.width, 14);
	assert_int_equal(b.height, 16);
}

static void a_turned_box_is_what_encloses_its_corners(void **state)
{
	tsi_boxes_edges box[] = { { 10, 0, 14, 8 } };
	struct tsi_boxes b = { box, 1, 20, 20 };

	(void)state;
	/* Counter-clockwise about the middle. */
	tsi_boxes_rotate(&b, 90, NULL);
	is(box[0], 0, 6, 8, 10);
	tsi_boxes_rotate(&b, 45, (const double[2]){ 0, 0 });
	is(box[0], 6 * (float)M_SQRT1_2, 0, 18 * (float)M_SQRT1_2,
	   10 * (float)M_SQRT1_2);
}

static void what_leaves_the_picture_is_not_kept(void **state)
{
	tsi_boxes_edges box[] = { { 0, 0, 1, 1 },  { 3, 3, 3.5F, 9 },
				  { 5, 5, 4, 9 },  { 0, 0, NAN, 9 },
				  { 0, 0, 11, 9 }, { -1, 0, 9, 9 },
				  { 2, 2, 10, 10 } };
	struct tsi_boxes b = { box, 7, 10, 10 };
	static const bool kept[] = { 1, 0, 0, 0, 0, 0, 1 };

	(void)state;
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(tsi_boxes_keeps(&b, box[i]), kept[i]);
	tsi_boxes_clamp(&b);
	is(box[4], 0, 0, 10, 9);
	assert_true(isnan(box[3][2]));
	assert_true(tsi_boxes_keeps(&b, box[5]));
}

static void not_a_number_stays_that_in_a_warp(void **state)
{
	tsi_boxes_edges box[] = { { NAN, 0, 4, 4 } };
	struct tsi_boxes b = { box, 1, 10, 10 };

	(void)state;
	tsi_boxes_rotate(&b, 10, NULL);
	assert_false(tsi_boxes_keeps(&b, box[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crop_moves_boxes_and_cuts_them_off),
		cmocka_unit_test(a_resize_scales_and_a_flip_mirrors_them),
		cmocka_unit_test(a_border_moves_them),
		cmocka_unit_test(a_turned_box_is_what_encloses_its_corners),
		cmocka_unit_test(what_leaves_the_picture_is_not_kept),
		cmocka_unit_test(not_a_number_stays_that_in_a_warp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
