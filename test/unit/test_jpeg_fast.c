/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_fast.c - fast pixels of a JPEG are the same whatever way it is
 * decoded, and lie where the exact ones do.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "base/err.h"
#include "base/hash.h"
#include "jpeg/check.h"
#include "jpeg/index.h"
#include "jpeg/pixels.h"
#include "jpeg/scan.h"
#include "test/lib/jpeg_region.h"
#include "test/lib/made_jpeg.h"
#include "test/lib/pack_image.h"
#include "test/lib/recipes.h"
#include "test/lib/sanitized.h"

#define SIZE 40
#define BYTES (SIZE * SIZE * 3)
#define SEED 5

/* ------------------------------------------------------------------------
 * Regions
 */

/*
 * The decoder's own code from an index says what libjpeg alone says; or, where
 * that gives other pixels of damaged files, what it says without an index.
 */
static void check_region(struct tsi_decoder *j, bool damaged,
			 struct tsi_jpeg_index *x, uint64_t file,
			 const struct image_gen_bytes *f,
			 const struct tsi_rect *r)
{
	const struct tsi_image_opts by_lib = {
		.stock_jpeg = !damaged || TSI_JPEG_PIXELS_ALWAYS_ALIKE
	};
	struct tsi_decoder_hint stock = { .opts = &by_lib };
	const struct tsi_image_opts opts = { .jpeg_index = x };
	struct tsi_decoder_hint own = { .opts = &opts, .file = file };
	size_t len = (size_t)r->width * r->height * 3;
	uint8_t *a = malloc(len), *b = malloc(len);
	int err;

	tsi_jpeg_ops.hint(j, &stock);
	err = jpeg_region(j, f, r, a);
	tsi_jpeg_ops.hint(j, &own);
	if (r->top % 2)
		assert_int_equal(jpeg_region_planes(j, f, r, b), err);
	else
		assert_int_equal(jpeg_region(j, f, r, b), err);
	if (!err && memcmp(a, b, len))
		fail_msg("file %u, fast %u: the region %u x %u at %u, %u "
			 "differs",
			 (unsigned)file, j->fast, r->width, r->height, r->left,
			 r->top);
	tsi_jpeg_ops.close(j);
	free(a);
	free(b);
}

/* A picture of a file's size at 1/fast. */
static struct jpeg_picture shrunk(uint32_t width, uint32_t height,
				  unsigned fast)
{
	return (struct jpeg_picture){ .width = (width + fast - 1) / fast,
				      .height = (height + fast - 1) / fast };
}

#define FILES 24
#define TURNS (SANITIZED ? 8u : 20u)

/* Entered at any place, and each file at all four sizes by the same entries. */
static void regions_are_libjpegs_with_an_index(void **state)
{
	/* Columns for all, for rows alone, and for few files anything. */
	static const uint64_t memory[] = { 1 << 20, 12000, 3000 };
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (unsigned m = 0; m < 3; m++) {
		struct tsi_jpeg_index *x = made_jpeg_index(FILES, memory[m]);
		uint64_t r = m;

		for (unsigned i = 0; i < FILES * TURNS; i++) {
			unsigned file = i % FILES, turn = i / FILES;
			uint32_t w = 1 + file * 37 % 300;
			uint32_t h = 1 + file * 53 % 300;
			struct image_gen_bytes f = made_jpeg(file, w, h);
			struct jpeg_picture p;
			struct tsi_rect rect;

			j->fast = 1u << turn % 4;
			p = shrunk(w, h, j->fast);
			rect = jpeg_region_pick(&p, 1 + (int)turn, &r);
			check_region(j, false, x, file, &f, &rect);
			free(f.data);
		}
		tsi_jpeg_index_destroy(x);
	}
	tsi_jpeg_ops.destroy(j);
}

