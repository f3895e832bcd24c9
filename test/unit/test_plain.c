/* SPDX-License-Identifier: MIT */
/*
 * test_plain.c - PPM, PGM and BMP, by region, against pixels that are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "plain/plain.h"
#include "test/lib/decoder_region.h"
#include "test/lib/image_gen.h"
#include "tsock/tsock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct kind {
	const struct tsi_decoder_ops *ops;
	unsigned bits; /* a pixel */
	unsigned most; /* PPM: the largest level */
	bool top_down; /* BMP */
	bool old;      /* BMP: OS/2's header */
} kinds[] = {
	{ .ops = &tsi_pnm_ops, .bits = 24, .most = 255 },
	{ .ops = &tsi_pnm_ops, .bits = 8, .most = 255 },
	{ .ops = &tsi_pnm_ops, .bits = 24, .most = 101 },
	{ .ops = &tsi_pnm_ops, .bits = 8, .most = 15 },
	{ .ops = &tsi_bmp_ops, .bits = 24 },
	{ .ops = &tsi_bmp_ops, .bits = 32 },
	{ .ops = &tsi_bmp_ops, .bits = 8 },
	{ .ops = &tsi_bmp_ops, .bits = 24, .top_down = true },
	{ .ops = &tsi_bmp_ops, .bits = 8, .top_down = true },
	{ .ops = &tsi_bmp_ops, .bits = 24, .old = true },
	{ .ops = &tsi_bmp_ops, .bits = 8, .old = true },
};

/* A file, and the colours that it has: three bytes a pixel. */
struct made {
	struct image_gen_bytes file;
	uint8_t *want;
	uint32_t width, height;
	size_t head;
};

static void put_le(uint8_t *p, uint32_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* The colour that number i of a palette is here: blue, green, red. */
static void colour_of(unsigned i, uint8_t *bgr)
{
	bgr[0] = (uint8_t)(i * 7);
	bgr[1] = (uint8_t)(i * 11 + 1);
	bgr[2] = (uint8_t)(255 - i);
}

static size_t put_bmp_head(uint8_t *p, const struct kind *k, uint32_t w,
			   uint32_t h)
{
	size_t header = k->old ? 12 : 40, entry = k->old ? 3 : 4;
	size_t colours = k->bits == 8 ? 256 : 0;
	uint32_t down = k->top_down ? 0 - h : h;

	memcpy(p, "BM", 2);
	put_le(p + 10, (uint32_t)(14 + header + entry * colours), 4);
	put_le(p + 14, (uint32_t)header, 4);
	put_le(p + 18, w, k->old ? 2 : 4);
	put_le(p + (k->old ? 20 : 22), down, k->old ? 2 : 4);
	put_le(p + (k->old ? 24 : 28), k->bits, 2);
	for (unsigned i = 0; i < colours; i++)
		colour_of(i, p + 14 + header + entry * i);
	return 14 + header + entry * colours;
}

static size_t put_head(uint8_t *p, const struct kind *k, uint32_t w, uint32_t h)
{
	if (k->ops == &tsi_bmp_ops)
		return put_bmp_head(p, k, w, h);
	return (size_t)sprintf((char *)p, "P%c\n# made\n%u %u\n%u\n",
			       k->bits == 8 ? '5' : '6', w, h, k->most);
}

static size_t row_bytes(const struct kind *k, uint32_t w)
{
	size_t n = (size_t)w * k->bits / 8;

	return k->ops == &tsi_bmp_ops ? (n + 3) / 4 * 4 : n;
}

/* The colour of a pixel of the file. */
static void decode_pixel(const struct kind *k, const uint8_t *p, uint8_t *want)
{
	uint8_t bgr[3];

	for (unsigned c = 0; c < 3; c++) {
		unsigned v = p[k->bits == 8 ? 0 : c];

		if (k->ops == &tsi_pnm_ops)
			/* No ties: the largest levels are odd. */
			want[c] = v >= k->most ? 255
					       : (uint8_t)((v * 510 + k->most) /
							   (2 * k->most));
		else if (k->bits == 8) {
			colour_of(v, bgr);
			want[c] = bgr[2 - c];
		} else
			want[2 - c] = (uint8_t)v;
	}
}

static struct made make(const struct kind *k, uint32_t w, uint32_t h,
			uint64_t seed)
{
	struct made m = { .width = w, .height = h };
	size_t stride = row_bytes(k, w);
	bool up = k->ops == &tsi_bmp_ops && !k->top_down;

	m.file.data = calloc(1, 1200 + stride * h);
	m.want = malloc((size_t)w * h * 3);
	m.head = put_head(m.file.data, k, w, h);
	m.file.len = m.head + stride * h;
	for (size_t i = m.head; i < m.file.len; i++)
		m.file.data[i] = (uint8_t)image_gen_random(&seed);
	for (uint32_t i = 0; i < w * h; i++) {
		size_t row = up ? h - 1 - i / w : i / w;

		decode_pixel(k,
			     m.file.data + m.head + row * stride +
				     (size_t)(i % w) * k->bits / 8,
			     m.want + (size_t)i * 3);
	}
	return m;
}

static void free_made(struct made *m)
{
	free(m->file.data);
	free(m->want);
}

static int region(struct tsi_decoder *p, const struct image_gen_bytes *f,
		  const struct tsi_rect *rect, uint8_t *out)
{
	struct tsi_strip s;
	uint32_t w, h;
	int err = p->ops->open(p, f->data, f->len, &w, &h);

	if (!err)
		err = p->ops->begin(p, rect);
	for (uint32_t y = 0; !err && y < rect->height; y += s.rows) {
		err = p->ops->read(p, &s);
		if (err)
			break;
		assert_in_range(s.rows, 1, TSI_STRIP_ROWS);
		for (uint32_t i = 0; i < s.rows; i++)
			memcpy(out + (size_t)(y + i) * rect->width * 4,
			       s.pixels + i * s.stride,
			       (size_t)rect->width * 4);
		assert_int_equal(p->ops->rows(p), y + s.rows);
	}
	p->ops->close(p);
	return err;
}

static void compare_areas(struct tsi_decoder *p, const struct made *m,
			  uint64_t *state)
{
	struct image_gen_bytes f = image_gen_copy(m->file.data, m->file.len);
	uint8_t *got = malloc((size_t)m->width * m->height * 4);

	for (int n = 0; n < 8; n++) {
		struct tsi_rect r =
			decoder_region_pick(m->width, m->height, n, state);

		if (region(p, &f, &r, got))
			fail_msg("%s", tsock_errmsg());
		for (uint32_t i = 0; i < r.width * r.height; i++)
			assert_memory_equal(
				got + i * 4,
				m->want + ((size_t)(r.top + i / r.width) *
						   m->width +
					   r.left + i % r.width) *
						  3,
				3);
	}
	free(got);
	free(f.data);
}

static void regions_of_every_kind_have_the_files_colours(void **state)
{
	static const uint32_t size[][2] = {
		{ 1, 1 }, { 2, 3 }, { 3, 50 }, { 50, 2 }, { 61, 47 },
	};
	uint64_t r = 1;

	(void)state;
	for (unsigned i = 0; i < COUNT(kinds) * COUNT(size); i++) {
		const struct kind *k = &kinds[i % COUNT(kinds)];
		const uint32_t *wh = size[i / COUNT(kinds)];
		struct made m = make(k, wh[0], wh[1], i);
		struct tsi_decoder *p;

		assert_int_equal(k->ops->create(&p), 0);
		compare_areas(p, &m, &r);
		assert_true(k->ops->need(p) < 100000);
		k->ops->destroy(p);
		free_made(&m);
	}
}

static void every_cut_is_refused(void **state)
{
	const struct tsi_rect first = { 0, 0, 1, 1 };

	(void)state;
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		const struct kind *k = &kinds[i];
		/* Rows that nothing pads. */
		struct made m = make(k, 12, 9, i);
		struct tsi_decoder *p;
		uint8_t out[4];

		assert_int_equal(k->ops->create(&p), 0);
		for (size_t len = 16; len < m.file.len; len++) {
			struct image_gen_bytes cut =
				image_gen_copy(m.file.data, len);

			assert_int_equal(region(p, &cut, &first, out),
					 TSOCK_EDATA);
			assert_non_null(strstr(tsock_errmsg(), "truncated"));
			free(cut.data);
		}
		assert_int_equal(region(p, &m.file, &first, out), 0);
		k->ops->destroy(p);
		free_made(&m);
	}
}

