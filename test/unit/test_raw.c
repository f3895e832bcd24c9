/* SPDX-License-Identifier: MIT */
/*
 * test_raw.c - images that are pixels already: any part of them, as planes or
 * as four bytes a pixel, and what can't be such an image.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "raw/raw.h"
#include "tsock/tsock.h"

#define MOST 70 /* pixels of an edge */

static const struct tsi_raw_shape shapes[] = {
	{ 37, 53, 3, true },  { 37, 53, 3, false }, { 37, 53, 1, true },
	{ 53, 37, 1, false }, { 1, 1, 3, true },    { 1, 1, 3, false },
	{ 1, 70, 3, true },   { 70, 1, 3, false },
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static uint8_t file[TSI_RAW_HEAD + MOST * MOST * 3 + TSI_RAW_SLACK];

static uint8_t value(uint32_t y, uint32_t x, uint32_t channel)
{
	return (uint8_t)(y * 31 + x * 7 + channel * 101);
}

/* Its bytes, without the slack behind them. */
static size_t write_file(const struct tsi_raw_shape *s)
{
	uint8_t *to = file + TSI_RAW_HEAD;

	memset(file, 0xee, sizeof(file));
	tsi_raw_put_head(s, file);
	for (uint32_t y = 0; y < s->height; y++)
		for (uint32_t x = 0; x < s->width; x++)
			for (uint32_t c = 0; c < s->channels; c++) {
				size_t at = (size_t)y * s->width + x;

				at = s->planar ? at + (size_t)c * s->width *
								 s->height
					       : at * s->channels + c;
				to[at] = value(y, x, c);
			}
	return TSI_RAW_HEAD + tsi_raw_bytes(s);
}

static void check_strip(const struct tsi_raw_shape *s,
			const struct tsi_strip *strip,
			const struct tsi_rect *rect, uint32_t first)
{
	for (uint32_t y = 0; y < strip->rows; y++)
		for (uint32_t x = 0; x < rect->width; x++)
			for (uint32_t c = 0; c < 3; c++) {
				const uint8_t *row =
					strip->pixels + y * strip->stride;
				uint8_t is = strip->plane
						     ? row[x + c * strip->plane]
						     : row[4 * x + c];

				assert_int_equal(
					is, value(rect->top + first + y,
						  rect->left + x,
						  s->channels == 1 ? 0 : c));
			}
}

static void check_part(struct tsi_decoder *d, const struct tsi_raw_shape *s,
		       const struct tsi_rect *rect, bool planes)
{
	size_t len = write_file(s);
	uint32_t width, height, rows = 0;
	struct tsi_strip strip;

	assert_int_equal(d->ops->open(d, file, len, &width, &height), 0);
	assert_int_equal(width, s->width);
	assert_int_equal(height, s->height);
	assert_int_equal(d->has_planes, s->planar && s->channels == 3);
	d->planes = planes && d->has_planes;
	assert_int_equal(d->ops->begin(d, rect), 0);
	while (rows < rect->height) {
		assert_int_equal(d->ops->read(d, &strip), 0);
		assert_in_range(strip.rows, 1, TSI_STRIP_ROWS);
		check_strip(s, &strip, rect, rows);
		rows += strip.rows;
		assert_int_equal(d->ops->rows(d), rows);
	}
	assert_int_equal(rows, rect->height);
	d->ops->close(d);
}

static void any_part_of_an_image_has_its_pixels(void **state)
{
	struct tsi_decoder *d;

	(void)state;
	assert_int_equal(tsi_raw_ops.create(&d), 0);
	for (size_t k = 0; k < SHAPES; k++) {
		const struct tsi_raw_shape *s = &shapes[k];
		const struct tsi_rect parts[] = {
			{ 0, 0, s->width, s->height },
			{ 0, 0, 1, 1 },
			{ s->width - 1, s->height - 1, 1, 1 },
			{ s->width / 2, s->height / 3, 1, 1 },
			{ s->width / 3, s->height / 3, s->width / 2 + 1,
			  s->height / 2 + 1 },
		};

		for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++)
			for (int planes = 0; planes < 2; planes++)
				check_part(d, s, &parts[p], planes);
	}
	tsi_raw_ops.destroy(d);
}

