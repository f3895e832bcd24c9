/* SPDX-License-Identifier: MIT */
/*
 * test_crop.c - crop boxes.  The expected sizes were computed with torch
 * and torchvision's formulas; test/parity draws many more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/philox.h"
#include "recipe/recipe.h"
#include "test/lib/recipes.h"
#include "transforms/resized_crop.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct tsi_crop_range usual = { { 0.08, 1 },
					     { 3 / 4.0, 4 / 3.0 } };

/* What a recipe cuts out of the image of a sample; *g: all of the plan. */
static int box_of(const struct tsi_recipe *r, const struct tsi_op_sample *of,
		  struct tsi_box *box, struct tsi_framing *g)
{
	struct tsi_op_sample s = *of;
	double draws[16];
	int err = tsi_recipe_draw(r, &s, draws);

	if (err)
		return err;
	assert_null(
		tsi_recipe_plan(&r->view[0], of->width, of->height, draws, g));
	tsi_framing_box(g, box);
	return 0;
}

static void crop_train(uint64_t seed, uint32_t epoch, uint64_t index,
		       uint32_t width, uint32_t height, struct tsi_box *box)
{
	struct tsi_op_sample s = { .seed = seed,
				   .epoch = epoch,
				   .index = index,
				   .width = width,
				   .height = height };
	struct tsi_framing g;

	assert_int_equal(box_of(recipes_train(224), &s, box, &g), 0);
}

static int crop_eval(uint32_t width, uint32_t height, uint32_t resize,
		     uint32_t size, uint32_t *new_width, uint32_t *new_height,
		     struct tsi_box *box)
{
	struct tsi_op_sample s = { .width = width, .height = height };
	struct tsi_framing g;
	int err = box_of(recipes_eval(resize, size), &s, box, &g);

	if (!err) {
		*new_width = g.resized ? g.to_width : width;
		*new_height = g.resized ? g.to_height : height;
	}
	return err;
}

