/* SPDX-License-Identifier: MIT */
/*
 * test_image.c - the way from a file's bytes to a sample.  test/parity compares
 * the pixels with Pillow's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "image/sniff.h"
#include "base/err.h"
#include "pixel/budget.h"
#include "recipe/recipe.h"
#include "test/lib/image_gen.h"
#include "test/lib/plain_image.h"
#include "test/lib/recipes.h"

#define SIZE 32
#define BYTES (SIZE * SIZE * 3)

static struct tsi_image *open_image(const struct tsi_recipe *recipe)
{
	struct tsi_image_opts o = { .recipe = recipe, .seed = 77 };
	struct tsi_image *img = NULL;

	assert_int_equal(tsi_image_create(&o, &img), 0);
	return img;
}

static void load(struct tsi_image *img, const struct image_gen_bytes *f,
		 uint32_t epoch, uint64_t index, uint8_t *dst,
		 struct tsi_box *box)
{
	if (tsi_image_load(img, f->data, f->len, epoch, index, dst, box))
		fail_msg("%s", tsock_errmsg());
}

static void a_sample_depends_on_its_key_alone(void **state)
{
	struct image_gen_bytes f = plain_image_jpeg(300, 200),
			       other = plain_image_png(70, 300);
	struct tsi_image *a = open_image(recipes_train(SIZE)),
			 *b = open_image(recipes_train(SIZE));
	uint8_t first[BYTES], again[BYTES];
	struct tsi_box one, two;

	(void)state;
	load(a, &f, 3, 5, first, &one);
	/* Another decoder, another history. */
	load(b, &other, 1, 1, again, &two);
	load(b, &f, 4, 5, again, &two);
	assert_memory_not_equal(first, again, BYTES);
	load(b, &f, 3, 5, again, &two);
	assert_memory_equal(first, again, BYTES);
	assert_memory_equal(&one, &two, sizeof(one));
	tsi_image_destroy(a);
	tsi_image_destroy(b);
	free(f.data);
	free(other.data);
}

static void eval_does_not_depend_on_the_key(void **state)
{
	struct image_gen_bytes f = plain_image_jpeg(123, 97);
	struct tsi_image *img = open_image(recipes_eval(40, SIZE));
	uint8_t first[BYTES], again[BYTES];
	struct tsi_box box;

	(void)state;
	load(img, &f, 0, 0, first, &box);
	load(img, &f, 9, 7, again, &box);
	assert_memory_equal(first, again, BYTES);
	/* 123 x 97 becomes 50 x 40. */
	assert_int_equal(box.left, 9);
	assert_int_equal(box.top, 4);
	assert_int_equal(box.width, SIZE);
	tsi_image_destroy(img);
	free(f.data);
}

static void nothing_is_written_beside_the_sample(void **state)
{
	static uint8_t guarded[BYTES + 256];
	struct image_gen_bytes f[2] = { plain_image_jpeg(90, 200),
					plain_image_png(33, 20) };

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct tsi_image *img = open_image(
			i % 2 ? recipes_train(SIZE) : recipes_eval(40, SIZE));
		struct tsi_box box;

		memset(guarded, 0xa5, sizeof(guarded));
		load(img, &f[i / 2 % 2], 0, (uint64_t)i, guarded + 128, &box);
		for (int k = 0; k < 128; k++) {
			assert_int_equal(guarded[k], 0xa5);
			assert_int_equal(guarded[128 + BYTES + k], 0xa5);
		}
		tsi_image_destroy(img);
	}
	free(f[0].data);
	free(f[1].data);
}

static void a_crop_larger_than_the_image_is_black_around_it(void **state)
{
	struct tsi_image_opts o = { .recipe = recipes_eval(20, SIZE) };
	struct image_gen_bytes f = plain_image_png(20, 26);
	uint8_t dst[BYTES];
	struct tsi_image *img;
	struct tsi_box box;

	(void)state;
	memset(dst, 0xa5, sizeof(dst));
	assert_int_equal(tsi_image_create(&o, &img), 0);
	load(img, &f, 0, 0, dst, &box);
	assert_int_equal(box.left, -6);
	assert_int_equal(box.top, -3);
	for (int y = 0; y < SIZE; y++)
		for (int x = 0; x < SIZE; x++)
			if (y < 3 || y >= 29 || x < 6 || x >= 26)
				assert_memory_equal(dst + (y * SIZE + x) * 3,
						    "\0\0\0", 3);
	tsi_image_destroy(img);
	free(f.data);
}

