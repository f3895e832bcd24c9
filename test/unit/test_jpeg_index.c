/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_index.c - with an index, samples are entered in the middle and have
 * the same pixels; entries fit into their memory, belong to the bytes that they
 * were recorded of, and grow with what is decoded.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "base/err.h"
#include "base/hash.h"
#include "jpeg/check.h"
#include "jpeg/index.h"
#include "jpeg/pixels.h"
#include "test/lib/jpeg_region.h"
#include "test/lib/made_jpeg.h"
#include "test/lib/recipes.h"

/* A region, as entries of the index give it: 0 or libjpeg's verdict. */
static int region(struct tsi_decoder *j, struct tsi_jpeg_index *x,
		  uint64_t file, const struct image_gen_bytes *f,
		  const struct tsi_rect *r, uint8_t *out)
{
	const struct tsi_image_opts opts = { .jpeg_index = x };
	struct tsi_decoder_hint hint = { .opts = &opts, .file = file };

	tsi_jpeg_ops.hint(j, &hint);
	if (r->top % 2)
		return jpeg_region_planes(j, f, r, out);
	return jpeg_region(j, f, r, out);
}

/*
 * The region by libjpeg; or, where that gives other pixels of damaged files,
 * from a file of which nothing is known.
 */
static int reference_region(struct tsi_decoder *j, bool damaged,
			    const struct image_gen_bytes *f,
			    const struct tsi_rect *r, uint8_t *out)
{
	const struct tsi_image_opts opts = {
		.stock_jpeg = !damaged || TSI_JPEG_PIXELS_ALWAYS_ALIKE
	};
	struct tsi_decoder_hint hint = { .opts = &opts };

	tsi_jpeg_ops.hint(j, &hint);
	return jpeg_region(j, f, r, out);
}

static void check_region(struct tsi_decoder *j, bool damaged,
			 struct tsi_jpeg_index *x, uint64_t file,
			 const struct image_gen_bytes *f,
			 const struct tsi_rect *r)
{
	size_t len = (size_t)r->width * r->height * 3;
	uint8_t *a = malloc(len), *b = malloc(len);
	int err = reference_region(j, damaged, f, r, b);

	assert_int_equal(region(j, x, file, f, r, a), err);
	if (!err && memcmp(a, b, len))
		fail_msg("file %u: the region %u x %u at %u, %u differs",
			 (unsigned)file, r->width, r->height, r->left, r->top);
	/* Entries are used no longer than that. */
	tsi_jpeg_ops.close(j);
	free(a);
	free(b);
}

static struct tsi_jpeg_known *find(struct tsi_jpeg_index *x, uint64_t file,
				   const struct image_gen_bytes *f)
{
	struct tsi_jpeg_scan s;

	assert_true(tsi_jpeg_scan_read(f->data, f->len, &s));
	return tsi_jpeg_index_find(x, file, tsi_hash(f->data, f->len, f->len),
				   &s.frame, f->len);
}

/* A sample of the n-th file, by tsi_image_load_file(). */
static void sample(struct tsi_jpeg_index *x, bool stock, uint64_t file,
		   uint32_t epoch, const struct image_gen_bytes *f,
		   uint8_t *out)
{
	struct tsi_image_opts o = { .recipe = recipes_train(48),
				    .seed = 3,
				    .stock_jpeg = stock,
				    .jpeg_index = x };
	struct tsi_image *img;
	struct tsi_box box;

	assert_int_equal(tsi_image_create(&o, &img), 0);
	assert_int_equal(tsi_image_load_file(img, file, f->data, f->len, epoch,
					     file, out, &box),
			 0);
	tsi_image_destroy(img);
}

static void samples_are_the_same_with_an_index(void **state)
{
	struct tsi_jpeg_index *x = made_jpeg_index(10, 1 << 20);
	uint8_t a[48 * 48 * 3], b[48 * 48 * 3];

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		uint64_t file = i % 10;
		struct image_gen_bytes f = made_jpeg(i % 10, 250, 200);

		sample(x, false, file, i / 10, &f, a);
		sample(NULL, true, file, i / 10, &f, b);
		assert_memory_equal(a, b, sizeof(a));
		assert_int_not_equal(tsi_jpeg_known_rows(find(x, file, &f)), 0);
		free(f.data);
	}
	tsi_jpeg_index_destroy(x);
}

