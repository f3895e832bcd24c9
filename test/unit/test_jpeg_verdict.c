/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_verdict.c - a marker in the middle of a JPEG file's data: whichever
 * way a rectangle is decoded, it is refused where Pillow refuses the file and
 * what is the matter doesn't lie further down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "pixel/image.h"
#include "jpeg/direct.h"
#include "jpeg/pixels.h"
#include "packed/decoder.h"
#include "packed/record.h"
#include "test/lib/jpeg_plain.h"
#include "test/lib/jpeg_region.h"
#include "test/lib/made_jpeg.h"
#include "test/lib/sanitized.h"
#include "test/lib/spoilt_jpeg.h"

#define EDGE 130u
#define KINDS (4 * JPEG_SAMPLINGS)

/* ------------------------------------------------------------------------
 * Files
 */

/* The i-th kind: each sampling, by Huffman and by arithmetic, restarts. */
static struct image_gen_bytes make(unsigned i)
{
	const struct jpeg_region_sampling *s =
		&jpeg_region_sampling[i % JPEG_SAMPLINGS];
	struct image_gen_jpeg g = {
		.width = 60 + i * 7 % 60,
		.height = EDGE - i * 5 % 40,
		.components = s->components,
		.space = s->space,
		.arithmetic = i / JPEG_SAMPLINGS / 2,
		.restart_rows = i / JPEG_SAMPLINGS % 2,
		.seed = i,
	};

	memcpy(g.factor, s->factor, sizeof(g.factor));
	return image_gen_jpeg(&g);
}

/* ------------------------------------------------------------------------
 * Ways to decode
 */

static struct tsi_decoder *decoder, *packed;
static struct tsi_jpeg_direct *direct[TSI_SIMD_LEVELS]; /* NULL: not here */
static struct tsi_record_maker *maker;

static void take(const struct tsi_strip *s, uint32_t width, uint8_t *out)
{
	for (uint32_t y = 0; y < s->rows; y++)
		for (uint32_t x = 0; x < width; x++, out += 3)
			memcpy(out, s->pixels + y * s->stride + 4 * (size_t)x,
			       3);
}

/* Without libjpeg, as each processor does; ENOTSUP: libjpeg is to do it. */
static int by_direct(struct tsi_jpeg_direct *d, struct tsi_jpeg_index *x,
		     const struct image_gen_bytes *f, const struct tsi_rect *r,
		     unsigned fast, uint8_t *out)
{
	const struct tsi_image_opts opts = { .jpeg_index = x };
	struct tsi_decoder_hint hint = { .opts = &opts };
	uint32_t w, h;
	int err = TSOCK_ENOTSUP;

	if (tsi_jpeg_direct_open(d, f->data, f->len, &hint, &w, &h))
		err = tsi_jpeg_direct_begin(d, r, fast, false);
	for (uint32_t y = 0; !err && y < r->height;) {
		struct tsi_strip s;

		err = tsi_jpeg_direct_read(d, &s);
		if (err)
			break;
		take(&s, r->width, out + (size_t)y * r->width * 3);
		y += s.rows;
	}
	tsi_jpeg_direct_close(d);
	return err;
}

static int by(struct tsi_decoder *d, bool stock, struct tsi_jpeg_index *x,
	      const struct image_gen_bytes *f, const struct tsi_rect *r,
	      uint8_t *out)
{
	const struct tsi_image_opts opts = { .stock_jpeg = stock,
					     .jpeg_index = x };
	struct tsi_decoder_hint hint = { .opts = &opts, .trusted = true };
	struct tsi_strip s;
	uint32_t w, h;
	int err;

	d->ops->hint(d, &hint);
	err = d->ops->open(d, f->data, f->len, &w, &h);
	d->planes = false;
	if (!err)
		err = d->ops->begin(d, r);
	for (uint32_t y = 0; !err && y < r->height; y += s.rows) {
		err = d->ops->read(d, &s);
		if (!err)
			take(&s, r->width, out + (size_t)y * r->width * 3);
	}
	d->ops->close(d);
	return err;
}

static void check_pixels(const uint8_t *a, const uint8_t *b, size_t n)
{
	if (TSI_JPEG_PIXELS_ALWAYS_ALIKE)
		assert_memory_equal(a, b, n);
}

/* ------------------------------------------------------------------------
 * The tests
 */

static unsigned good, bad;

