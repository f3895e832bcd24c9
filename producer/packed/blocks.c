/* SPDX-License-Identifier: MIT */
/*
 * blocks.c - reading a record: its head, its rows, and their blocks.
 */
#include "packed/blocks.h"

#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "packed/expand.h"
#include "packed/layout.h"

static uint16_t u16_at(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static int damaged(const char *what)
{
	return tsi_err(TSOCK_EDATA, "packed image: %s", what);
}

bool tsi_jpeg_packed_claims(const uint8_t *data, size_t len)
{
	return len >= TSI_JPEG_PACKED_MAGIC_LEN &&
	       !memcmp(data, TSI_JPEG_PACKED_MAGIC, TSI_JPEG_PACKED_MAGIC_LEN);
}

/* The least and the greatest factors that JPEG has. */
static bool factor_ok(uint8_t f)
{
	return f >= 1 && f <= 4;
}

/* What a record's first bytes say; false: that is impossible. */
static bool read_frame(const uint8_t *d, struct tsi_jpeg_frame *f)
{
	memset(f, 0, sizeof(*f));
	f->width = u32_at(d + TSI_PACKED_WIDTH);
	f->height = u32_at(d + TSI_PACKED_HEIGHT);
	f->comps = d[TSI_PACKED_COMPS];
	f->color = d[TSI_PACKED_COLOR];
	if (!f->width || f->width > 65535 || !f->height || f->height > 65535 ||
	    (f->comps != 1 && f->comps != 3) || f->color > TSI_JPEG_RGB ||
	    (f->comps == 1) != (f->color == TSI_JPEG_GRAY))
		return false;
	for (unsigned k = 0; k < f->comps; k++) {
		f->comp[k].h = d[TSI_PACKED_FACTORS + k];
		f->comp[k].v = d[TSI_PACKED_FACTORS + 3 + k];
		if (!factor_ok(f->comp[k].h) || !factor_ok(f->comp[k].v))
			return false;
		if (f->comp[k].h > f->h_max)
			f->h_max = f->comp[k].h;
		if (f->comp[k].v > f->v_max)
			f->v_max = f->comp[k].v;
	}
	f->mcus_across = (f->width + 8u * f->h_max - 1) / (8u * f->h_max);
	f->mcus_down = (f->height + 8u * f->v_max - 1) / (8u * f->v_max);
	return f->comps == 3 || (f->h_max == 1 && f->v_max == 1);
}

uint32_t tsi_packed_in_row(const struct tsi_jpeg_frame *f)
{
	uint32_t n = 0;

	for (unsigned k = 0; k < f->comps; k++)
		n += f->mcus_across * f->comp[k].h * f->comp[k].v;
	return n;
}

/* XXH3 of the head, as if the sum itself were 0. */
uint64_t tsi_packed_head_sum(const uint8_t *d, size_t len)
{
	static const uint8_t none[8];
	uint64_t sum = tsi_hash(d, TSI_PACKED_SUM, 0);

	sum = tsi_hash(none, sizeof(none), sum);
	return tsi_hash(d + TSI_PACKED_SUM + 8, len - TSI_PACKED_SUM - 8, sum);
}

int tsi_jpeg_packed_open(struct tsi_jpeg_packed *p, const void *data,
			 size_t len, bool trusted)
{
	const uint8_t *d = data;
	size_t least;

	if (len < TSI_PACKED_QUANT || !tsi_jpeg_packed_claims(d, len) ||
	    u32_at(d + TSI_PACKED_BYTES) != len || len > TSI_JPEG_PACKED_MAX)
		return damaged("it isn't as long as it says");
	if (!read_frame(d, &p->frame))
		return damaged("its head is damaged");
	p->data = d;
	p->len = len;
	p->index = TSI_PACKED_QUANT + 128u * p->frame.comps;
	p->first = p->index + 8 * (size_t)p->frame.mcus_down;
	p->in_row = tsi_packed_in_row(&p->frame);
	least = p->first + TSI_JPEG_PACKED_SLACK;
	if (len < least)
		return damaged("it is too short for its size");
	if (!trusted &&
	    tsi_packed_head_sum(d, p->first) != u64_at(d + TSI_PACKED_SUM))
		return damaged("its head is damaged");
	for (unsigned k = 0; k < p->frame.comps; k++)
		memcpy(p->frame.comp[k].quant,
		       d + TSI_PACKED_QUANT + 128 * (size_t)k, 128);
	return 0;
}

/* Where the parts of a row are. */
struct row {
	const uint8_t *at;
	size_t len;
	uint32_t values;
	uint32_t exceptions;
	const uint8_t *mask;
	const uint8_t *dc;
	const uint8_t *value;
	const uint8_t *exception;
};

/* False: the ends of this row and the one before don't fit the record. */
static bool bounds(const struct tsi_jpeg_packed *p, uint32_t row, size_t *from,
		   size_t *to)
{
	const uint8_t *end = p->data + p->index + 8 * (size_t)row;

	*from = row ? u32_at(end - 8) : p->first;
	*to = u32_at(end);
	return *from >= p->first && *to >= *from &&
	       *to <= p->len - TSI_JPEG_PACKED_SLACK;
}

/* Lay out a row of which 8 bytes are there at least. */
static uint64_t lay_out_blocks(const struct tsi_jpeg_packed *p, size_t from,
			       size_t to, struct row *r)
{
	uint64_t n = p->in_row;

	r->at = p->data + from;
	r->len = to - from;
	r->values = u32_at(r->at);
	r->exceptions = u32_at(r->at + 4);
	r->mask = r->at + 8;
	r->dc = r->mask + 8 * n;
	r->value = r->dc + 2 * n;
	r->exception = r->value + r->values;
	return (8 + 10 * n + r->values + 8 * (uint64_t)r->exceptions + 7) / 8 *
	       8;
}

static bool exceptions_ok(const struct row *r, uint32_t n)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < r->exceptions; i++) {
		const uint8_t *e = r->exception + 8 * (size_t)i;
		uint32_t block = u32_at(e);
		uint16_t at = u16_at(e + 4);

		if (block < before || block >= n || at < 1 || at > 63)
			return false;
		before = block;
	}
	return true;
}

