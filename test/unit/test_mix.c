/* SPDX-License-Identifier: MIT */
/*
 * test_mix.c - versions of a picture that are mixed, and boxes that are erased:
 * test/parity/test_colour.py compares both with torchvision and timm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ops/colour.h"
#include "ops/erase.h"
#include "ops/mix.h"

static struct tsi_canvas canvas;

static void begin(unsigned channels, uint32_t width, uint32_t height, int value)
{
	tsi_canvas_init(&canvas, tsi_simd_best());
	assert_int_equal(tsi_canvas_begin(&canvas, width, height, channels), 0);
	memset(canvas.pixels, value, tsi_canvas_bytes(&canvas));
}

static void holds(const uint8_t *want)
{
	assert_memory_equal(canvas.pixels, want, tsi_canvas_bytes(&canvas));
	tsi_canvas_fini(&canvas);
}

static void all_are(int value)
{
	for (size_t i = 0; i < tsi_canvas_bytes(&canvas); i++)
		assert_int_equal(canvas.pixels[i], value);
}

/* 0.25 * 200 + 0.5 * 55 + 0.25 * 99 = 102.25 */
static void versions_are_added_by_their_weights(void **state)
{
	(void)state;
	begin(3, 33, 5, 200);
	assert_int_equal(tsi_mix_begin(&canvas), 0);
	tsi_mix_add(&canvas, 0.25f);
	assert_int_equal(tsi_colour_invert(&canvas), 0);
	all_are(55);
	tsi_mix_add(&canvas, 0.5f);
	tsi_mix_original(&canvas);
	all_are(200);
	memset(canvas.pixels, 99, tsi_canvas_bytes(&canvas));
	tsi_mix_add(&canvas, 0.25f);
	tsi_mix_sum(&canvas);
	all_are(102);
	/* A mix begins anew. */
	assert_int_equal(tsi_mix_begin(&canvas), 0);
	tsi_mix_add(&canvas, 0.99f);
	tsi_mix_sum(&canvas);
	all_are(100);
	tsi_canvas_fini(&canvas);
}

/* 200, of which a quarter is 55 then: 163.75; and of 163 half is 0. */
static void versions_are_blended_one_after_the_other(void **state)
{
	(void)state;
	begin(1, 50, 3, 200);
	assert_int_equal(tsi_mix_begin(&canvas), 0);
	assert_int_equal(tsi_colour_invert(&canvas), 0);
	tsi_mix_blend(&canvas, 0.25f);
	all_are(163);
	memset(canvas.pixels, 0, tsi_canvas_bytes(&canvas));
	tsi_mix_blend(&canvas, 0.5f);
	all_are(81);
	tsi_canvas_fini(&canvas);
}

static void values_of_a_box_are_truncated_to_bytes(void **state)
{
	static const uint8_t want[] = {
		1, 1, 1, 1, 1,   1,  1, 1, 1, /* a row */
		1, 1, 1, 7, 255, 44, 1, 1, 1, /* and another */
		1, 1, 1, 7, 255, 44, 1, 1, 1,
	};
	static const double value[3] = { 7.9, -1.5, 300 };
	static const struct tsi_rect box = { 1, 1, 1, 2 };

	(void)state;
	begin(3, 3, 3, 1);
	tsi_erase(&canvas, &box, value);
	holds(want);
}

static void each_pixel_of_a_box_has_a_value_of_its_own(void **state)
{
	static const uint8_t want[] = {
		0, 2, 255, 1, 0, 3, 9, 9, 9, /* a row */
		5, 7, 9,   6, 8, 0, 9, 9, 9, /* and another */
	};
	static const float values[] = {
		0.9f,  1.9f, 5, 6, /* red, of two rows */
		2,     0,    7, 8, /* green */
		-1.9f, 3,    9, -0.5f,
	};
	static const struct tsi_rect box = { 0, 0, 2, 2 };

	(void)state;
	begin(3, 3, 2, 9);
	tsi_erase_by_pixel(&canvas, &box, values);
	holds(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_added_by_their_weights),
		cmocka_unit_test(versions_are_blended_one_after_the_other),
		cmocka_unit_test(values_of_a_box_are_truncated_to_bytes),
		cmocka_unit_test(each_pixel_of_a_box_has_a_value_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