static void a_file_that_ends_before_its_pixels_do_is_bad(void **state)
{
	uint32_t width, height;
	struct tsi_decoder *d;

	(void)state;
	assert_int_equal(tsi_raw_ops.create(&d), 0);
	for (size_t k = 0; k < SHAPES; k++) {
		size_t len = write_file(&shapes[k]);

		for (size_t n = 0; n < len; n++) {
			if (n < 28)
				assert_int_equal(tsi_raw_ops.head(file, n,
								  &width,
								  &height),
						 TSOCK_EAGAIN);
			assert_int_equal(
				d->ops->open(d, file, n, &width, &height),
				TSOCK_EDATA);
		}
		assert_int_equal(d->ops->open(d, file, len, &width, &height),
				 0);
		d->ops->close(d);
	}
	tsi_raw_ops.destroy(d);
}

static void what_is_no_image_of_pixels_is_bad(void **state)
{
	static const struct tsi_raw_shape odd[] = {
		{ 0, 4, 3, false },
		{ 4, 0, 3, false },
		{ 4, 4, 2, false },
		{ 4, 4, 0, false },
		{ UINT32_MAX, 1, 1, false },
		{ 1, UINT32_MAX, 3, false },
		/* Of which the product would be 4, without its upper bits. */
		{ UINT32_C(1) << 31, UINT32_C(1) << 31, 1, true },
	};
	uint32_t width, height;
	struct tsi_decoder *d;

	(void)state;
	assert_int_equal(tsi_raw_ops.create(&d), 0);
	for (size_t k = 0; k < sizeof(odd) / sizeof(odd[0]); k++) {
		assert_int_equal(tsi_raw_bytes(&odd[k]), 0);
		tsi_raw_put_head(&odd[k], file);
		assert_int_equal(
			d->ops->open(d, file, sizeof(file), &width, &height),
			TSOCK_EDATA);
	}
	assert_false(tsi_raw_ops.claims(file, 15));
	assert_true(tsi_raw_ops.claims(file, 16));
	file[3]++;
	assert_false(tsi_raw_ops.claims(file, 64));
	tsi_raw_ops.destroy(d);
}

static int load(const struct tsi_recipe *recipe, size_t len, uint8_t *to)
{
	struct tsi_image_opts o = { .recipe = recipe };
	struct tsi_image *img;
	struct tsi_box box;
	int err;

	assert_int_equal(tsi_image_create(&o, &img), 0);
	err = tsi_image_load(img, file, len, 0, 0, to, &box);
	tsi_image_destroy(img);
	return err;
}

static void samples_are_of_the_size_that_all_images_have_or_bad(void **state)
{
	static uint8_t sample[(MOST + 8) * (MOST + 8) * 3];
	struct tsi_recipe *recipe;
	size_t len = write_file(&shapes[1]);

	(void)state;
	assert_int_equal(tsi_recipe_read_of("Pad(2)", 53, 37, &recipe), 0);
	assert_int_equal(load(recipe, len, sample), 0);
	for (uint32_t y = 0; y < 41; y++)
		for (uint32_t x = 0; x < 57; x++) {
			bool in = y >= 2 && y < 39 && x >= 2 && x < 55;

			for (uint32_t c = 0; c < 3; c++)
				assert_int_equal(sample[(y * 57 + x) * 3 + c],
						 in ? value(y - 2, x - 2, c)
						    : 0);
		}
	/* The file was replaced by one whose images are higher than wide. */
	len = write_file(&shapes[3]);
	assert_int_equal(load(recipe, len, sample), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "37 x 53"));
	tsi_recipe_free(recipe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_part_of_an_image_has_its_pixels),
		cmocka_unit_test(a_file_that_ends_before_its_pixels_do_is_bad),
		cmocka_unit_test(what_is_no_image_of_pixels_is_bad),
		cmocka_unit_test(
			samples_are_of_the_size_that_all_images_have_or_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
