/* SPDX-License-Identifier: MIT */
/*
 * test_gif.c - GIF by region, against pixels that are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "gif/gif.h"
#include "tsock/tsock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* On a screen of this size, the image, which has a margin on each side. */
static const struct kind {
	uint32_t width, height, margin;
	bool interlaced;
	int clear; /* the transparent number; -1: none */
	bool own;  /* the palette is the image's, not the screen's */
} kinds[] = {
	{ 33, 21, 0, false, -1, false }, { 33, 21, 0, true, -1, true },
	{ 40, 37, 3, false, -1, true },  { 40, 37, 3, true, 7, false },
	{ 1, 1, 0, true, 2, false },     { 300, 5, 2, false, 0, false },
};

/* A file, and the numbers that it has on the screen. */
struct made {
	uint8_t *data;
	size_t len;
	uint8_t *want;
	struct kind k;
};

static void put16(struct made *m, uint32_t v)
{
	m->data[m->len++] = (uint8_t)v;
	m->data[m->len++] = (uint8_t)(v >> 8);
}

static void put(struct made *m, const void *bytes, size_t n)
{
	memcpy(m->data + m->len, bytes, n);
	m->len += n;
}

static void put_palette(struct made *m)
{
	for (unsigned i = 0; i < 128; i++) {
		uint8_t c[3] = { (uint8_t)(i * 2), (uint8_t)(255 - i),
				 (uint8_t)(i ^ 5) };

		put(m, c, 3);
	}
}

/* The rows in their order in the file. */
static uint32_t row_of(const struct kind *k, uint32_t i, uint32_t rows)
{
	static const struct {
		uint8_t first, step;
	} pass[] = { { 0, 8 }, { 4, 8 }, { 2, 4 }, { 1, 2 } };

	if (!k->interlaced)
		return i;
	for (unsigned p = 0; p < 4; p++)
		for (uint32_t y = pass[p].first; y < rows; y += pass[p].step)
			if (i-- == 0)
				return y;
	return 0;
}

/*
 * Codes of 8 bits for 7: clear, a pixel, it again by the code that is just
 * being made, and so on; a byte each.  Blocks of at most 255.
 */
static void put_codes(struct made *m, const uint8_t *numbers, size_t n)
{
	uint8_t *codes = malloc(3 * n + 3);
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		codes[len++] = 128;
		codes[len++] = numbers[i];
		/* 130: the number twice. */
		if (i + 2 < n && numbers[i + 1] == numbers[i] &&
		    numbers[i + 2] == numbers[i]) {
			codes[len++] = 130;
			i += 2;
		}
	}
	codes[len++] = 129;
	for (size_t i = 0; i < len; i += 255) {
		uint8_t size = (uint8_t)(len - i < 255 ? len - i : 255);

		put(m, &size, 1);
		put(m, codes + i, size);
	}
	put(m, "\0;", 2);
	free(codes);
}

static uint8_t number_at(uint32_t x, uint32_t y)
{
	return (uint8_t)((x / 4 * 13 + y * 5) & 127);
}

static void put_image(struct made *m)
{
	const struct kind *k = &m->k;
	uint32_t w = k->width - 2 * k->margin, h = k->height - 2 * k->margin;
	uint8_t *numbers = malloc((size_t)w * h);
	size_t n = 0;

	for (uint32_t i = 0; i < h; i++)
		for (uint32_t x = 0, y = row_of(k, i, h); x < w; x++) {
			numbers[n] = number_at(x, y);
			m->want[(y + k->margin) * k->width + x + k->margin] =
				numbers[n++];
		}
	put(m, ",", 1);
	put16(m, k->margin);
	put16(m, k->margin);
	put16(m, w);
	put16(m, h);
	put(m,
	    k->own          ? k->interlaced ? "\xc6" : "\x86"
	    : k->interlaced ? "\x40"
			    : "\0",
	    1);
	if (k->own)
		put_palette(m);
	put(m, "\7", 1);
	put_codes(m, numbers, n);
	free(numbers);
}

static struct made make(const struct kind *k)
{
	size_t pixels = (size_t)k->width * k->height;
	struct made m = { .data = malloc(4 * pixels + 2000),
			  .want = malloc(pixels),
			  .k = *k };

	memset(m.want, k->clear < 0 ? 0 : k->clear, pixels);
	put(&m, "GIF89a", 6);
	put16(&m, k->width);
	put16(&m, k->height);
	put(&m, k->own ? "\0\3\0" : "\x86\3\0", 3);
	if (!k->own)
		put_palette(&m);
	put(&m, "!\xfe\4made\0", 8);
	if (k->clear >= 0) {
		uint8_t control[] = { '!', 0xf9, 4, 1, 0, 0, 0, 0 };

		control[6] = (uint8_t)k->clear;
		put(&m, control, 8);
	}
	put_image(&m);
	return m;
}

static void free_made(struct made *m)
{
	free(m->data);
	free(m->want);
}