static void a_bad_file_leaves_the_decoder_as_it_was(void **state)
{
	struct image_gen_bytes good[2] = { plain_image_jpeg(80, 60),
					   plain_image_png(80, 60) };
	struct tsi_image *img = open_image(recipes_train(SIZE));
	uint8_t want[BYTES], got[BYTES];
	struct tsi_box box;

	(void)state;
	for (int i = 0; i < 2; i++) {
		load(img, &good[i], 1, 2, want, &box);
		for (size_t len = 0; len < good[i].len / 2; len += 41) {
			struct image_gen_bytes cut =
				image_gen_copy(good[i].data, len);
			int err = tsi_image_load(img, cut.data, len, 1, 3, got,
						 &box);

			if (err)
				assert_int_equal(err, TSOCK_EDATA);
			free(cut.data);
			load(img, &good[i], 1, 2, got, &box);
			assert_memory_equal(want, got, BYTES);
		}
		free(good[i].data);
	}
	tsi_image_destroy(img);
}

/* Loading fails for a place just when it needs rows that weren't measured. */
static void check_extent(struct tsi_image *img, const struct image_gen_bytes *f,
			 uint64_t *state)
{
	static uint8_t dst[BYTES];
	struct tsi_image_extent e = { 0 };
	struct tsi_image_head head;
	struct tsi_box box;
	int err = tsi_image_measure(img, f->data, f->len, &e);

	if (tsi_image_sniff(f->data, f->len, true, &head)) {
		assert_int_equal(err, TSOCK_EDATA);
		return;
	}
	if (err)
		assert_int_equal(err, TSOCK_EDATA);
	for (int k = 0; k < 10; k++) {
		uint32_t epoch = image_gen_random(state) % 100;
		uint64_t place = image_gen_random(state);
		uint32_t bottom = tsi_image_bottom(img, head.width, head.height,
						   epoch, place);
		int got = tsi_image_load(img, f->data, f->len, epoch, place,
					 dst, &box);

		assert_int_equal(got, bottom <= e.rows ? 0 : TSOCK_EDATA);
		if (!got)
			assert_int_equal(bottom, box.top + box.height);
		assert_true(tsi_image_least_bottom(img, head.width,
						   head.height) <= bottom);
	}
}

static void cut_and_check(struct tsi_image *img, struct image_gen_bytes f,
			  uint64_t *state)
{
	for (int k = 0; k < 5; k++) {
		struct image_gen_bytes g = image_gen_copy(
			f.data, image_gen_random(state) % f.len + 1);

		check_extent(img, &g, state);
		free(g.data);
	}
	check_extent(img, &f, state);
	for (int k = 0; k < 10; k++) {
		struct image_gen_bytes g = image_gen_copy(f.data, f.len);

		image_gen_damage(&g, state);
		check_extent(img, &g, state);
		free(g.data);
	}
	free(f.data);
}

static void check_bottoms(struct tsi_image *img, uint64_t *state)
{
	uint32_t width = 1 + image_gen_random(state) % 99;
	uint32_t height = 1 + image_gen_random(state) % 99;
	uint32_t least = tsi_image_least_bottom(img, width, height);

	for (uint64_t place = 0; place < 50; place++)
		assert_true(tsi_image_bottom(img, width, height, 0, place) >=
			    least);
}

static void check_crop(const char *name, int size, const char *filter)
{
	uint64_t random = 5;
	struct tsi_recipe *recipe;
	struct tsi_image *img;
	char text[80];

	snprintf(text, sizeof(text), "%s(%d, interpolation=%s)", name, size,
		 filter);
	assert_int_equal(tsi_recipe_read(text, &recipe), 0);
	img = open_image(recipe);
	for (int i = 0; i < 40; i++)
		check_bottoms(img, &random);
	tsi_image_destroy(img);
	tsi_recipe_free(recipe);
}

/* NEAREST, to few pixels, needs far less than all rows of a crop. */
static void no_sample_needs_fewer_rows_than_the_least(void **state)
{
	static const char *const filters[] = {
		"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"
	};

	(void)state;
	for (size_t f = 0; f < sizeof(filters) / sizeof(filters[0]); f++)
		for (int size = 1; size <= 61; size += 30) {
			check_crop("RandomResizedCrop", size, filters[f]);
			check_crop("RandomResizedCropAndInterpolation", size,
				   filters[f]);
		}
}

