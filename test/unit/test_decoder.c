/* SPDX-License-Identifier: MIT */
/*
 * test_decoder.c - an image format that the producer doesn't have, by one line
 * in the table of decoders, all the way to samples.
 *
 * The table below stands for that of producer/image/formats.c, which the linker
 * leaves out here.
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
#include "image/formats.h"
#include "decoder_ppm.h"
#include "jpeg/jpeg.h"
#include "packed/decoder.h"
#include "png/png.h"
#include "test/lib/image_gen.h"
#include "test/lib/worker_fixture.h"
#include "test/lib/recipes.h"

#define FILES 9
#define SAMPLES (3 * FILES)

static struct tsi_decoder_hint hinted;

/* PPM's operations, and a look at what loading says of a file. */
static void note_hint(struct tsi_decoder *d,
		      const struct tsi_decoder_hint *hint)
{
	(void)d;
	hinted = *hint;
}

static struct tsi_decoder_ops ppm_ops;

static int create_noted(struct tsi_decoder **out)
{
	int err = tsi_ppm_ops.create(out);

	if (!err)
		(*out)->ops = &ppm_ops;
	return err;
}

const struct tsi_decoder_ops *const tsi_decoders[] = {
	&tsi_jpeg_ops, &tsi_png_ops, &tsi_packed_ops,
	&ppm_ops, /* the line that a new format takes */
	NULL,
};

/* The pixels of a PNG file as a PPM file. */
static struct image_gen_bytes ppm_of(const struct image_gen_bytes *png_file)
{
	struct tsi_rect all = { 0 };
	struct image_gen_bytes f;
	struct tsi_strip strip;
	struct tsi_decoder *d;
	size_t at;

	assert_int_equal(tsi_png_ops.create(&d), 0);
	assert_int_equal(tsi_png_ops.open(d, png_file->data, png_file->len,
					  &all.width, &all.height),
			 0);
	f.len = (size_t)all.width * all.height * 3 + 40;
	f.data = malloc(f.len);
	at = (size_t)snprintf((char *)f.data, 40, "P6 %u %u 255\n", all.width,
			      all.height);
	assert_int_equal(tsi_png_ops.begin(d, &all), 0);
	for (uint32_t y = 0; y < all.height; y += strip.rows) {
		assert_int_equal(tsi_png_ops.read(d, &strip), 0);
		for (uint32_t i = 0; i < strip.rows * all.width; i++, at += 3)
			memcpy(f.data + at,
			       strip.pixels + i / all.width * strip.stride +
				       (size_t)(i % all.width) * 4,
			       3);
	}
	f.len = at;
	tsi_png_ops.close(d);
	tsi_png_ops.destroy(d);
	return f;
}

static struct image_gen_bytes png_number(unsigned i)
{
	struct image_gen_png g = { .width = 30 + 5 * i,
				   .height = 70 - 3 * i,
				   .depth = 8,
				   .type = PNG_COLOR_TYPE_RGB,
				   .seed = i };

	return image_gen_png(&g);
}

/* Equal pixels in each format. */
static void put_images(bool ppm)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_bytes f = png_number(i), p = ppm_of(&f);
		char name[16];

		/* One name for both, so that the order is one too. */
		snprintf(name, sizeof(name), "%c/%u.ppm", 'a' + i / 3, i);
		if (ppm)
			worker_put(name, p.data, p.len);
		else
			worker_put(name, f.data, f.len);
		free(f.data);
		free(p.data);
	}
}

static void make_all(struct sample *to, uint64_t n, unsigned *substituted)
{
	struct tsi_sampler *s = worker_open_sampler();

	memset(to, 0, n * sizeof(*to));
	assert_int_equal(worker_make(s, DEPTH, to, n, substituted), 0);
	tsi_sampler_close(s);
}

