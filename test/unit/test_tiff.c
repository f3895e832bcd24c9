/* SPDX-License-Identifier: MIT */
/*
 * test_tiff.c - TIFF in strips and tiles, by region, against known pixels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <tiffio.h>

#include "base/err.h"
#include "image/load.h"
#include "test/lib/decoder_region.h"
#include "test/lib/image_gen.h"
#include "test/lib/recipes.h"
#include "tiff/tiff.h"
#include "tsock/tsock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct kind {
	uint16_t samples, colours, compression;
	uint32_t rows; /* of a strip, or a tile's width and height */
	bool tiled;
} kinds[] = {
	{ 3, PHOTOMETRIC_RGB, COMPRESSION_NONE, 7, false },
	{ 3, PHOTOMETRIC_RGB, COMPRESSION_NONE, 16, true },
	{ 3, PHOTOMETRIC_RGB, COMPRESSION_LZW, 5, false },
	{ 3, PHOTOMETRIC_RGB, COMPRESSION_LZW, 32, true },
	{ 4, PHOTOMETRIC_RGB, COMPRESSION_ADOBE_DEFLATE, 1000, false },
	{ 1, PHOTOMETRIC_MINISBLACK, COMPRESSION_PACKBITS, 3, false },
	{ 1, PHOTOMETRIC_MINISWHITE, COMPRESSION_NONE, 1000, false },
	{ 1, PHOTOMETRIC_PALETTE, COMPRESSION_LZW, 16, true },
};

/* A file, and its samples. */
struct made {
	struct image_gen_bytes file;
	uint8_t *samples;
	uint32_t width, height;
	const struct kind *kind;
};

static void set_fields(TIFF *t, const struct made *m)
{
	const struct kind *k = m->kind;
	uint16_t extra = EXTRASAMPLE_UNASSALPHA, map[3][256];

	TIFFSetField(t, TIFFTAG_IMAGEWIDTH, m->width);
	TIFFSetField(t, TIFFTAG_IMAGELENGTH, m->height);
	TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
	TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, k->samples);
	TIFFSetField(t, TIFFTAG_PHOTOMETRIC, k->colours);
	TIFFSetField(t, TIFFTAG_COMPRESSION, k->compression);
	TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
	if (k->samples == 4)
		TIFFSetField(t, TIFFTAG_EXTRASAMPLES, 1, &extra);
	for (unsigned i = 0; i < 256; i++) {
		map[0][i] = (uint16_t)(i << 8);
		map[1][i] = (uint16_t)((255 - i) << 8 | 255);
		map[2][i] = (uint16_t)((i ^ 85) << 8 | 1);
	}
	if (k->colours == PHOTOMETRIC_PALETTE)
		TIFFSetField(t, TIFFTAG_COLORMAP, map[0], map[1], map[2]);
	if (k->tiled) {
		TIFFSetField(t, TIFFTAG_TILEWIDTH, k->rows);
		TIFFSetField(t, TIFFTAG_TILELENGTH, k->rows);
	} else {
		TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, k->rows);
	}
}

static void write_tiles(TIFF *t, const struct made *m)
{
	size_t n = m->kind->samples, edge = m->kind->rows;
	uint8_t *tile = malloc(edge * edge * n);

	for (uint32_t y = 0; y < m->height; y += edge)
		for (uint32_t x = 0; x < m->width; x += edge) {
			memset(tile, 7, edge * edge * n);
			for (size_t i = 0; i < edge * edge; i++)
				if (x + i % edge < m->width &&
				    y + i / edge < m->height)
					memcpy(tile + i * n,
					       m->samples + ((y + i / edge) *
								     m->width +
							     x + i % edge) *
								    n,
					       n);
			assert_true(TIFFWriteTile(t, tile, x, y, 0, 0) > 0);
		}
	free(tile);
}

static struct made make(const struct kind *k, uint32_t w, uint32_t h,
			uint64_t seed)
{
	struct made m = { .width = w, .height = h, .kind = k };
	size_t row = (size_t)w * k->samples;
	int fd = memfd_create("tiff", 0);
	TIFF *t = TIFFFdOpen(dup(fd), "tiff", "w");

	m.samples = malloc(row * h);
	for (uint32_t y = 0; y < h; y++)
		image_gen_row(&seed, y, m.samples + y * row, w, k->samples);
	set_fields(t, &m);
	if (k->tiled)
		write_tiles(t, &m);
	for (uint32_t y = 0; y < h && !k->tiled; y++)
		assert_int_equal(
			TIFFWriteScanline(t, m.samples + y * row, y, 0), 1);
	TIFFClose(t);
	m.file.len = (size_t)lseek(fd, 0, SEEK_END);
	m.file.data = malloc(m.file.len);
	assert_int_equal(pread(fd, m.file.data, m.file.len, 0), m.file.len);
	close(fd);
	return m;
}

static void free_made(struct made *m)
{
	free(m->file.data);
	free(m->samples);
}

static void colour_of(const struct made *m, size_t pixel, uint8_t *rgb)
{
	const uint8_t *s = m->samples + pixel * m->kind->samples;

	if (m->kind->colours == PHOTOMETRIC_RGB)
		memcpy(rgb, s, 3);
	else if (m->kind->colours == PHOTOMETRIC_PALETTE)
		memcpy(rgb,
		       ((uint8_t[]){ s[0], (uint8_t)(255 - s[0]), s[0] ^ 85 }),
		       3);
	else
		memset(rgb,
		       m->kind->colours == PHOTOMETRIC_MINISWHITE ? 255 - s[0]
								  : s[0],
		       3);
}