static void damage_is_bad_for_the_places_that_reach_it(void **state)
{
	static const int factor[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 },
					 { 2, 2 }, { 4, 1 }, { 4, 2 } };
	static const int components[] = { 1, 3, 4 };
	struct tsi_image *img = open_image(recipes_train(SIZE));
	uint64_t r = 11;

	(void)state;
	for (unsigned i = 0; i < 6 * 3 * 2 * 2 * 2; i++) {
		struct image_gen_jpeg g = {
			.width = 20 + image_gen_random(&r) % 100,
			.height = 20 + image_gen_random(&r) % 100,
			.components = components[i / 6 % 3],
			.progressive = i / 18 % 2,
			.arithmetic = i / 36 % 2,
			.restart_rows = i / 72 % 2,
			.seed = i,
		};

		/* At most ten blocks may be together in a file. */
		if (g.components == 3 || (g.components == 4 && i % 6 < 5))
			memcpy(g.factor[0], factor[i % 6], sizeof(factor[0]));
		cut_and_check(img, image_gen_jpeg(&g), &r);
	}
	for (unsigned i = 0; i < 8; i++) {
		struct image_gen_png g = {
			.width = 20 + image_gen_random(&r) % 100,
			.height = 20 + image_gen_random(&r) % 100,
			.depth = 8,
			.type = i & 1 ? PNG_COLOR_TYPE_RGB
				      : PNG_COLOR_TYPE_GRAY,
			.interlaced = i & 2,
			.seed = i,
		};

		cut_and_check(img, image_gen_png(&g), &r);
	}
	tsi_image_destroy(img);
}

/* A JPEG whose coefficients are all in memory, a PNG whose pixels are. */
static struct image_gen_bytes large_file(bool jpeg)
{
	struct image_gen_jpeg j = { .width = 2900,
				    .height = 3100,
				    .components = 1,
				    .progressive = true,
				    .quality = 20 };
	struct image_gen_png p = { .width = 2100,
				   .height = 2200,
				   .depth = 1,
				   .type = PNG_COLOR_TYPE_GRAY,
				   .interlaced = true };

	return jpeg ? image_gen_jpeg(&j) : image_gen_png(&p);
}

static void large_images_claim_their_memory(void **state)
{
	struct tsi_image_opts o = { .recipe = recipes_eval(40, SIZE) };
	struct image_gen_bytes small = plain_image_jpeg(300, 200);
	uint8_t want[BYTES], got[BYTES];
	struct tsi_budget_claim claim = { .budget = NULL };
	struct tsi_image *img, *other = open_image(recipes_eval(40, SIZE));
	struct tsi_box box;

	(void)state;
	o.claim = &claim;
	assert_int_equal(tsi_image_create(&o, &img), 0);
	for (int jpeg = 0; jpeg < 2; jpeg++) {
		struct image_gen_bytes f = large_file(jpeg);
		/* Two bytes a pixel, and four. */
		uint64_t least = jpeg ? UINT64_C(2) * 2900 * 3100
				      : UINT64_C(4) * 2100 * 2200;

		load(other, &f, 0, 0, want, &box);
		assert_int_equal(tsi_budget_create(least - 1, &claim.budget),
				 0);
		assert_int_equal(
			tsi_image_load(img, f.data, f.len, 0, 0, got, &box),
			TSOCK_EDATA);
		assert_non_null(strstr(tsock_errmsg(), "--image-memory"));
		assert_int_equal(claim.held, 0);
		tsi_budget_destroy(claim.budget);

		assert_int_equal(tsi_budget_create(2 * least, &claim.budget),
				 0);
		load(img, &f, 0, 0, got, &box);
		assert_memory_equal(want, got, BYTES);
		assert_in_range(claim.held, least, least + (6 << 20));
		tsi_budget_claim_end(&claim);
		/* A small one passes by, with its file in the claim or not. */
		load(img, &small, 0, 0, got, &box);
		assert_int_equal(claim.held, 0);
		tsi_budget_destroy(claim.budget);
		free(f.data);
	}
	tsi_image_destroy(img);
	tsi_image_destroy(other);
	free(small.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_depends_on_its_key_alone),
		cmocka_unit_test(eval_does_not_depend_on_the_key),
		cmocka_unit_test(nothing_is_written_beside_the_sample),
		cmocka_unit_test(
			a_crop_larger_than_the_image_is_black_around_it),
		cmocka_unit_test(a_bad_file_leaves_the_decoder_as_it_was),
		cmocka_unit_test(no_sample_needs_fewer_rows_than_the_least),
		cmocka_unit_test(damage_is_bad_for_the_places_that_reach_it),
		cmocka_unit_test(large_images_claim_their_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
