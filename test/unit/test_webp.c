/* SPDX-License-Identifier: MIT */
/*
 * test_webp.c - every kind of WebP, by region, against libwebp's simple reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <webp/decode.h>

#include "base/err.h"
#include "image/load.h"
#include "test/lib/decoder_region.h"
#include "test/lib/recipes.h"
#include "test/lib/sanitized.h"
#include "test/lib/webp_gen.h"
#include "tsock/tsock.h"
#include "webp/webp.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct webp_gen kinds[] = {
	{ .quality = 90 },
	{ .quality = 20 },
	{ .quality = 75, .alpha = true },
	{ .lossless = true },
	{ .lossless = true, .alpha = true },
};

static struct image_gen_bytes make(unsigned kind, uint32_t width,
				   uint32_t height, uint64_t seed)
{
	struct webp_gen g = kinds[kind];

	g.width = width;
	g.height = height;
	g.seed = seed;
	return webp_gen(&g);
}

/* Regions of the file have the pixels of the whole, want, red to blue. */
static void compare_areas(struct tsi_decoder *p,
			  const struct image_gen_bytes *f, const uint8_t *want,
			  uint32_t w, uint32_t h, uint64_t *state)
{
	uint8_t *got = malloc((size_t)w * h * 4);

	for (int n = 0; n < 12; n++) {
		struct tsi_rect r = decoder_region_pick(w, h, n, state);

		if (decoder_region_read(p, f, &r, got))
			fail_msg("%s", tsock_errmsg());
		for (uint32_t i = 0; i < r.width * r.height; i++)
			assert_memory_equal(
				got + i * 4,
				want + ((size_t)(r.top + i / r.width) * w +
					r.left + i % r.width) *
						4,
				3);
	}
	free(got);
}

static void regions_of_every_kind_equal_the_whole(void **state)
{
	static const uint32_t size[][2] = {
		{ 1, 1 },   { 2, 3 },   { 3, 50 },   { 50, 2 },
		{ 61, 47 }, { 64, 64 }, { 150, 91 }, { 333, 200 },
	};
	uint64_t r = 1;
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_webp_ops.create(&p), 0);
	for (size_t i = 0; i < COUNT(kinds) * COUNT(size); i++) {
		const uint32_t *wh = size[i / COUNT(kinds)];
		struct image_gen_bytes f =
			make(i % COUNT(kinds), wh[0], wh[1], i);
		int w, h;
		uint8_t *want = WebPDecodeRGBA(f.data, f.len, &w, &h);

		assert_non_null(want);
		compare_areas(p, &f, want, wh[0], wh[1], &r);
		WebPFree(want);
		free(f.data);
	}
	tsi_webp_ops.destroy(p);
}

/* The first frame, and black where it is smaller than the animation. */
static void an_animation_is_its_first_frame_on_black(void **state)
{
	const struct tsi_rect canvas = { 0, 0, 50, 40 };
	const struct tsi_rect at[] = { { 0, 0, 50, 40 }, { 6, 10, 30, 21 } };
	uint64_t r = 3;
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_webp_ops.create(&p), 0);
	for (unsigned i = 0; i < COUNT(at) * COUNT(kinds); i++) {
		const struct tsi_rect *a = &at[i % COUNT(at)];
		struct image_gen_bytes first =
			make(i / COUNT(at), a->width, a->height, i);
		struct image_gen_bytes second = make(0, 50, 40, i + 1), f;
		uint8_t *want = calloc(50 * 40, 4), *frame;
		int w, h;

		f = webp_gen_animation(&canvas, &first, a, &second, &canvas);
		frame = WebPDecodeRGBA(first.data, first.len, &w, &h);
		for (uint32_t y = 0; y < a->height; y++)
			memcpy(want + ((a->top + y) * 50 + a->left) * 4,
			       frame + (size_t)y * a->width * 4,
			       (size_t)a->width * 4);
		compare_areas(p, &f, want, 50, 40, &r);
		WebPFree(frame);
		free(want);
		free(f.data);
		free(first.data);
		free(second.data);
	}
	tsi_webp_ops.destroy(p);
}

/* A container that is cut is bad to Pillow, wherever the crop is. */
static void every_cut_is_refused(void **state)
{
	struct tsi_rect top = { 0, 0, 40, 3 };
	uint8_t out[40 * 3 * 4];
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_webp_ops.create(&p), 0);
	for (unsigned kind = 0; kind < COUNT(kinds); kind++) {
		struct image_gen_bytes f = make(kind, 40, 60, kind);

		for (size_t len = 12; len < f.len; len += 7) {
			struct image_gen_bytes cut =
				image_gen_copy(f.data, len);

			assert_int_equal(
				decoder_region_read(p, &cut, &top, out),
				TSOCK_EDATA);
			assert_non_null(strstr(tsock_errmsg(), "bad WebP"));
			free(cut.data);
		}
		assert_int_equal(decoder_region_read(p, &f, &top, out), 0);
		free(f.data);
	}
	tsi_webp_ops.destroy(p);
}

