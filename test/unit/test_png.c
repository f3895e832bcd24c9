/* SPDX-License-Identifier: MIT */
/*
 * test_png.c - every kind of PNG, by region, against libpng's simple reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "png/png.h"
#include "test/lib/decoder_region.h"
#include "test/lib/image_gen.h"
#include "test/lib/made_image.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct kind {
	int type;
	int depth;
	int colours;
	bool transparent;
} kinds[] = {
	{ PNG_COLOR_TYPE_GRAY, 1, 0, false },
	{ PNG_COLOR_TYPE_GRAY, 2, 0, false },
	{ PNG_COLOR_TYPE_GRAY, 4, 0, true },
	{ PNG_COLOR_TYPE_GRAY, 8, 0, false },
	{ PNG_COLOR_TYPE_GRAY, 8, 0, true },
	{ PNG_COLOR_TYPE_GRAY_ALPHA, 8, 0, false },
	{ PNG_COLOR_TYPE_PALETTE, 1, 2, false },
	{ PNG_COLOR_TYPE_PALETTE, 2, 4, true },
	{ PNG_COLOR_TYPE_PALETTE, 4, 16, false },
	{ PNG_COLOR_TYPE_PALETTE, 8, 200, false },
	{ PNG_COLOR_TYPE_PALETTE, 8, 200, true },
	{ PNG_COLOR_TYPE_RGB, 8, 0, false },
	{ PNG_COLOR_TYPE_RGB, 8, 0, true },
	{ PNG_COLOR_TYPE_RGB_ALPHA, 8, 0, false },
	{ PNG_COLOR_TYPE_GRAY, 16, 0, false },
	{ PNG_COLOR_TYPE_GRAY_ALPHA, 16, 0, false },
	{ PNG_COLOR_TYPE_RGB, 16, 0, true },
	{ PNG_COLOR_TYPE_RGB_ALPHA, 16, 0, false },
};

static struct image_gen_bytes make(const struct kind *k, uint32_t width,
				   uint32_t height, bool interlaced,
				   uint64_t seed)
{
	struct image_gen_png g = { .width = width,
				   .height = height,
				   .depth = k->depth,
				   .type = k->type,
				   .interlaced = interlaced,
				   .transparent = k->transparent,
				   .colours = k->colours,
				   .seed = seed };

	return image_gen_png(&g);
}

static void read_bytes(png_structp png, png_bytep to, size_t len)
{
	const uint8_t **at = png_get_io_ptr(png);

	memcpy(to, *at, len);
	*at += len;
}

/* A channel of 16 bits as Pillow has it: grey alone is clipped. */
static uint8_t eight_bits(const uint8_t *p, int channels)
{
	if (channels > 1)
		return p[0];
	return p[0] ? 255 : p[1];
}

/* As reference(), by hand: libpng's simple reader wants a gamma. */
static uint8_t *reference_16(const struct image_gen_bytes *f)
{
	png_structp png =
		png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	const uint8_t *at = f->data;
	png_bytepp rows;
	uint32_t w, h;
	uint8_t *p;
	int n;

	png_set_read_fn(png, &at, read_bytes);
	png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
	rows = png_get_rows(png, info);
	w = png_get_image_width(png, info);
	h = png_get_image_height(png, info);
	n = png_get_channels(png, info);
	p = calloc((size_t)w * h, 4);
	for (uint32_t i = 0; i < w * h; i++)
		for (int c = 0; c < 3; c++)
			p[i * 4 + (uint32_t)c] = eight_bits(
				rows[i / w] + (i % w) * 2 * (uint32_t)n +
					(n > 2 ? 2 * c : 0),
				n);
	png_destroy_read_struct(&png, &info, NULL);
	return p;
}

/* RGBA of the whole; what is transparent keeps its colour there. */
static uint8_t *reference(const struct image_gen_bytes *f)
{
	png_image image = { .version = PNG_IMAGE_VERSION };
	uint8_t *p;

	if (f->data[24] == 16)
		return reference_16(f);
	assert_true(png_image_begin_read_from_memory(&image, f->data, f->len));
	image.format = PNG_FORMAT_RGBA;
	p = malloc(PNG_IMAGE_SIZE(image));
	assert_true(png_image_finish_read(&image, NULL, p, 0, NULL));
	return p;
}