static void the_decoder_of_this_machine_is_libjpegs_equal(void **state)
{
	(void)state;
	if (tsi_jpeg_check(false))
		fail_msg("%s", tsock_errmsg());
}

#define FILES 40

static void regions_are_the_same_with_an_index(void **state)
{
	/* Columns for all, for rows alone, and for few files anything. */
	static const uint64_t memory[] = { 1 << 20, 16000, 4000 };
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (unsigned m = 0; m < 3; m++) {
		struct tsi_jpeg_index *x = made_jpeg_index(FILES, memory[m]);
		uint64_t r = m;

		for (unsigned i = 0; i < FILES * 12; i++) {
			unsigned file = i % FILES;
			uint32_t w = 1 + file * 37 % 300;
			uint32_t h = 1 + file * 53 % 300;
			struct image_gen_bytes f = made_jpeg(file, w, h);
			struct jpeg_picture p = { .width = w, .height = h };
			struct tsi_rect rect =
				jpeg_region_pick(&p, 1 + (int)(i / FILES), &r);

			check_region(j, false, x, file, &f, &rect);
			free(f.data);
		}
		assert_in_range(tsi_jpeg_index_memory(x), 1000, memory[m]);
		tsi_jpeg_index_destroy(x);
	}
	tsi_jpeg_ops.destroy(j);
}

#define ACROSS 19
#define DOWN 5

/* From each MCU on: within it, and as far as the next ones. */
static void enter_everywhere(struct tsi_decoder *j, struct tsi_jpeg_index *x,
			     const struct image_gen_bytes *f, const int *luma)
{
	const uint32_t mw = 8 * (uint32_t)luma[0], mh = 8 * (uint32_t)luma[1];
	const uint32_t width = ACROSS * mw, height = DOWN * mh;

	for (uint32_t i = 0; i < ACROSS * DOWN; i++) {
		/* Behind the first columns, whose chroma reaches further. */
		struct tsi_rect r = { .left = i % ACROSS * mw + 2,
				      .top = i / ACROSS * mh + i % 4,
				      .width = 4,
				      .height = 3 };

		check_region(j, false, x, 0, f, &r);
		r.left -= 2;
		r.width = width - r.left < 25 ? width - r.left : 25;
		r.height = height - r.top < 19 ? height - r.top : 19;
		check_region(j, false, x, 0, f, &r);
	}
}

/* Entries of columns where there is memory for them, and of rows alone. */
static void every_entry(int components, const int *luma, uint64_t memory,
			uint32_t step)
{
	struct image_gen_jpeg g = {
		.width = ACROSS * 8 * (uint32_t)luma[0],
		.height = DOWN * 8 * (uint32_t)luma[1],
		.components = components,
		.quality = 90,
		.seed = 6,
	};
	const struct tsi_rect bottom = { 0, g.height - 1, 1, 1 };
	struct tsi_jpeg_index *x = made_jpeg_index(1, memory);
	struct tsi_jpeg_known *k;
	struct image_gen_bytes f;
	struct tsi_decoder *j;

	g.factor[0][0] = luma[0];
	g.factor[0][1] = luma[1];
	f = image_gen_jpeg(&g);
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	check_region(j, false, x, 0, &f, &bottom);
	k = find(x, 0, &f);
	assert_int_equal(tsi_jpeg_known_rows(k), DOWN);
	assert_int_equal(tsi_jpeg_known_step(k), step);
	enter_everywhere(j, x, &f, luma);
	tsi_jpeg_ops.destroy(j);
	tsi_jpeg_index_destroy(x);
	free(f.data);
}

static void pixels_are_the_same_from_every_row_and_column(void **state)
{
	static const int luma[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 } };

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		const int *factor = luma[i % 4];
		int components = i < 4 ? 3 : 1;

		every_entry(components, factor, 1 << 20, TSI_JPEG_INDEX_STEP);
		every_entry(components, factor, 200, 0);
	}
}