static void damaged_files_decode_or_are_bad_data(void **state)
{
	uint64_t r = 7;
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_webp_ops.create(&p), 0);
	for (size_t i = 0; i < (SANITIZED ? 800 : 3000); i++) {
		struct image_gen_bytes f =
			make(i % COUNT(kinds), 1 + i % 60, 1 + i % 47, i);
		struct image_gen_bytes copy;
		uint32_t w, h;
		int err;

		image_gen_damage(&f, &r);
		copy = image_gen_copy(f.data, f.len);
		err = tsi_webp_ops.open(p, copy.data, copy.len, &w, &h);
		if (!err && (uint64_t)w * h < 1u << 22 && w && h) {
			struct tsi_rect rect =
				decoder_region_pick(w, h, (int)(i % 3), &r);
			uint8_t *out =
				malloc((size_t)rect.width * rect.height * 4);

			err = decoder_region_read(p, &copy, &rect, out);
			free(out);
		}
		if (err)
			assert_int_equal(err, TSOCK_EDATA);
		free(copy.data);
		free(f.data);
	}
	tsi_webp_ops.destroy(p);
}

/*
 * Of an image that is damaged in its middle, the rows that measuring finds good
 * are those that a crop may have.
 */
static void damage_counts_from_the_rows_that_need_it(void **state)
{
	const struct tsi_image_opts o = { .recipe = recipes_eval(8, 8) };
	struct image_gen_bytes f = make(3, 120, 160, 5);
	struct tsi_image_extent e = { 0 };
	struct tsi_decoder *p;
	struct tsi_image *img;
	uint8_t *out = malloc(120 * 160 * 4);

	(void)state;
	/* Symbols behind here are missing, and the chunk's size says so. */
	webp_gen_shorten(&f, f.len * 6 / 10);
	assert_int_equal(tsi_image_create(&o, &img), 0);
	assert_int_equal(tsi_image_measure(img, f.data, f.len, &e), 0);
	assert_in_range(e.rows, 10, 150);
	assert_int_equal(tsi_webp_ops.create(&p), 0);
	for (uint32_t bottom = 1; bottom <= 160; bottom++) {
		struct tsi_rect r = { 7, bottom / 2, 50, bottom - bottom / 2 };

		assert_int_equal(decoder_region_read(p, &f, &r, out),
				 bottom <= e.rows ? 0 : TSOCK_EDATA);
	}
	assert_non_null(strstr(tsock_errmsg(), "its image is"));
	tsi_webp_ops.destroy(p);
	tsi_image_destroy(img);
	free(out);
	free(f.data);
}

/* What is decoded with is what was claimed, of any part. */
static void a_large_image_needs_memory_for_its_pixels(void **state)
{
	struct tsi_decoder *p;
	uint64_t need[COUNT(kinds)];

	(void)state;
	assert_int_equal(tsi_webp_ops.create(&p), 0);
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		struct image_gen_bytes f = make(i, 2000, 1000, i);
		uint32_t w, h;

		assert_int_equal(tsi_webp_ops.open(p, f.data, f.len, &w, &h),
				 0);
		need[i] = tsi_webp_ops.need(p);
		assert_in_range(need[i], 4 * 2000000, 11 * 2000000);
		tsi_webp_ops.close(p);
		free(f.data);
	}
	assert_true(need[2] > need[0] && need[3] > need[0]);
	tsi_webp_ops.destroy(p);
}

static void heads_are_read_or_refused(void **state)
{
	static const char extended[] = "RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0"
				       "\2\0\0\0\xff\xff\0\3\2\0";
	uint32_t w, h;

	(void)state;
	assert_int_equal(tsi_webp_head((const uint8_t *)extended, 30, &w, &h),
			 0);
	assert_int_equal(w, 0x10000);
	assert_int_equal(h, 0x204);
	assert_int_equal(tsi_webp_head((const uint8_t *)extended, 29, &w, &h),
			 TSOCK_EAGAIN);
	assert_int_equal(tsi_webp_head((const uint8_t *)"RIFF....WEBPICCP....",
				       20, &w, &h),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "begin with an image"));
	assert_int_equal(tsi_webp_head((const uint8_t *)"RIFF....WEBPVP8L...."
							"\x2e....",
				       25, &w, &h),
			 TSOCK_EDATA);
	assert_int_equal(tsi_webp_head((const uint8_t *)"RIFF....WEBPVP8 ...."
							"..........",
				       30, &w, &h),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "no signature"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_of_every_kind_equal_the_whole),
		cmocka_unit_test(an_animation_is_its_first_frame_on_black),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(damaged_files_decode_or_are_bad_data),
		cmocka_unit_test(damage_counts_from_the_rows_that_need_it),
		cmocka_unit_test(a_large_image_needs_memory_for_its_pixels),
		cmocka_unit_test(heads_are_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