/* Every way; want is libjpeg's answer. */
static void check_ways(const struct image_gen_bytes *f,
		       const struct tsi_rect *r, struct tsi_jpeg_index *x,
		       int err, const uint8_t *want)
{
	size_t n = (size_t)r->width * r->height * 3;
	uint8_t *got = malloc(n);
	struct image_gen_bytes record = { 0 };
	const uint8_t *data;

	for (unsigned k = 0; k < 2 * TSI_SIMD_LEVELS; k++) {
		struct tsi_jpeg_direct *d = direct[k / 2];
		int e = d ? by_direct(d, k % 2 ? x : NULL, f, r, decoder->fast,
				      got)
			  : TSOCK_ENOTSUP;

		if (e == TSOCK_ENOTSUP)
			continue;
		assert_int_equal(e, 0);
		assert_int_equal(err, 0);
		check_pixels(got, want, n);
	}
	assert_int_equal(by(decoder, false, NULL, f, r, got), err);
	assert_int_equal(by(decoder, false, x, f, r, got), err);
	if (!err)
		check_pixels(got, want, n);
	if (!tsi_record_pack(maker, f->data, f->len, &data, &record.len)) {
		record = image_gen_copy(data, record.len);
		assert_int_equal(err, 0);
		packed->fast = decoder->fast;
		assert_int_equal(by(packed, false, NULL, &record, r, got), 0);
		check_pixels(got, want, n);
		free(record.data);
	}
	free(got);
}

/* A rectangle, by libjpeg and by the reference p, then every way. */
static void check_rect(const struct image_gen_bytes *f,
		       const struct jpeg_plain *p, const struct tsi_rect *r,
		       struct tsi_jpeg_index *x)
{
	size_t n = (size_t)r->width * r->height * 3;
	uint8_t *want = malloc(n);
	int err = by(decoder, true, NULL, f, r, want);

	assert_true(!err || err == TSOCK_EDATA);
	good += !err;
	bad += err != 0;
	assert_int_equal(!err, r->top + r->height <= p->rows);
	for (uint32_t y = 0; !err && y < r->height; y++)
		assert_memory_equal(
			want + (size_t)y * r->width * 3,
			p->rgb +
				((size_t)(r->top + y) * p->width + r->left) * 3,
			(size_t)r->width * 3);
	check_ways(f, r, x, err, want);
	free(want);
}

/* Some rectangles of a file: the whole, and others. */
static void check_file(const struct image_gen_bytes *f, uint64_t *r)
{
	struct tsi_jpeg_index *x = made_jpeg_index(1, 1 << 20);
	struct jpeg_plain p;

	for (int k = 0; k < 4; k++) {
		struct jpeg_picture size = { 0 };
		struct tsi_rect rect;

		decoder->fast = k == 3 ? 1u << image_gen_random(r) % 4 : 0;
		if (!jpeg_plain_read(f->data, f->len, decoder->fast, &p))
			break;
		/* The header may be damaged as well. */
		if (!p.many && p.width <= EDGE && p.height <= EDGE) {
			size.width = p.width;
			size.height = p.height;
			rect = jpeg_region_pick(&size, k, r);
			check_rect(f, &p, &rect, x);
		}
		free(p.rgb);
	}
	tsi_jpeg_index_destroy(x);
}

static void damage_is_judged_alike_by_every_way_to_decode(void **state)
{
	const char *more = getenv("TSOCK_DAMAGE");
	unsigned each = (SANITIZED ? 2 : 4) * (more ? (unsigned)atoi(more) : 1);
	uint64_t r = 17;

	(void)state;
	for (unsigned i = 0; i < KINDS; i++) {
		struct image_gen_bytes f = make(i);

		check_file(&f, &r);
		for (unsigned k = 0; k < each; k++) {
			struct image_gen_bytes d = spoilt_jpeg(&f, &r), exact;

			/* A sanitizer sees a byte too far. */
			exact = image_gen_copy(d.data, d.len);
			check_file(&exact, &r);
			free(exact.data);
			free(d.data);
		}
		free(f.data);
	}
	print_message("%u rectangles are good, %u bad\n", good, bad);
	assert_true(good > 4 * each * JPEG_SAMPLINGS);
	assert_true(bad > each * JPEG_SAMPLINGS);
}

/* Rectangles that end above the marker, reach it, and begin below it. */
static void check_places(const struct image_gen_bytes *f,
			 struct tsi_jpeg_index *x)
{
	static const uint32_t row[][2] = {
		{ 0, 8 }, { 16, 24 }, { 81, 7 }, { 88, 8 }
	};
	struct jpeg_plain p;

