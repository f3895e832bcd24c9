/* SPDX-License-Identifier: MIT */
/*
 * test_aug_mix.c - mixes of chains of operations: test/parity compares them
 * with timm and torchvision.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "ops/mix.h"
#include "pixel/budget.h"
#include "test/lib/image_gen.h"
#include "test/lib/plain_image.h"
#include "test/lib/recipes.h"

#define WIDTH 37
#define HEIGHT 21
#define BYTES (WIDTH * HEIGHT * 3)
#define MOST_DRAWS 400

/* What a recipe makes of a picture for the sample of this index. */
static void make(const struct tsi_recipe *recipe, uint64_t index,
		 const uint8_t *picture, double *draws, uint8_t *out)
{
	struct tsi_op_sample s = { .index = index,
				   .width = WIDTH,
				   .height = HEIGHT };
	struct tsi_canvas c;

	assert_true(recipe->draws <= MOST_DRAWS);
	tsi_canvas_init(&c, tsi_simd_best());
	assert_int_equal(tsi_canvas_begin(&c, WIDTH, HEIGHT, 3), 0);
	memcpy(c.pixels, picture, BYTES);
	assert_int_equal(tsi_recipe_draw(recipe, &s, draws), 0);
	assert_int_equal(tsi_recipe_apply(recipe->view[0].first, draws, &c), 0);
	memcpy(out, c.pixels, BYTES);
	tsi_canvas_fini(&c);
}

static void begin(uint8_t *picture)
{
	uint64_t r = 4;

	for (unsigned i = 0; i < BYTES; i++)
		picture[i] = (uint8_t)image_gen_random(&r);
}

#define END " CenterCrop((21, 37))"

/* Blending the chains in is another way to the same sum, but for rounding. */
static void a_blended_mix_is_the_sum_of_its_chains(void **state)
{
	const struct tsi_recipe *sum = recipes_of("TimmAugMix(w=4, m=9)" END);
	const struct tsi_recipe *blended =
		recipes_of("TimmAugMix(w=4, m=9, b=True)" END);
	double draws[MOST_DRAWS], same[MOST_DRAWS];
	uint8_t picture[BYTES], one[BYTES], two[BYTES];

	(void)state;
	begin(picture);
	for (uint64_t index = 0; index < 50; index++) {
		make(sum, index, picture, draws, one);
		make(blended, index, picture, same, two);
		assert_memory_equal(draws, same, sum->draws * sizeof(draws[0]));
		for (unsigned i = 0; i < BYTES; i++)
			if (abs(one[i] - two[i]) > 4)
				fail_msg("sample %d, byte %u: %d and %d",
					 (int)index, i, one[i], two[i]);
	}
}

/*
 * Two chains of one operation each, which share all the weight: were the second
 * one to begin with the first one's version, it would be the picture again.
 */
static void chains_begin_with_the_picture(void **state)
{
	const struct tsi_recipe *recipe =
		recipes_of("PILAugMix(mixture_width=2, chain_depth=1)" END);
	const struct tsi_op *op = recipe->view[0].first;
	/* The weights; both chains solarize from 0 on: they invert. */
	static const double draws[] = { 0, 0.5, 0.5, 11, 0, 11, 0 };
	uint8_t picture[BYTES];
	struct tsi_canvas c;

	(void)state;
	begin(picture);
	assert_int_equal(recipe->draws, 7);
	tsi_canvas_init(&c, tsi_simd_best());
	assert_int_equal(tsi_canvas_begin(&c, WIDTH, HEIGHT, 3), 0);
	memcpy(c.pixels, picture, BYTES);
	assert_int_equal(tsi_op_apply(op, draws, &c), 0);
	for (unsigned i = 0; i < BYTES; i++)
		assert_int_equal(c.pixels[i], 255 - picture[i]);
	tsi_canvas_fini(&c);
}

/* A chain that isn't as deep as it may be has nothing behind its end. */
static void chains_end_where_they_were_drawn_to(void **state)
{
	const struct tsi_recipe *recipe = recipes_of("TimmAugMix()" END);
	double draws[MOST_DRAWS];
	uint8_t picture[BYTES], out[BYTES];
	unsigned depths[4] = { 0 };

	(void)state;
	begin(picture);
	for (uint64_t index = 0; index < 300; index++) {
		const double *own = draws + 4;

		make(recipe, index, picture, draws, out);
		for (unsigned k = 0; k < 3; k++) {
			unsigned n = 0;

			for (unsigned i = 0; i < 3; i++, own += 3) {
				if (own[0] >= 0)
					assert_int_equal(n++, i);
			}
			assert_in_range(n, 1, 3);
			depths[n]++;
		}
	}
	for (unsigned n = 1; n <= 3; n++)
		assert_in_range(depths[n], 230, 370);
}

static uint64_t need_of(const char *text, const struct image_gen_bytes *f)
{
	struct tsi_budget_claim claim = { .budget = NULL };
	struct tsi_image_opts opts = { .recipe = recipes_of("%s", text),
				       .claim = &claim };
	uint8_t out[8 * 8 * 3];
	struct tsi_image *img;
	struct tsi_box box;

	assert_int_equal(tsi_image_create(&opts, &img), 0);
	assert_int_equal(tsi_image_load(img, f->data, f->len, 0, 0, out, &box),
			 0);
	tsi_image_destroy(img);
	return claim.need;
}

/* The picture again, and a float for each of its bytes. */
static void the_memory_of_a_mix_is_counted(void **state)
{
	struct image_gen_bytes f = plain_image_jpeg(300, 200);
	uint64_t without = need_of("RandomInvert() CenterCrop(8)", &f);

	(void)state;
	assert_true(tsi_mix_need(300 * 200) >= UINT64_C(300) * 200 * 3 * 5);
	assert_int_equal(need_of("PILAugMix() CenterCrop(8)", &f),
			 without + tsi_mix_need(300 * 200));
	assert_int_equal(
		need_of("RandomApply([TimmAugMix()]) CenterCrop(8)", &f),
		without + tsi_mix_need(300 * 200));
	free(f.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blended_mix_is_the_sum_of_its_chains),
		cmocka_unit_test(chains_begin_with_the_picture),
		cmocka_unit_test(chains_end_where_they_were_drawn_to),
		cmocka_unit_test(the_memory_of_a_mix_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
