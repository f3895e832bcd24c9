/* SPDX-License-Identifier: MIT */
/*
 * jpeg_subject.c - a JPEG file that jpeg/entropy.c is to read.
 */
#include "test/lib/jpeg_subject.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

struct tsi_jpeg_entropy *jpeg_subject_create(enum tsi_simd simd)
{
	struct tsi_jpeg_entropy *e = NULL;
	int err = tsi_jpeg_entropy_create(simd, &e);

	if (err == TSOCK_ENOTSUP && simd != TSI_SIMD_SCALAR)
		return NULL;
	assert_int_equal(err, 0);
	return e;
}

/* Read all from the top, with part of each row's blocks; false: declined. */
bool jpeg_subject_record(struct tsi_jpeg_entropy *e, struct jpeg_subject *s,
			 uint32_t left, uint32_t across)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;

	s->columns = s->step ? (f->mcus_across - 1) / s->step : 0;
	s->row = calloc(f->mcus_down + 1, sizeof(*s->row));
	s->column = calloc((size_t)f->mcus_down * s->columns + 1,
			   sizeof(*s->column));
	tsi_jpeg_entropy_open(e, &s->scan, s->file.data, s->file.len);
	for (uint32_t y = 0; y < f->mcus_down; y++) {
		struct tsi_jpeg_area a = { left, y, across, 1 };
		struct tsi_jpeg_blocks b;
		bool ok;

		jpeg_stock_alloc(f, &a, &b);
		ok = tsi_jpeg_entropy_record(
			e, &s->row[y], across ? &b : NULL, s->step,
			s->column + (size_t)y * s->columns, &s->row[y + 1]);
		if (ok && across)
			jpeg_stock_check(f, &s->want, &b);
		jpeg_stock_drop(&b);
		if (!ok)
			return false;
	}
	return true;
}

void jpeg_subject_cut(const struct jpeg_subject *s,
		      const struct tsi_jpeg_area *a, uint32_t y, uint32_t left,
		      uint32_t right, struct tsi_jpeg_piece *p)
{
	uint32_t n = s->step ? left / s->step : 0, row = a->top + y;

	p->entry =
		n ? s->column[(size_t)row * s->columns + n - 1] : s->row[row];
	p->column = n * s->step;
	p->row = y;
	p->left = left;
	p->right = right;
	p->end = y % 2 ? s->row[row + 1].bit / 8 + 1 : 0;
}

/* Read an area, of each row the same number of pieces at most. */
bool jpeg_subject_read(struct tsi_jpeg_entropy *e, const struct jpeg_subject *s,
		       const struct tsi_jpeg_area *a, uint32_t most)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	struct tsi_jpeg_piece *piece =
		calloc((size_t)a->down * most, sizeof(*piece));
	uint32_t across = (a->across + most - 1) / most, n = 0;
	struct tsi_jpeg_blocks b;
	bool ok;

	for (uint32_t y = 0; y < a->down; y++)
		for (uint32_t x = 0; x < a->across; x += across, n++)
			jpeg_subject_cut(s, a, y, a->left + x,
					 a->left + (a->across - x < across
							    ? a->across
							    : x + across),
					 &piece[n]);
	jpeg_stock_alloc(f, a, &b);
	ok = tsi_jpeg_entropy_read(e, piece, n, &b);
	if (ok)
		jpeg_stock_check(f, &s->want, &b);
	jpeg_stock_drop(&b);
	free(piece);
	return ok;
}

bool jpeg_subject_open(struct jpeg_subject *s, const uint8_t *data, size_t len)
{
	memset(s, 0, sizeof(*s));
	if (!tsi_jpeg_scan_read(data, len, &s->scan))
		return false;
	/* Exactly the bytes, so that a sanitizer sees overreading. */
	s->file = image_gen_copy(data, len);
	assert_true(tsi_jpeg_scan_read(s->file.data, len, &s->scan));
	jpeg_stock_read(data, len, &s->want);
	return true;
}

void jpeg_subject_forget(struct jpeg_subject *s)
{
	free(s->row);
	free(s->column);
	s->row = NULL;
	s->column = NULL;
}

void jpeg_subject_close(struct jpeg_subject *s)
{
	jpeg_stock_free(&s->want);
	jpeg_subject_forget(s);
	free(s->file.data);
}

/* The decoder that reads the most pieces at once, of as few as there are. */
struct tsi_jpeg_entropy *jpeg_subject_widest(void)
{
	struct tsi_jpeg_entropy *e = jpeg_subject_create(TSI_SIMD_AVX512);

	return e ? e : jpeg_subject_create(TSI_SIMD_BEST);
}

static const int luma[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 } };

struct image_gen_jpeg jpeg_subject_any(unsigned i)
{
	struct image_gen_jpeg g = {
		.width = 1 + i * 7 % 67,
		.height = 1 + i * 13 % 67,
		.components = i % 5 == 4 ? 1 : 3,
		.optimize = i / 3 % 2,
		.quality = 1 + (int)(i * 11 % 100),
		.seed = i,
	};

	g.factor[0][0] = luma[i % 4][0];
	g.factor[0][1] = luma[i % 4][1];
	if (i % 17 == 16 && g.components == 3)
		g.space = JCS_RGB;
	return g;
}

/* Quality 100 and noise: long codes, full blocks, many stuffed bytes. */
struct image_gen_bytes jpeg_subject_noisy(unsigned i)
{
	struct image_gen_jpeg g = jpeg_subject_any(i);

	g.width = 20 + i % 30;
	g.height = 50 - i % 30;
	g.quality = 40 + (int)(i * 7 % 61);
	return image_gen_jpeg(&g);
}