/* Decode a rectangle; its pixels are to be the right ones, unless it fails. */
static int region(struct tsi_decoder *d, const struct made *m, size_t len,
		  struct tsi_rect r)
{
	uint32_t w, h;
	struct tsi_strip s;
	int err = tsi_gif_ops.open(d, m->data, len, &w, &h);

	if (err)
		return err;
	assert_int_equal(w, m->k.width);
	assert_int_equal(h, m->k.height);
	err = tsi_gif_ops.begin(d, &r);
	for (uint32_t y = 0; !err && y < r.height; y += s.rows) {
		err = tsi_gif_ops.read(d, &s);
		assert_int_equal(err, 0);
		assert_in_range(s.rows, 1, TSI_STRIP_ROWS);
		for (uint32_t i = 0; i < s.rows * r.width; i++) {
			uint32_t x = i % r.width, v = y + i / r.width;
			unsigned n =
				m->want[(r.top + v) * m->k.width + r.left + x];
			const uint8_t *p =
				s.pixels + i / r.width * s.stride + 4 * x;

			assert_int_equal(p[0], n * 2);
			assert_int_equal(p[1], 255 - n);
			assert_int_equal(p[2], n ^ 5);
		}
	}
	return err;
}

static struct tsi_decoder *create(void)
{
	struct tsi_decoder *d;

	assert_int_equal(tsi_gif_ops.create(&d), 0);
	return d;
}

static void regions_of_every_kind_have_the_files_colours(void **state)
{
	struct tsi_decoder *d = create();

	(void)state;
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		struct made m = make(&kinds[i]);
		uint32_t w = m.k.width, h = m.k.height;

		for (uint32_t n = 0; n < 40; n++) {
			uint32_t left = n * 7 % w, top = n * 3 % h;
			struct tsi_rect r = { .left = left,
					      .top = top,
					      .width = (w - left + n) / (n + 1),
					      .height = h - top };

			assert_int_equal(region(d, &m, m.len, r), 0);
			tsi_gif_ops.close(d);
		}
		free_made(&m);
	}
	tsi_gif_ops.destroy(d);
}

static void every_cut_is_refused(void **state)
{
	struct tsi_decoder *d = create();

	(void)state;
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		struct made m = make(&kinds[i]);
		struct tsi_rect r = { .width = 1, .height = 1 };

		/* The end of blocks and the file's own are of no account. */
		for (size_t len = 0; len + 2 < m.len; len++) {
			uint8_t *part = malloc(len + 1);
			struct made cut = m;

			memcpy(part, m.data, len);
			cut.data = part;
			assert_int_equal(region(d, &cut, len, r), TSOCK_EDATA);
			free(part);
		}
		assert_int_equal(region(d, &m, m.len - 2, r), 0);
		free_made(&m);
	}
	tsi_gif_ops.destroy(d);
}

/* Bytes that are no codes of an image of 2 x 1 pixels with 2 bits. */
static void refuse(const char *codes, size_t n, const char *says)
{
	static const char head[] = "GIF87a\2\0\1\0\0\0\0,\0\0\0\0\2\0\1\0\0\2";
	struct made m = { .data = malloc(100),
			  .k = { .width = 2, .height = 1 } };
	struct tsi_decoder *d = create();

	put(&m, head, sizeof(head) - 1);
	put(&m, codes, n);
	assert_int_equal(region(d, &m, m.len,
				(struct tsi_rect){ .width = 1, .height = 1 }),
			 TSOCK_EDATA);
	if (!strstr(tsock_errmsg(), says))
		fail_msg("'%s' does not say '%s'", tsock_errmsg(), says);
	tsi_gif_ops.destroy(d);
	free_made(&m);
}

static void codes_that_cannot_be_are_refused(void **state)
{
	(void)state;
	/* 3 bits each, from the lowest: clear 4, end 5. */
	refuse("\1\x2c\0;", 4, "truncated"); /* 4 5 */
	refuse("\1\x34\0;", 4, "damaged");   /* 4 6: no code before */

	refuse("\2\xcc\1\0;", 5, "damaged"); /* 4 1 7: not the next one */
	refuse("\0\0\0;", 4, "truncated");
	refuse("", 0, "truncated");
}

static void a_large_image_needs_memory_for_its_pixels(void **state)
{
	static const uint8_t head[] = "GIF87a\0\x10\0\x10\0\0\0,\0\0\0\0\0\x10"
				      "\0\x10\0\2";
	struct tsi_decoder *d = create();
	uint32_t w, h;

	(void)state;
	assert_int_equal(tsi_gif_ops.open(d, head, sizeof(head), &w, &h), 0);
	assert_int_equal(w, 4096);
	assert_int_equal(h, 4096);
	assert_in_range(tsi_gif_ops.need(d), 1 << 24, 1 << 25);
	tsi_gif_ops.destroy(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_of_every_kind_have_the_files_colours),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(codes_that_cannot_be_are_refused),
		cmocka_unit_test(a_large_image_needs_memory_for_its_pixels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