static void entries_grow_with_what_is_decoded(void **state)
{
	struct tsi_jpeg_index *x = made_jpeg_index(2, 1 << 20);
	struct image_gen_bytes f =
		made_jpeg(3, 200, 320); /* 2x2: 13 x 20 MCUs */
	struct tsi_rect r = { 100, 40, 20, 20 };
	struct tsi_jpeg_known *k = find(x, 1, &f);
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	assert_int_equal(tsi_jpeg_known_rows(k), 0);
	assert_int_equal(tsi_jpeg_known_step(k), TSI_JPEG_INDEX_STEP);
	/* Rows 40 to 59: MCUs 2 and 3. */
	check_region(j, false, x, 1, &f, &r);
	assert_int_equal(tsi_jpeg_known_rows(k), 4);
	/* Rows 50 to 63: the last two wait for chroma of the next MCU. */
	r = (struct tsi_rect){ 0, 50, 200, 14 };
	check_region(j, false, x, 1, &f, &r);
	assert_int_equal(tsi_jpeg_known_rows(k), 5);
	r = (struct tsi_rect){ 0, 0, 1, 1 };
	check_region(j, false, x, 1, &f, &r);
	assert_int_equal(tsi_jpeg_known_rows(k), 5);
	r = (struct tsi_rect){ 0, 319, 1, 1 };
	check_region(j, false, x, 1, &f, &r);
	assert_int_equal(tsi_jpeg_known_rows(k), 20);
	assert_ptr_equal(find(x, 1, &f), k);
	tsi_jpeg_ops.destroy(j);
	tsi_jpeg_index_destroy(x);
	free(f.data);
}

/* The number and the length stay, the bytes are others. */
/* Every second file has eight times the bytes, and rows as many. */
static void memory_for_some_goes_to_files_with_more_to_skip(void **state)
{
	enum { files = 1000, down = 40 };
	struct tsi_jpeg_frame f = { .mcus_across = 50, .mcus_down = down };
	uint64_t each = 8 + 48 + (down + 1) * 8; /* about, for rows alone */
	struct tsi_jpeg_index *x = made_jpeg_index(files, files / 2 * each);
	unsigned got[2] = { 0, 0 };

	(void)state;
	/* A later epoch finds what the first one has left. */
	for (unsigned epoch = 0; epoch < 2; epoch++)
		for (unsigned i = 0; i < files; i++)
			tsi_jpeg_index_find(x, i, 1, &f, i % 2 ? 80000 : 10000);
	for (unsigned i = 0; i < files; i++)
		got[i % 2] +=
			tsi_jpeg_index_find(x, i, 1, &f,
					    i % 2 ? 80000 : 10000) != NULL;
	assert_in_range(got[1], 440, 500);
	assert_in_range(got[0], 20, 60);
	assert_in_range(tsi_jpeg_index_memory(x), files / 2 * each * 9 / 10,
			files / 2 * each);
	tsi_jpeg_index_destroy(x);
	/* With memory for all of them nobody goes without. */
	x = made_jpeg_index(files, files * each + each);
	for (unsigned i = 0; i < files; i++)
		assert_non_null(tsi_jpeg_index_find(x, i, 1, &f,
						    i % 2 ? 80000 : 10000));
	tsi_jpeg_index_destroy(x);
}

static void a_changed_file_is_recorded_anew(void **state)
{
	struct tsi_jpeg_index *x = made_jpeg_index(1, 1 << 20);
	struct tsi_rect r = { 60, 60, 20, 20 };
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (unsigned i = 0; i < 10; i++) {
		struct image_gen_bytes f = made_jpeg(i % 2 * 8, 100, 100);

		check_region(j, false, x, 0, &f, &r);
		if (i > 1) {
			f.data[f.len / 2] ^= 1;
			check_region(j, false, x, 0, &f, &r);
		}
		free(f.data);
	}
	tsi_jpeg_ops.destroy(j);
	tsi_jpeg_index_destroy(x);
}

/*
 * Whatever is known of a file: damage has libjpeg's consequences.  Where that
 * gives other pixels, files that would show who made which are rare.
 */
#define DAMAGED (TSI_JPEG_PIXELS_ALWAYS_ALIKE ? 300u : 4000u)

