/* SPDX-License-Identifier: MIT */
/*
 * test_mask.c - where the pixels of a mask come from.
 */
#include "ops/mask.h"
#include "ops/mask_warp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recipe/recipe.h"
#include "tsock/tsock.h"

/* A mask of one row, in which each column has its own number. */
static struct tsi_mask row_of(uint32_t width)
{
	static uint8_t from[256];
	struct tsi_mask m = { 0 };

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)i;
	assert_false(tsi_mask_begin(&m, from, sizeof(from), width, 1));
	return m;
}

/* The row has these numbers, n of them. */
static void must_be(struct tsi_mask *m, const uint8_t *numbers, uint32_t n)
{
	uint8_t to[256];

	assert_int_equal(m->width * m->height, n);
	tsi_mask_fetch(m, to);
	assert_memory_equal(to, numbers, n);
	tsi_mask_fini(m);
}

static void resize(struct tsi_mask *m, uint32_t width)
{
	struct tsi_framing g = tsi_framing_of(m->width, m->height);

	assert_true(tsi_framing_resize(&g, width, 1, TSI_FILTER_BILINEAR));
	assert_false(tsi_mask_frame(m, &g, 0));
}

static void a_resized_mask_has_torchs_places_and_not_pillows(void **state)
{
	struct tsi_mask fewer = row_of(5), more = row_of(3);

	(void)state;
	/* Pillow's are 0, 2, 4 and 0, 0, 1, 2, 2. */
	resize(&fewer, 3);
	must_be(&fewer, (uint8_t[]){ 0, 1, 3 }, 3);
	resize(&more, 5);
	must_be(&more, (uint8_t[]){ 0, 0, 1, 1, 2 }, 5);
}

static void the_later_of_two_borders_is_around_the_earlier_one(void **state)
{
	const struct tsi_pad_border sides = { 1, 0, 1, 0 };
	const struct tsi_pad_border above = { 0, 1, 0, 0 };
	struct tsi_mask m = row_of(1), other = row_of(1);

	(void)state;
	assert_false(tsi_mask_pad(&m, &sides, TSI_PAD_CONSTANT, 7));
	assert_false(tsi_mask_pad(&m, &above, TSI_PAD_CONSTANT, 9));
	must_be(&m, (uint8_t[]){ 9, 9, 9, 7, 0, 7 }, 6);
	assert_false(tsi_mask_pad(&other, &above, TSI_PAD_CONSTANT, 9));
	assert_false(tsi_mask_pad(&other, &sides, TSI_PAD_CONSTANT, 7));
	must_be(&other, (uint8_t[]){ 7, 9, 7, 7, 0, 7 }, 6);
}

static void what_surrounds_a_mask_is_mirrored_and_cropped_with_it(void **state)
{
	static const uint8_t black[3];
	const struct tsi_pad_border two = { 2, 0, 2, 0 };
	struct tsi_mask m = row_of(3);
	struct tsi_framing g;

	(void)state;
	assert_false(tsi_mask_pad(&m, &two, TSI_PAD_REFLECT, 0));
	g = tsi_framing_of(m.width, m.height);
	assert_true(tsi_framing_crop(&g, 1, 0, 8, 1, black));
	assert_false(tsi_mask_frame(&m, &g, 255));
	g = tsi_framing_of(m.width, m.height);
	assert_true(tsi_framing_flip(&g, true, false));
	assert_false(tsi_mask_frame(&m, &g, 0));
	must_be(&m, (uint8_t[]){ 255, 255, 0, 1, 2, 1, 0, 1 }, 8);
}

static void turned_masks_are_those_of_torchs_grid_sample(void **state)
{
	const uint8_t square[4] = { 1, 2, 3, 4 };
	struct tsi_warp_affinity right = { .translate = { 1, 0 }, .scale = 1 };
	struct tsi_mask m = { 0 };

	(void)state;
	assert_false(tsi_mask_begin(&m, square, 2, 2, 2));
	assert_false(tsi_mask_rotate(&m, 90, NULL, 0));
	must_be(&m, (uint8_t[]){ 2, 4, 1, 3 }, 4);
	/* What a map makes is the next one's source, also where it is cut. */
	m = (struct tsi_mask){ 0 };
	assert_false(tsi_mask_begin(&m, square, 2, 2, 2));
	assert_false(tsi_mask_rotate(&m, -90, NULL, 0));
	assert_false(tsi_mask_affine(&m, &right, NULL, 9));
	assert_false(tsi_mask_turn(&m));
	must_be(&m, (uint8_t[]){ 4, 9, 3, 9 }, 4);
}

static void operations_that_say_nothing_of_masks_are_refused(void **state)
{
	struct tsi_recipe *r;

	(void)state;
	assert_false(tsi_recipe_read(
		"RandomApply([RandomInvert(), TrivialAugmentWide()]) "
		"CenterCrop(8)",
		&r));
	assert_int_equal(tsi_recipe_check_masks(r), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "TrivialAugmentWide"));
	tsi_recipe_free(r);
	assert_false(tsi_recipe_read("RandomApply([RandomInvert(), Pad(2)]) "
				     "RandomCrop(8)",
				     &r));
	assert_false(tsi_recipe_check_masks(r));
	tsi_recipe_free(r);
	assert_false(tsi_recipe_read(
		"RandomRotation(9, expand=True) CenterCrop(8)", &r));
	assert_int_equal(tsi_recipe_check_masks(r), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "with expand=True"));
	tsi_recipe_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_resized_mask_has_torchs_places_and_not_pillows),
		cmocka_unit_test(
			the_later_of_two_borders_is_around_the_earlier_one),
		cmocka_unit_test(
			what_surrounds_a_mask_is_mirrored_and_cropped_with_it),
		cmocka_unit_test(turned_masks_are_those_of_torchs_grid_sample),
		cmocka_unit_test(
			operations_that_say_nothing_of_masks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