static void compare_areas(struct tsi_decoder *p, const struct made *m,
			  uint64_t *state)
{
	uint8_t *got = malloc((size_t)m->width * m->height * 4);

	for (int n = 0; n < 8; n++) {
		struct tsi_rect r =
			decoder_region_pick(m->width, m->height, n, state);

		if (decoder_region_read(p, &m->file, &r, got))
			fail_msg("%s", tsock_errmsg());
		for (uint32_t i = 0; i < r.width * r.height; i++) {
			uint8_t want[3];

			colour_of(m,
				  (size_t)(r.top + i / r.width) * m->width +
					  r.left + i % r.width,
				  want);
			assert_memory_equal(got + i * 4, want, 3);
		}
	}
	free(got);
}

static void regions_of_every_kind_have_the_files_colours(void **state)
{
	static const uint32_t size[][2] = {
		{ 1, 1 }, { 3, 50 }, { 50, 2 }, { 61, 47 }, { 150, 90 },
	};
	uint64_t r = 1;
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_tiff_ops.create(&p), 0);
	for (unsigned i = 0; i < COUNT(kinds) * COUNT(size); i++) {
		const uint32_t *wh = size[i / COUNT(kinds)];
		struct made m = make(&kinds[i % COUNT(kinds)], wh[0], wh[1], i);

		compare_areas(p, &m, &r);
		free_made(&m);
	}
	tsi_tiff_ops.destroy(p);
}

/* libtiff writes the directory behind the pixels: a cut file has none. */
static void every_cut_is_refused(void **state)
{
	const struct tsi_rect first = { 0, 0, 1, 1 };
	struct tsi_decoder *p;
	uint8_t out[4];

	(void)state;
	assert_int_equal(tsi_tiff_ops.create(&p), 0);
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		struct made m = make(&kinds[i], 40, 60, i);
		uint32_t end;

		memcpy(&end, m.file.data + 4, 4);
		assert_in_range(end, 100, m.file.len);
		for (size_t len = 8; len < end; len += 31) {
			struct image_gen_bytes cut =
				image_gen_copy(m.file.data, len);

			assert_int_equal(
				decoder_region_read(p, &cut, &first, out),
				TSOCK_EDATA);
			free(cut.data);
		}
		assert_int_equal(decoder_region_read(p, &m.file, &first, out),
				 0);
		free_made(&m);
	}
	tsi_tiff_ops.destroy(p);
}

static void damaged_files_decode_or_are_bad_data(void **state)
{
	uint64_t r = 7;
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_tiff_ops.create(&p), 0);
	for (size_t i = 0; i < 3000; i++) {
		struct made m = make(&kinds[i % COUNT(kinds)], 1 + i % 60,
				     1 + i % 47, i);
		struct image_gen_bytes copy;
		uint32_t w, h;
		int err;

		/* In the directory above all. */
		if (m.file.len > 200)
			m.file.data[m.file.len - 1 -
				    image_gen_random(&r) % 200] =
				(uint8_t)image_gen_random(&r);
		if (i % 3 == 0)
			image_gen_damage(&m.file, &r);
		copy = image_gen_copy(m.file.data, m.file.len);
		err = tsi_tiff_ops.open(p, copy.data, copy.len, &w, &h);
		if (!err && (uint64_t)w * h < 1u << 22 &&
		    tsi_tiff_ops.need(p) < 1u << 28) {
			struct tsi_rect rect =
				decoder_region_pick(w, h, (int)(i % 3), &r);
			uint8_t *out =
				malloc((size_t)rect.width * rect.height * 4);

			err = decoder_region_read(p, &copy, &rect, out);
			free(out);
		}
		tsi_tiff_ops.close(p);
		if (err)
			assert_int_equal(err, TSOCK_EDATA);
		free(copy.data);
		free_made(&m);
	}
	tsi_tiff_ops.destroy(p);
}

/* Damage in a strip is bad for whatever reaches it, and for nothing above. */
static void damage_counts_from_the_rows_that_need_it(void **state)
{
	const struct tsi_image_opts o = { .recipe = recipes_eval(8, 8) };
	struct made m = make(&kinds[2], 40, 60, 5);
	struct tsi_image_extent e = { 0 };
	struct tsi_decoder *p;
	struct tsi_image *img;
	uint8_t out[40 * 60 * 4];

	(void)state;
	/* The first codes of the seventh strip or so. */
	memset(m.file.data + m.file.len / 2, 0xff, 300);
	assert_int_equal(tsi_image_create(&o, &img), 0);
	assert_int_equal(tsi_image_measure(img, m.file.data, m.file.len, &e),
			 0);
	assert_in_range(e.rows, 10, 50);
	assert_int_equal(e.rows % 5, 0);
	assert_int_equal(tsi_tiff_ops.create(&p), 0);
	for (uint32_t bottom = 1; bottom <= 60; bottom++) {
		struct tsi_rect r = { 3, bottom - 1, 20, 1 };

		assert_int_equal(decoder_region_read(p, &m.file, &r, out),
				 bottom <= e.rows ? 0 : TSOCK_EDATA);
	}
	assert_non_null(strstr(tsock_errmsg(), "damaged"));
	tsi_tiff_ops.destroy(p);
	tsi_image_destroy(img);
	free_made(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_of_every_kind_have_the_files_colours),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(damaged_files_decode_or_are_bad_data),
		cmocka_unit_test(damage_counts_from_the_rows_that_need_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