static void attempts_give_torchvisions_sizes(void **state)
{
	static const struct {
		uint32_t width, height, area, ratio;
		int fits, w, h;
	} known[] = {
		{ 4000, 3000, 0x97b75092, 0x8b529b4a, 0, 2829, 3133 },
		{ 640, 480, 0x5eb561a4, 0xea7b5bf5, 1, 472, 477 },
		{ 700, 100, 0xa02f34a6, 0x94b2b8fd, 0, 140, 125 },
		{ 375, 500, 0x9b08923d, 0x35efa25, 1, 139, 150 },
		{ 700, 100, 0x42650644, 0x8d0038ec, 0, 153, 203 },
		{ 4000, 3000, 0x31162427, 0xfee29476, 1, 1546, 1239 },
		{ 700, 100, 0x8a7d43b5, 0xd6225675, 0, 173, 214 },
		{ 700, 100, 0x65aa9c82, 0xa399f82a, 0, 227, 214 },
		{ 640, 480, 0x3b5f3d86, 0xa2863a7f, 1, 363, 358 },
		{ 640, 480, 0xde383784, 0xed038db4, 1, 256, 339 },
		{ 500, 500, 0xbdc2ae99, 0x3e0a813, 1, 492, 396 },
		{ 375, 500, 0x28ce6f24, 0xc21b6092, 1, 351, 440 },
		{ 500, 375, 0x4d1fe09f, 0xc7b317d9, 1, 202, 180 },
		{ 500, 375, 0xd2d58443, 0xdd933160, 0, 407, 390 },
		{ 100, 75, 0x79061596, 0x98418117, 1, 26, 30 },
		{ 500, 500, 0xb6d13089, 0xc9c18070, 1, 491, 424 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(known); i++) {
		struct tsi_crop_box b = { 0 };

		assert_int_equal(tsi_crop_try(&usual, known[i].width,
					      known[i].height, known[i].area,
					      known[i].ratio, &b),
				 known[i].fits);
		if (known[i].fits) {
			assert_int_equal(b.width, known[i].w);
			assert_int_equal(b.height, known[i].h);
		}
	}
}

static void extreme_shapes_fall_back_to_the_centre(void **state)
{
	static const struct {
		uint32_t width, height;
		struct tsi_box want;
	} known[] = {
		{ 1, 1, { 0, 0, 1, 1, 0 } },
		{ 1000, 10, { 0, 493, 10, 13, 0 } },
		{ 10, 1000, { 493, 0, 13, 10, 0 } },
		{ 65500, 1, { 0, 32749, 1, 1, 0 } },
		{ 1, 65500, { 32749, 0, 1, 1, 0 } },
		{ 6, 100, { 46, 0, 8, 6, 0 } },
		{ 100, 100, { 0, 0, 100, 100, 0 } },
		{ 3, 4, { 0, 0, 4, 3, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(known); i++) {
		struct tsi_crop_box centre;
		struct tsi_box b;

		tsi_crop_fallback(&usual, known[i].width, known[i].height,
				  &centre);
		b = (struct tsi_box){ (int32_t)centre.top, (int32_t)centre.left,
				      (int32_t)centre.height,
				      (int32_t)centre.width, 0 };
		assert_memory_equal(&b, &known[i].want, sizeof(b));
		/* Too long and thin for any of the ten attempts to fit. */
		if (known[i].width * 20 > known[i].height &&
		    known[i].height * 20 > known[i].width)
			continue;
		crop_train(1, 2, 3, known[i].width, known[i].height, &b);
		b.flip = 0;
		assert_memory_equal(&b, &known[i].want, sizeof(b));
	}
}

static void boxes_lie_within_the_image(void **state)
{
	static const uint32_t edge[] = { 1, 2, 3, 7, 100, 375, 500, 13377 };
	unsigned flips = 0, n = 0;

	(void)state;
	for (uint64_t i = 0; i < 8000; i++, n++) {
		uint32_t w = edge[i % 8], h = edge[i / 8 % 8];
		struct tsi_box b;

		crop_train(i % 3, (uint32_t)i / 100, i, w, h, &b);
		assert_true(b.left >= 0 && b.width > 0);
		assert_true(b.top >= 0 && b.height > 0);
		assert_true((uint32_t)(b.left + b.width) <= w);
		assert_true((uint32_t)(b.top + b.height) <= h);
		flips += (unsigned)b.flip;
	}
	assert_in_range(flips, n * 45 / 100, n * 55 / 100);
}

static struct tsi_box train(uint64_t seed, uint32_t epoch, uint64_t index)
{
	struct tsi_box b;

	crop_train(seed, epoch, index, 5000, 4000, &b);
	return b;
}

static void assert_differ(struct tsi_box a, struct tsi_box b)
{
	assert_true(a.top != b.top || a.left != b.left || a.width != b.width ||
		    a.height != b.height);
}

static void every_part_of_the_key_counts(void **state)
{
	struct tsi_box a = train(1, 2, 3), b = train(1, 2, 3);

	(void)state;
	assert_memory_equal(&a, &b, sizeof(a));
	assert_differ(a, train(1 + (1ull << 32), 2, 3));
	assert_differ(a, train(2, 2, 3));
	assert_differ(a, train(1, 3, 3));
	assert_differ(a, train(1, 2, 4));
	assert_differ(a, train(1, 2, 3 + (1ull << 32)));
}

/* The documented place of every number in the counter. */
static void draws_come_from_the_documented_counters(void **state)
{
	uint64_t index = 0x123456789abcull, seed = 0xfedcba9876543210ull;
	struct tsi_philox_ctr ctr = { { 0x56789abc, 0x1234, 9,
					0xa002u << 16 } };
	struct tsi_philox_ctr flip = tsi_philox(seed, ctr);
	struct tsi_crop_box box = { 0 };
	struct tsi_box b, want;

	(void)state;
	crop_train(seed, 9, index, 640, 480, &b);
	for (uint32_t i = 0; i < 10; i++) {
		struct tsi_philox_ctr r;

		ctr.v[3] = 0xa001u << 16 | i;
		r = tsi_philox(seed, ctr);
		if (!tsi_crop_try(&usual, 640, 480, r.v[0], r.v[1], &box))
			continue;
		box.top = r.v[2] % (481 - box.height);
		box.left = r.v[3] % (641 - box.width);
		break;
	}
	want = (struct tsi_box){ (int32_t)box.top, (int32_t)box.left,
				 (int32_t)box.height, (int32_t)box.width,
				 (flip.v[0] & 0xffffff) < 0x800000 };
	assert_memory_equal(&b, &want, sizeof(b));
}

static void eval_truncates_the_edge_and_rounds_the_centre_to_even(void **state)
{
	static const struct {
		uint32_t w, h, resize, size, new_w, new_h;
		int32_t top, left;
	} known[] = {
		{ 500, 375, 256, 224, 341, 256, 16, 58 },
		{ 375, 500, 256, 224, 256, 341, 58, 16 },
		{ 500, 333, 256, 224, 384, 256, 16, 80 },
		{ 256, 256, 256, 224, 256, 256, 16, 16 },
		{ 225, 227, 225, 224, 225, 227, 2, 0 },
		{ 229, 231, 229, 224, 229, 231, 4, 2 },
		{ 100, 100, 100, 224, 100, 100, -62, -62 },
		{ 101, 300, 101, 224, 101, 300, 38, -61 },
		{ 1, 65500, 256, 224, 256, 16768000, 8383888, 16 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(known); i++) {
		struct tsi_box b;
		uint32_t w, h;

		assert_int_equal(crop_eval(known[i].w, known[i].h,
					   known[i].resize, known[i].size, &w,
					   &h, &b),
				 0);
		assert_int_equal(w, known[i].new_w);
		assert_int_equal(h, known[i].new_h);
		assert_int_equal(b.top, known[i].top);
		assert_int_equal(b.left, known[i].left);
		assert_int_equal(b.width, known[i].size);
		assert_int_equal(b.height, known[i].size);
		assert_int_equal(b.flip, 0);
	}
}

static void an_edge_beyond_31_bits_is_bad_data(void **state)
{
	struct tsi_box b;
	uint32_t w, h;

	(void)state;
	assert_int_equal(crop_eval(1, 1000000, 4096, 224, &w, &h, &b),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "1 x 1000000"));
}

static void a_random_crop_counts_from_the_border_on(void **state)
{
	const struct tsi_recipe *r = recipes_of("RandomCrop(8, padding=4)");
	unsigned seen = 0;

	(void)state;
	for (uint64_t i = 0; i < 400; i++) {
		struct tsi_op_sample s = { .seed = 3,
					   .epoch = 1,
					   .index = i,
					   .width = 8,
					   .height = 8 };
		struct tsi_framing g;
		struct tsi_box b;
		double draws[2];

		assert_int_equal(tsi_recipe_draw(r, &s, draws), 0);
		assert_in_range(draws[0], 0, 8);
		assert_in_range(draws[1], 0, 8);
		seen |= 1u << (unsigned)draws[0] | 512u << (unsigned)draws[1];
		assert_null(tsi_recipe_plan(&r->view[0], 8, 8, draws, &g));
		tsi_framing_box(&g, &b);
		assert_int_equal(b.top, (int)draws[0] - 4);
		assert_int_equal(b.left, (int)draws[1] - 4);
	}
	assert_int_equal(seen, (1u << 18) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempts_give_torchvisions_sizes),
		cmocka_unit_test(extreme_shapes_fall_back_to_the_centre),
		cmocka_unit_test(boxes_lie_within_the_image),
		cmocka_unit_test(every_part_of_the_key_counts),
		cmocka_unit_test(draws_come_from_the_documented_counters),
		cmocka_unit_test(
			eval_truncates_the_edge_and_rounds_the_centre_to_even),
		cmocka_unit_test(an_edge_beyond_31_bits_is_bad_data),
		cmocka_unit_test(a_random_crop_counts_from_the_border_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