static void compare_areas(struct tsi_decoder *p,
			  const struct image_gen_bytes *f, uint32_t w,
			  uint32_t h, uint64_t *state)
{
	uint8_t *want = reference(f);
	uint8_t *got = malloc((size_t)w * h * 4);

	for (int n = 0; n < 6; n++) {
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
	free(want);
	free(got);
}

static void regions_of_every_kind_equal_the_whole(void **state)
{
	static const uint32_t size[][2] = {
		{ 1, 1 }, { 3, 50 }, { 50, 2 }, { 61, 47 }, { 150, 90 },
	};
	uint64_t r = 1;
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_png_ops.create(&p), 0);
	for (size_t i = 0; i < COUNT(kinds) * COUNT(size) * 2; i++) {
		const uint32_t *wh = size[i / COUNT(kinds) % COUNT(size)];
		struct image_gen_bytes f =
			make(&kinds[i % COUNT(kinds)], wh[0], wh[1],
			     i >= COUNT(kinds) * COUNT(size), i);

		compare_areas(p, &f, wh[0], wh[1], &r);
		free(f.data);
	}
	tsi_png_ops.destroy(p);
}

static void every_cut_is_truncated_or_below_the_region(void **state)
{
	struct kind k = { PNG_COLOR_TYPE_RGB, 8, 0, false };
	struct image_gen_bytes f = make(&k, 40, 60, false, 1);
	struct tsi_rect top = { 0, 0, 40, 3 }, bottom = { 0, 57, 40, 3 };
	uint8_t out[40 * 3 * 4];
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_png_ops.create(&p), 0);
	for (size_t len = 8; len + 40 < f.len; len += 11) {
		struct image_gen_bytes cut = image_gen_copy(f.data, len);

		assert_int_equal(decoder_region_read(p, &cut, &bottom, out),
				 TSOCK_EDATA);
		assert_non_null(strstr(tsock_errmsg(), "truncated"));
		free(cut.data);
	}
	/* The end chunk may be missing; the lower half too, for the top. */
	f.len -= 12;
	assert_int_equal(decoder_region_read(p, &f, &bottom, out), 0);
	tsi_png_ops.destroy(p);
	assert_int_equal(tsi_png_ops.create(&p), 0);
	assert_int_equal(decoder_region_read(p, &f, &top, out), 0);
	tsi_png_ops.destroy(p);
	free(f.data);
}