/* Damage has the same consequences wherever it is entered. */
static void damaged_files_are_libjpegs(void **state)
{
	struct tsi_decoder *j;
	uint64_t r = 11;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (unsigned i = 0; i < 240; i++) {
		struct image_gen_bytes f = made_jpeg(i, 90, 110);
		struct tsi_jpeg_index *x =
			made_jpeg_index(1, i % 3 ? 1 << 20 : 700);
		struct tsi_jpeg_scan s;

		assert_true(tsi_jpeg_scan_read(f.data, f.len, &s));
		if (i % 2)
			f.len = s.data +
				image_gen_random(&r) % (f.len - s.data);
		for (unsigned k = 0; k < i % 4; k++)
			f.data[s.data +
			       image_gen_random(&r) % (f.len - s.data)] ^=
				(uint8_t)(1 << image_gen_random(&r) % 8);
		for (int n = 0; n < 12; n++) {
			struct jpeg_picture p;
			struct tsi_rect rect;

			j->fast = 1u << n % 4;
			p = shrunk(90, 110, j->fast);
			rect = jpeg_region_pick(&p, n ? n : 8, &r);
			check_region(j, true, x, 0, &f, &rect);
		}
		tsi_jpeg_index_destroy(x);
		free(f.data);
	}
	tsi_jpeg_ops.destroy(j);
}

/* Exact, a region at 50 to 63 takes the next row of MCUs too. */
static void chroma_needs_no_rows_below(void **state)
{
	struct tsi_rect r = { 0, 50, 200, 14 };
	struct tsi_jpeg_index *x;
	struct image_gen_bytes f;
	struct tsi_jpeg_known *k;
	struct tsi_jpeg_scan s;
	struct tsi_decoder *j;

	(void)state;
	if (!made_jpeg_is_indexed())
		skip();
	x = made_jpeg_index(1, 1 << 20);
	f = made_jpeg(3, 200, 320); /* 2x2: 13 x 20 MCUs */
	assert_true(tsi_jpeg_scan_read(f.data, f.len, &s));
	k = tsi_jpeg_index_find(x, 0, tsi_hash(f.data, f.len, f.len), &s.frame,
				f.len);
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	j->fast = 1;
	check_region(j, false, x, 0, &f, &r);
	assert_int_equal(tsi_jpeg_known_rows(k), 4);
	j->fast = 0;
	check_region(j, false, x, 0, &f, &r);
	assert_int_equal(tsi_jpeg_known_rows(k), 5);
	tsi_jpeg_ops.destroy(j);
	tsi_jpeg_index_destroy(x);
	free(f.data);
}

/* ------------------------------------------------------------------------
 * Samples
 */

static struct tsi_image *open_image(const struct tsi_recipe *recipe, bool fast,
				    bool stock, struct tsi_jpeg_index *x)
{
	struct tsi_image_opts o = {
		.recipe = recipe,
		.seed = SEED,
		.fast = fast,
		.stock_jpeg = stock,
		.jpeg_index = x,
	};
	struct tsi_image *img;

	assert_int_equal(tsi_image_create(&o, &img), 0);
	return img;
}

static int load(struct tsi_image *img, uint64_t file,
		const struct image_gen_bytes *f, uint32_t epoch, uint8_t *out)
{
	struct tsi_box box;

	memset(out, 0xa5, BYTES);
	return tsi_image_load_file(img, file, f->data, f->len, epoch, file, out,
				   &box);
}

/* A sample's pixels: from the file, by an index or libjpeg, from its record. */
static void check_sample(struct tsi_image *const by[3], uint64_t file,
			 uint32_t epoch, const struct image_gen_bytes *f,
			 const struct image_gen_bytes *packed)
{
	uint8_t want[BYTES], got[BYTES];
	int err = load(by[0], file, f, epoch, want);

	for (int i = 1; i < 3; i++) {
		assert_int_equal(load(by[i], file, f, epoch, got), err);
		if (!err)
			assert_memory_equal(want, got, BYTES);
	}
	if (err || !packed->len)
		return;
	assert_int_equal(load(by[0], file, packed, epoch, got), 0);
	assert_memory_equal(want, got, BYTES);
}