static void samples_are_those_of_another_format(void **state)
{
	struct sample want[64], got[64];
	unsigned n;

	(void)state;
	worker_options.order = TSOCK_ORDER_PHILOX;
	for (unsigned k = 0; k < 2; k++) {
		worker_options.recipe =
			k ? recipes_eval(SIZE, SIZE) : recipes_train(SIZE);
		put_images(false);
		hinted.file = SAMPLES;
		make_all(want, SAMPLES, &n);
		assert_int_equal(n, 0);
		assert_int_equal(hinted.file, SAMPLES);
		put_images(true);
		make_all(got, SAMPLES, &n);
		assert_int_equal(n, 0);
		for (unsigned i = 0; i < SAMPLES; i++)
			assert_memory_equal(&want[i], &got[i], sizeof(got[i]));
		/* This decoder was used. */
		assert_in_range(hinted.file, 0, FILES - 1);
	}
	assert_memory_not_equal(&got[0], &got[1], sizeof(got[0]));
}

/* What ends in the middle serves the samples that don't reach so far. */
static void a_cut_file_is_bad_for_the_samples_that_reach_the_cut(void **state)
{
	struct image_gen_bytes f = png_number(4), p = ppm_of(&f);
	struct sample whole[64], got[64];
	unsigned n, other = 0;

	(void)state;
	put_images(true);
	make_all(whole, 64, &n);
	worker_put("b/4.ppm", p.data, p.len * 2 / 3);
	make_all(got, 64, &n);
	for (unsigned i = 0; i < 64; i++) {
		bool same = !memcmp(&whole[i], &got[i], sizeof(got[i]));

		/* In its place, another file's. */
		if (same)
			assert_int_equal(got[i].index, i % FILES);
		else
			assert_int_not_equal(got[i].index, 4);
		other += !same;
		assert_true(same || i % FILES == 4);
	}
	assert_int_equal(n, other);
	assert_in_range(n, 1, 64 / FILES - 1);
	free(f.data);
	free(p.data);
}

static void messages_name_it(void **state)
{
	struct tsi_image_head h;

	(void)state;
	assert_int_equal(tsi_image_sniff("P6 40 3", 7, false, &h),
			 TSOCK_EAGAIN);
	assert_int_equal(tsi_image_sniff("P6 40 3", 7, true, &h), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "PPM is truncated"));
	assert_int_equal(tsi_image_sniff("P6 0 3 255\n", 11, true, &h),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "PPM is empty"));
	assert_int_equal(tsi_image_sniff("P6 40 30 255\n", 13, false, &h), 0);
	assert_int_equal(h.format, 3);
	assert_int_equal(h.width, 40);
	assert_int_equal(h.height, 30);
	assert_int_equal(tsi_image_sniff("some text", 9, true, &h),
			 TSOCK_EDATA);
	assert_string_equal(tsock_errmsg(),
			    "neither JPEG nor PNG nor PPM but text");
}

/* What is known of a file, and of all, comes to the decoder. */
static void a_decoder_is_told_what_is_known(void **state)
{
	struct tsi_image_opts o = { .recipe = recipes_train(SIZE), .seed = 3 };
	struct image_gen_bytes f = png_number(1), p = ppm_of(&f);
	struct tsi_image_extent e;
	uint8_t dst[SIZE * SIZE * 3];
	struct tsi_image *img;
	struct tsi_box box;

	(void)state;
	assert_int_equal(tsi_image_create(&o, &img), 0);
	for (unsigned trust = 0; trust < 2; trust++) {
		tsi_image_trust(img, trust);
		assert_int_equal(tsi_image_load_file(img, 7 + trust, p.data,
						     p.len, 0, 0, dst, &box),
				 0);
		assert_int_equal(hinted.trusted, trust);
		assert_int_equal(hinted.file, 7 + trust);
		assert_int_equal(hinted.opts->seed, 3);
		assert_false(hinted.opts->stock_jpeg);
	}
	assert_int_equal(tsi_image_measure(img, p.data, p.len, &e), 0);
	assert_int_equal(e.rows, 67);
	assert_true(hinted.opts->stock_jpeg);
	assert_false(hinted.trusted);
	tsi_image_destroy(img);
	free(f.data);
	free(p.data);
}

static int set_up(void **state)
{
	(void)state;
	ppm_ops = tsi_ppm_ops;
	ppm_ops.hint = note_hint;
	ppm_ops.create = create_noted;
	return 0;
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, worker_make_root, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_are_those_of_another_format),
		TEST(a_cut_file_is_bad_for_the_samples_that_reach_the_cut),
		cmocka_unit_test(messages_name_it),
		cmocka_unit_test(a_decoder_is_told_what_is_known),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