static void damaged_files_decode_or_are_bad_data(void **state)
{
	uint64_t r = 7;

	(void)state;
	for (size_t i = 0; i < 6000; i++) {
		const struct kind *k = &kinds[i % COUNT(kinds)];
		struct made m = make(k, 1 + i % 60, 1 + i % 47, i);
		struct image_gen_bytes *f = &m.file, copy;
		struct tsi_decoder *p;
		uint32_t w, h;
		int err;

		/* In the head above all. */
		f->data[image_gen_random(&r) % m.head] =
			(uint8_t)image_gen_random(&r);
		if (i % 3 == 0)
			image_gen_damage(f, &r);
		copy = image_gen_copy(f->data, f->len);
		assert_int_equal(k->ops->create(&p), 0);
		err = p->ops->open(p, copy.data, copy.len, &w, &h);
		if (!err && w && h && (uint64_t)w * h < 1u << 22) {
			struct tsi_rect rect =
				decoder_region_pick(w, h, (int)(i % 3), &r);
			uint8_t *out =
				malloc((size_t)rect.width * rect.height * 4);

			err = region(p, &copy, &rect, out);
			free(out);
		}
		if (err)
			assert_int_equal(err, TSOCK_EDATA);
		k->ops->destroy(p);
		free(copy.data);
		free_made(&m);
	}
}

static void refuse(const struct tsi_decoder_ops *ops, const char *data,
		   size_t len, const char *says)
{
	uint32_t w, h;

	assert_int_equal(ops->head((const uint8_t *)data, len, &w, &h),
			 TSOCK_EDATA);
	if (!strstr(tsock_errmsg(), says))
		fail_msg("'%s' does not say '%s'", tsock_errmsg(), says);
}

static void other_kinds_are_named(void **state)
{
	struct made m = make(&kinds[4], 5, 5, 1);
	char *p = (char *)m.file.data;

	(void)state;
	refuse(&tsi_pnm_ops, "P5 4 4 65535\n", 13, "more than 8 bits");
	refuse(&tsi_pnm_ops, "P5 4 4 0\n", 9, "largest level is 0");
	refuse(&tsi_pnm_ops, "P5 4 x 255\n", 11, "has no size");
	refuse(&tsi_pnm_ops, "P5 5000000000 1 1\n", 18, "too large");
	p[28] = 16;
	refuse(&tsi_bmp_ops, p, m.file.len, "16 bits per pixel");
	p[28] = 8;
	p[30] = 1;
	refuse(&tsi_bmp_ops, p, m.file.len, "compression (1, of 8 bits");
	p[28] = 32;
	p[30] = 3;
	refuse(&tsi_bmp_ops, p, m.file.len, "masks");
	free_made(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_of_every_kind_have_the_files_colours),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(damaged_files_decode_or_are_bad_data),
		cmocka_unit_test(other_kinds_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