/* Sizes that are shrunk by less than 2, by more, and by more than 16. */
static void samples_are_the_same_by_every_way(void **state)
{
	struct tsi_jpeg_index *x = made_jpeg_index(JPEG_SAMPLINGS * 4, 1 << 20);
	struct tsi_image *by[2][3];

	(void)state;
	for (int e = 0; e < 2; e++) {
		const struct tsi_recipe *recipe =
			e ? recipes_eval(46, SIZE) : recipes_train(SIZE);

		by[e][0] = open_image(recipe, true, false, NULL);
		by[e][1] = open_image(recipe, true, false, x);
		by[e][2] = open_image(recipe, true, true, NULL);
	}
	for (unsigned i = 0; i < JPEG_SAMPLINGS * 4; i += SANITIZED ? 3 : 1) {
		const struct jpeg_region_sampling *s =
			&jpeg_region_sampling[i % JPEG_SAMPLINGS];
		unsigned how = i / JPEG_SAMPLINGS;
		uint64_t state_ = i;
		struct image_gen_jpeg g = {
			.width = 60 + image_gen_random(&state_) % 200 * how,
			.height = 60 + image_gen_random(&state_) % 200 * how,
			.components = s->components,
			.space = s->space,
			.progressive = how == 1,
			.restart_rows = i % 5 == 0,
			.arithmetic = i % 9 == 0,
			.seed = i,
		};
		struct image_gen_bytes f, packed = { 0 };

		memcpy(g.factor, s->factor, sizeof(g.factor));
		f = image_gen_jpeg(&g);
		if (s->components < 4)
			packed = pack_image(&f);
		for (uint32_t epoch = 0; epoch < 5; epoch++)
			check_sample(by[epoch == 4], i, epoch, &f, &packed);
		/* Without its end, it is left to libjpeg in the middle. */
		f.len -= f.len / 4;
		packed.len = 0;
		for (uint32_t epoch = 0; epoch < 5; epoch++)
			check_sample(by[epoch == 4], i, epoch, &f, &packed);
		free(packed.data);
		free(f.data);
	}
	for (int i = 0; i < 6; i++)
		tsi_image_destroy(by[i / 3][i % 3]);
	tsi_jpeg_index_destroy(x);
}

/* How an output pixel weighs source pixel at (whole), by the definition. */
static double weight(double from, double span, uint32_t i, uint32_t at)
{
	double scale = span / SIZE, support = scale < 1 ? 1 : scale;
	double far = fabs(at + 0.5 - (from + (i + 0.5) * scale)) / support;

	return far < 1 ? 1 - far : 0;
}

/* A sample in exact arithmetic, of the rectangle [l, t, l + w, t + h). */
static double resized(const struct jpeg_picture *p, const double rect[4],
		      uint32_t x, uint32_t y, unsigned c)
{
	uint32_t left = (uint32_t)rect[0], top = (uint32_t)rect[1];
	uint32_t right = (uint32_t)ceil(rect[0] + rect[2]);
	uint32_t bottom = (uint32_t)ceil(rect[1] + rect[3]);
	double sum = 0, all = 0;

	for (uint32_t v = top; v < bottom; v++) {
		double down = weight(rect[1], rect[3], y, v);

		for (uint32_t u = left; down > 0 && u < right; u++) {
			double w = down * weight(rect[0], rect[2], x, u);

			sum += w * p->rgb[(v * p->width + u) * 3 + c];
			all += w;
		}
	}
	return sum / all;
}

/*
 * A sample is libjpeg's smaller picture, resized from where the box lies in it,
 * which is between two pixels mostly.
 */