	assert_true(jpeg_plain_read(f->data, f->len, 0, &p));
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		struct tsi_rect r = { .top = row[k][0],
				      .width = 40,
				      .height = row[k][1] };

		check_rect(f, &p, &r, x);
	}
	free(p.rgb);
}

/*
 * Where data restart, libjpeg skips markers below 0xc0: whoever looks only
 * further down doesn't meet them.
 */
static void markers_of_every_code_are_judged_alike_from_below(void **state)
{
	struct tsi_jpeg_index *x = made_jpeg_index(1, 1 << 20);

	(void)state;
	decoder->fast = 0;
	good = bad = 0;
	/* Some codes of each kind of file, where that takes three times as long. */
	for (unsigned i = 0; i < 2 * 3 * 254; i += SANITIZED ? 5 : 1) {
		struct image_gen_bytes f = spoilt_jpeg_twice(
			i / 254 % 3, i / (3 * 254), 1 + i % 254);

		check_places(&f, x);
		free(f.data);
	}
	tsi_jpeg_index_destroy(x);
	print_message("%u rectangles are good, %u bad\n", good, bad);
	assert_true(good > (SANITIZED ? 200 : 1000));
	assert_true(bad > (SANITIZED ? 200 : 1000));
}

/* A file of rows that restart nowhere, with a marker. */
static struct image_gen_bytes with_marker(size_t part, unsigned marker)
{
	struct image_gen_bytes f = made_jpeg(3, 180, 240);
	size_t at = spoilt_jpeg_data(&f);

	at += (f.len - at) * part / 10;
	f.data[at] = 0xff;
	f.data[at + 1] = (uint8_t)marker;
	return f;
}

static void markers_in_the_data_are_judged_as_pillow_judges(void **state)
{
	const struct tsi_rect all = { 0, 0, 180, 240 }, top = { 0, 0, 180, 60 };
	uint8_t *out = malloc((size_t)180 * 240 * 3);

	(void)state;
	decoder->fast = 0;
	for (unsigned m = 1; m < 255; m++) {
		struct image_gen_bytes f = with_marker(4, m);
		/* Restarts, the end, and segments that nobody reads. */
		bool passes = m == 0x01 || (m >= 0xd0 && m <= 0xd7) ||
			      m == 0xd9 || m == 0xdc ||
			      (m >= 0xe0 && m <= 0xef) || m == 0xfe;

		for (int stock = 0; stock < 2; stock++) {
			assert_int_equal(
				by(decoder, stock, NULL, &f, &all, out),
				passes ? 0 : TSOCK_EDATA);
			if (!passes)
				assert_true(*tsock_errmsg());
			assert_int_equal(
				by(decoder, stock, NULL, &f, &top, out), 0);
		}
		free(f.data);
	}
	free(out);
}

static void a_header_with_a_marker_that_pillow_lacks_is_refused(void **state)
{
	const struct tsi_rect all = { 0, 0, 90, 120 };
	uint8_t *out = malloc((size_t)90 * 120 * 3);
	struct image_gen_bytes f = made_jpeg(3, 90, 120), g;

	(void)state;
	decoder->fast = 0;
	g = (struct image_gen_bytes){ malloc(f.len + 2), f.len + 2 };
	memcpy(g.data, "\xff\xd8\xff\x01", 4);
	memcpy(g.data + 4, f.data + 2, f.len - 2);
	assert_int_equal(by(decoder, false, NULL, &g, &all, out), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "0x01"));
	/* A restart marker is passed over. */
	g.data[3] = 0xd0;
	assert_int_equal(by(decoder, false, NULL, &g, &all, out), 0);
	free(f.data);
	free(g.data);
	free(out);
}

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&decoder), 0);
	assert_int_equal(tsi_packed_ops.create(&packed), 0);
	assert_int_equal(tsi_record_maker_create(64 << 20, &maker), 0);
	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++)
		assert_int_equal(tsi_jpeg_direct_create(l, &direct[l]), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tsi_jpeg_ops.destroy(decoder);
	tsi_packed_ops.destroy(packed);
	tsi_record_maker_destroy(maker);
	for (unsigned k = 0; k < TSI_SIMD_LEVELS; k++)
		tsi_jpeg_direct_destroy(direct[k]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damage_is_judged_alike_by_every_way_to_decode),
		cmocka_unit_test(
			markers_of_every_code_are_judged_alike_from_below),
		cmocka_unit_test(
			markers_in_the_data_are_judged_as_pillow_judges),
		cmocka_unit_test(
			a_header_with_a_marker_that_pillow_lacks_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