/* Every mask is one, and together they take all values. */
static bool masks_ok(const struct row *r, uint32_t n)
{
	uint64_t values = 0, any = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t mask = u64_at(r->mask + 8 * (size_t)i);

		any |= mask;
		values += (uint64_t)__builtin_popcountll(mask);
	}
	return values == r->values && !(any & 1);
}

int tsi_jpeg_packed_check(const struct tsi_jpeg_packed *p, uint32_t row,
			  bool trusted)
{
	size_t from, to;
	uint32_t sum;
	struct row r;

	if (trusted)
		return 0;
	if (!bounds(p, row, &from, &to) ||
	    to - from < 8 + 10 * (size_t)p->in_row ||
	    lay_out_blocks(p, from, to, &r) != r.len)
		return damaged("a row of it is damaged");
	sum = (uint32_t)tsi_hash(r.at, r.len, 0);
	if (sum != u32_at(p->data + p->index + 8 * (size_t)row + 4) ||
	    !masks_ok(&r, p->in_row) || !exceptions_ok(&r, p->in_row))
		return damaged("a row of it is damaged");
	return 0;
}

/* A run of blocks of a row, from number `from` of the row on. */
struct run {
	uint32_t from;
	uint32_t n;
	int16_t (*coef)[64];
	uint8_t *last;
};

/* Coefficients that no byte has room for; *next is the row's next exception. */
static void patch(const struct row *r, const struct run *run, uint32_t *next)
{
	for (; *next < r->exceptions; ++*next) {
		const uint8_t *e = r->exception + 8 * (size_t)*next;
		uint32_t block = u32_at(e);

		if (block >= run->from + run->n)
			return;
		if (block >= run->from)
			run->coef[block - run->from][u16_at(e + 4)] =
				(int16_t)u16_at(e + 6);
	}
}

/* Values of the masks from number `from` up to `to`. */
static size_t count_values(const struct row *r, uint32_t from, uint32_t to)
{
	size_t n = 0;

	for (uint32_t i = from; i < to; i++)
		n += (size_t)__builtin_popcountll(
			u64_at(r->mask + 8 * (size_t)i));
	return n;
}

void tsi_jpeg_packed_row(const struct tsi_jpeg_packed *p, uint32_t row,
			 const struct tsi_expand_kernel *expand,
			 const struct tsi_jpeg_blocks *to)
{
	const struct tsi_jpeg_frame *f = &p->frame;
	uint32_t at = 0, done = 0, next = 0;
	size_t values = 0, from, end;
	struct row r;

	bounds(p, row, &from, &end);
	lay_out_blocks(p, from, end, &r);
	for (unsigned k = 0; k < f->comps; k++) {
		uint32_t h = f->comp[k].h;
		uint32_t across = f->mcus_across * h;

		for (uint32_t y = 0; y < f->comp[k].v; y++, at += across) {
			size_t first = (size_t)y * to->stride[k];
			struct run run = {
				.from = at + to->area.left * h,
				.n = to->area.across * h,
				.coef = to->coef[k] + first,
				.last = to->last[k] + first,
			};

			values += count_values(&r, done, run.from);
			expand->blocks(r.mask + 8 * (size_t)run.from,
				       r.dc + 2 * (size_t)run.from,
				       r.value + values, run.n, run.coef,
				       run.last);
			patch(&r, &run, &next);
			values += count_values(&r, run.from, run.from + run.n);
			done = run.from + run.n;
		}
	}
}