static void the_box_lies_where_it_did(void **state)
{
	struct tsi_image *img =
		open_image(recipes_train(SIZE), true, false, NULL);
	unsigned seen[9] = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 30; i++) {
		uint32_t w = 60 + i * 25, h = 60 + i * 7 % 30 * 25;
		struct image_gen_bytes f = made_jpeg(i, w, h);
		struct jpeg_picture p;
		uint8_t got[BYTES];
		struct tsi_box box;
		unsigned n = 8;
		double rect[4];

		assert_int_equal(tsi_image_load_file(img, i, f.data, f.len, 1,
						     i, got, &box),
				 0);
		while (n > 1 && (box.width < (int)n * SIZE ||
				 box.height < (int)n * SIZE))
			n /= 2;
		seen[n]++;
		p = jpeg_region_reference_fast(&f, n);
		rect[0] = (double)box.left / n;
		rect[1] = (double)box.top / n;
		rect[2] = (double)box.width / n;
		rect[3] = (double)box.height / n;
		for (uint32_t k = 0; k < SIZE * SIZE * 3; k += 7) {
			uint32_t x = k / 3 % SIZE;
			double want =
				resized(&p, rect, box.flip ? SIZE - 1 - x : x,
					k / 3 / SIZE, k % 3);

			/* Each of the two passes rounds. */
			if (fabs(got[k] - want) > 1.01)
				fail_msg("image %u at 1/%u: byte %u is %u, "
					 "not %f",
					 i, n, k, got[k], want);
		}
		free(p.rgb);
		free(f.data);
	}
	assert_true(seen[1] && seen[2] && seen[4] && seen[8]);
	tsi_image_destroy(img);
}

/* What a truncated file is measured to have is what its samples get. */
static void a_cut_file_is_bad_for_the_samples_that_need_more(void **state)
{
	struct tsi_image *img =
		open_image(recipes_train(SIZE), true, false, NULL);
	unsigned good = 0, bad = 0;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		uint32_t w = 100 + i * 30, h = 90 + i * 25;
		struct image_gen_bytes f = made_jpeg(i, w, h);
		struct tsi_image_extent e;
		uint8_t out[BYTES];

		f.len -= f.len / (2 + i % 4);
		assert_int_equal(tsi_image_measure(img, f.data, f.len, &e), 0);
		for (uint32_t epoch = 0; epoch < 40; epoch++) {
			uint32_t bottom = tsi_image_bottom(img, w, h, epoch, i);
			int err = load(img, i, &f, epoch, out);

			assert_int_equal(err,
					 bottom > e.rows ? TSOCK_EDATA : 0);
			good += !err;
			bad += err != 0;
		}
		free(f.data);
	}
	assert_true(good > 50 && bad > 50);
	tsi_image_destroy(img);
}

/* Off, and for what isn't a JPEG, nothing changes. */
static void only_jpegs_have_fast_pixels(void **state)
{
	struct image_gen_png g = { .width = 300,
				   .height = 200,
				   .depth = 8,
				   .type = PNG_COLOR_TYPE_RGB };
	struct image_gen_bytes png = image_gen_png(&g);
	struct image_gen_bytes jpeg = made_jpeg(3, 300, 200);
	struct tsi_image *fast =
		open_image(recipes_eval(46, SIZE), true, false, NULL);
	struct tsi_image *exact =
		open_image(recipes_eval(46, SIZE), false, false, NULL);
	uint8_t a[BYTES], b[BYTES];

	(void)state;
	/* In turns: what the last image was doesn't matter. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(load(fast, 0, &jpeg, 0, a), 0);
		assert_int_equal(load(exact, 0, &jpeg, 0, b), 0);
		assert_memory_not_equal(a, b, BYTES);
		assert_int_equal(load(fast, 0, &png, 0, a), 0);
		assert_int_equal(load(exact, 0, &png, 0, b), 0);
		assert_memory_equal(a, b, BYTES);
	}
	tsi_image_destroy(fast);
	tsi_image_destroy(exact);
	free(png.data);
	free(jpeg.data);
}

static void this_machine_is_libjpegs_equal(void **state)
{
	(void)state;
	if (tsi_jpeg_check(true))
		fail_msg("%s", tsock_errmsg());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(this_machine_is_libjpegs_equal),
		cmocka_unit_test(regions_are_libjpegs_with_an_index),
		cmocka_unit_test(damaged_files_are_libjpegs),
		cmocka_unit_test(chroma_needs_no_rows_below),
		cmocka_unit_test(samples_are_the_same_by_every_way),
		cmocka_unit_test(the_box_lies_where_it_did),
		cmocka_unit_test(
			a_cut_file_is_bad_for_the_samples_that_need_more),
		cmocka_unit_test(only_jpegs_have_fast_pixels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