static void damaged_files_decode_or_are_bad_data(void **state)
{
	uint64_t r = 7;
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_png_ops.create(&p), 0);
	for (size_t i = 0; i < 3000; i++) {
		struct image_gen_bytes f =
			make(&kinds[i % COUNT(kinds)], 1 + i % 60, 1 + i % 47,
			     i % 2, i);
		struct image_gen_bytes copy;
		uint32_t w, h;
		int err;

		image_gen_damage(&f, &r);
		copy = image_gen_copy(f.data, f.len);
		err = tsi_png_ops.open(p, copy.data, copy.len, &w, &h);
		if (!err && (uint64_t)w * h < 1u << 22) {
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
	tsi_png_ops.destroy(p);
}

/* ---- as Pillow, not as libpng ---- */

#define EDGE 12

/* A file of EDGE x EDGE grey pixels or of one palette, chunk by chunk. */
static void begin_file(struct made *m, unsigned type)
{
	static const uint8_t magic[8] = { 0x89, 'P',  'N',  'G',
					  '\r', '\n', 0x1a, '\n' };
	size_t at;

	m->len = 0;
	for (int i = 0; i < 8; i++)
		made_image_8(m, magic[i]);
	at = made_image_chunk(m, "IHDR", 13);
	made_image_32(m, EDGE);
	made_image_32(m, EDGE);
	made_image_8(m, 8);
	made_image_8(m, type);
	made_image_8(m, 0);
	made_image_8(m, 0);
	made_image_8(m, 0);
	made_image_chunk_end(m, at);
}

static void add_chunk(struct made *m, const char *name, uint32_t len)
{
	size_t at = made_image_chunk(m, name, len);

	for (uint32_t i = 0; i < len; i++)
		made_image_8(m, 20 + i);
	made_image_chunk_end(m, at);
}

/* So many rows of ones, in a stored block, and the sum of them. */
static void add_pixels(struct made *m, unsigned rows, unsigned wrong)
{
	unsigned len = rows * (EDGE + 1);
	size_t at = made_image_chunk(m, "IDAT", len + 11);
	uint32_t a = 1, b = 0;

	made_image_16(m, 0x7801);
	made_image_8(m, 1);
	made_image_8(m, len & 255);
	made_image_8(m, len >> 8);
	made_image_8(m, ~len & 255);
	made_image_8(m, ~len >> 8 & 255);
	for (unsigned i = 0; i < len; i++) {
		unsigned v = i % (EDGE + 1) > 0;

		made_image_8(m, v);
		a = (a + v) % 65521;
		b = (b + a) % 65521;
	}
	made_image_32(m, (b << 16 | a) ^ wrong);
	made_image_chunk_end(m, at);
	add_chunk(m, "IEND", 0);
}

/* The first n rows; their error, and the first and last pixel's red. */
static int rows_of(const struct made *m, uint32_t n, uint8_t red[2])
{
	struct image_gen_bytes f = image_gen_copy(m->bytes, m->len);
	struct tsi_rect rect = { 0, 0, EDGE, n };
	uint8_t out[EDGE * EDGE * 4] = { 0 };
	struct tsi_decoder *p;
	int err;

	assert_int_equal(tsi_png_ops.create(&p), 0);
	err = decoder_region_read(p, &f, &rect, out);
	tsi_png_ops.destroy(p);
	free(f.data);
	red[0] = out[0];
	red[1] = out[(n * EDGE - 1) * 4];
	return err;
}

static void check_sums_before_the_pixels_count(void **state)
{
	static struct made m;
	uint8_t red[2];

	(void)state;
	for (size_t at = 8; at < 8 + 25; at++) {
		begin_file(&m, 0);
		add_pixels(&m, EDGE, 0);
		assert_int_equal(rows_of(&m, EDGE, red), 0);
		assert_int_equal(red[1], 1);
		m.bytes[at] ^= 1;
		assert_int_equal(rows_of(&m, EDGE, red), TSOCK_EDATA);
	}
}

/* The sum of all pixels is right behind the last row. */
static void the_sum_of_the_pixels_counts_with_the_last_row(void **state)
{
	static struct made m;
	uint8_t red[2];

	(void)state;
	begin_file(&m, 0);
	add_pixels(&m, EDGE, 1);
	assert_int_equal(rows_of(&m, EDGE, red), TSOCK_EDATA);
	assert_int_equal(rows_of(&m, EDGE - 1, red), 0);
	assert_int_equal(red[1], 1);
}

static void rows_behind_a_clean_end_are_zero(void **state)
{
	static struct made m;
	uint8_t red[2];

	(void)state;
	for (unsigned rows = 1; rows < EDGE; rows++) {
		begin_file(&m, 0);
		add_pixels(&m, rows, 0);
		assert_int_equal(rows_of(&m, EDGE, red), 0);
		assert_int_equal(red[0], 1);
		assert_int_equal(red[1], 0);
		assert_int_equal(rows_of(&m, rows, red), 0);
		assert_int_equal(red[1], 1);
		/* The end isn't clean if its sum is wrong. */
		begin_file(&m, 0);
		add_pixels(&m, rows, 1);
		assert_int_equal(rows_of(&m, EDGE, red), TSOCK_EDATA);
	}
}

/* Stored rows could be gone on with for ever. */
static void nothing_is_made_up_behind_the_end_of_a_file(void **state)
{
	static struct made m;
	uint8_t red[2];

	(void)state;
	for (uint32_t rows = 1; rows < EDGE - 1; rows++) {
		begin_file(&m, 0);
		add_pixels(&m, EDGE, 0);
		m.len = 33 + 8 + 7 + rows * (EDGE + 1);
		assert_int_equal(rows_of(&m, EDGE - 1, red), TSOCK_EDATA);
		assert_non_null(strstr(tsock_errmsg(), "truncated"));
		assert_int_equal(rows_of(&m, rows, red), 0);
		assert_int_equal(red[1], 1);
	}
}

static void unknown_chunks_and_odd_palettes_pass(void **state)
{
	static struct made m;
	uint8_t red[2];

	(void)state;
	for (uint32_t len = 0; len < 780; len++) {
		begin_file(&m, 3);
		add_chunk(&m, "ABCD", len % 7);
		add_chunk(&m, "PLTE", len);
		add_pixels(&m, EDGE / 2, 0);
		if (len >= 257 * 3) {
			assert_int_equal(rows_of(&m, EDGE, red), TSOCK_EDATA);
			continue;
		}
		assert_int_equal(rows_of(&m, EDGE, red), 0);
		/* Black where the palette has ended. */
		assert_int_equal(red[0], len >= 6 ? 23 : 0);
		assert_int_equal(red[1], len >= 3 ? 20 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_of_every_kind_equal_the_whole),
		cmocka_unit_test(every_cut_is_truncated_or_below_the_region),
		cmocka_unit_test(damaged_files_decode_or_are_bad_data),
		cmocka_unit_test(check_sums_before_the_pixels_count),
		cmocka_unit_test(
			the_sum_of_the_pixels_counts_with_the_last_row),
		cmocka_unit_test(rows_behind_a_clean_end_are_zero),
		cmocka_unit_test(nothing_is_made_up_behind_the_end_of_a_file),
		cmocka_unit_test(unknown_chunks_and_odd_palettes_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