static void damaged_files_are_libjpegs(void **state)
{
	struct tsi_decoder *j;
	uint64_t r = 11;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (unsigned i = 0; i < DAMAGED; i++) {
		struct image_gen_bytes f = made_jpeg(i, 90, 110);
		struct jpeg_picture p = { .width = 90, .height = 110 };
		struct tsi_jpeg_index *x =
			made_jpeg_index(1, i % 3 ? 1 << 20 : 700);
		struct tsi_jpeg_scan s;

		assert_true(tsi_jpeg_scan_read(f.data, f.len, &s));
		/* Behind the header: cut, or with bits that have flipped. */
		if (i % 2)
			f.len = s.data +
				image_gen_random(&r) % (f.len - s.data);
		for (unsigned k = 0; f.len > s.data && k < i % 4; k++)
			f.data[s.data +
			       image_gen_random(&r) % (f.len - s.data)] ^=
				(uint8_t)(1 << image_gen_random(&r) % 8);
		for (int n = 0; n < 12; n++) {
			struct tsi_rect rect =
				jpeg_region_pick(&p, n ? n : 8, &r);

			check_region(j, true, x, 0, &f, &rect);
		}
		tsi_jpeg_index_destroy(x);
		free(f.data);
	}
	tsi_jpeg_ops.destroy(j);
}

/* The last rows of pixels that a cut file gives are the same. */
static void a_cut_file_ends_at_the_same_row(void **state)
{
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (unsigned i = 0; i < 20; i++) {
		struct image_gen_bytes f = made_jpeg(i, 40, 64);
		struct tsi_jpeg_index *x = made_jpeg_index(1, 1 << 20);
		size_t len = f.len;

		for (f.len = len - 7; f.len > len / 2; f.len -= len / 9)
			for (uint32_t h = 1; h <= 64; h++) {
				struct tsi_rect rect = { 0, 0, 9, h };

				check_region(j, false, x, 0, &f, &rect);
			}
		tsi_jpeg_index_destroy(x);
		free(f.data);
	}
	tsi_jpeg_ops.destroy(j);
}

struct worker {
	pthread_t thread;
	struct tsi_jpeg_index *x;
	struct image_gen_bytes *files;
	uint64_t seed;
};

#define THREAD_FILES 4

static void *work(void *arg)
{
	struct worker *w = arg;
	struct jpeg_picture p = { .width = 200, .height = 300 };
	struct tsi_decoder *j;

	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (int i = 0; i < 60; i++) {
		unsigned file = (unsigned)i / 15;
		struct tsi_rect rect = jpeg_region_pick(&p, 1 + i, &w->seed);

		check_region(j, false, w->x, file, &w->files[file], &rect);
	}
	tsi_jpeg_ops.destroy(j);
	return NULL;
}

static void threads_share_an_index(void **state)
{
	struct image_gen_bytes files[THREAD_FILES];
	struct worker w[4];

	(void)state;
	for (unsigned i = 0; i < THREAD_FILES; i++)
		files[i] = made_jpeg(i, 200, 300);
	for (int round = 0; round < 3; round++) {
		struct tsi_jpeg_index *x =
			made_jpeg_index(THREAD_FILES, 1 << 20);

		for (unsigned i = 0; i < 4; i++) {
			w[i] = (struct worker){ .x = x,
						.files = files,
						.seed = i + 9 };
			assert_int_equal(
				pthread_create(&w[i].thread, NULL, work, &w[i]),
				0);
		}
		for (unsigned i = 0; i < 4; i++)
			pthread_join(w[i].thread, NULL);
		tsi_jpeg_index_destroy(x);
	}
	for (unsigned i = 0; i < THREAD_FILES; i++)
		free(files[i].data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_decoder_of_this_machine_is_libjpegs_equal),
		cmocka_unit_test(samples_are_the_same_with_an_index),
		cmocka_unit_test(regions_are_the_same_with_an_index),
		cmocka_unit_test(pixels_are_the_same_from_every_row_and_column),
		cmocka_unit_test(entries_grow_with_what_is_decoded),
		cmocka_unit_test(
			memory_for_some_goes_to_files_with_more_to_skip),
		cmocka_unit_test(a_changed_file_is_recorded_anew),
		cmocka_unit_test(damaged_files_are_libjpegs),
		cmocka_unit_test(a_cut_file_ends_at_the_same_row),
		cmocka_unit_test(threads_share_an_index),
	};

	if (!made_jpeg_is_indexed()) {
		puts("no vector instructions, so no index");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
