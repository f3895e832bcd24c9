/* SPDX-License-Identifier: MIT */
/*
 * packer.c - makes records.
 */
#include "packed/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "packed/gather.h"
#include "packed/layout.h"

struct tsi_jpeg_packer {
	struct tsi_gather_kernel gather;
	struct tsi_jpeg_frame frame;
	uint8_t *data;
	size_t cap;
	size_t len;
	size_t index;
	uint32_t rows; /* so far */
	uint32_t in_row;
	/* The largest values and exceptions of the row that is being made. */
	uint8_t *exception;
	size_t exception_cap;
	size_t exceptions;
};

static int no_pack_memory(void)
{
	return tsi_err(TSOCK_ENOMEM, "no memory to pack an image");
}

/* Room for so many bytes behind those that there are. */
static int grow_record(struct tsi_jpeg_packer *p, size_t more)
{
	size_t need = p->len + more;
	uint8_t *d;

	if (need > TSI_JPEG_PACKED_MAX)
		return tsi_err(TSOCK_ENOTSUP, "the image is too large to pack");
	if (need <= p->cap)
		return 0;
	need += need / 2;
	d = realloc(p->data, need);
	if (!d)
		return no_pack_memory();
	p->data = d;
	p->cap = need;
	return 0;
}

int tsi_jpeg_packer_create(struct tsi_jpeg_packer **out)
{
	struct tsi_jpeg_packer *p = calloc(1, sizeof(*p));

	if (!p)
		return no_pack_memory();
	tsi_gather_kernel_init(&p->gather, tsi_simd_best());
	*out = p;
	return 0;
}

void tsi_jpeg_packer_destroy(struct tsi_jpeg_packer *p)
{
	if (!p)
		return;
	free(p->data);
	free(p->exception);
	free(p);
}

static void put_at(struct tsi_jpeg_packer *p, size_t at, const void *from,
		   size_t len)
{
	memcpy(p->data + at, from, len);
}

int tsi_jpeg_packer_begin(struct tsi_jpeg_packer *p,
			  const struct tsi_jpeg_frame *f)
{
	size_t head;
	int err;

	p->frame = *f;
	p->index = TSI_PACKED_QUANT + 128u * f->comps;
	head = p->index + 8 * (size_t)f->mcus_down;
	p->in_row = tsi_packed_in_row(f);
	p->rows = 0;
	p->len = 0;
	err = grow_record(p, head);
	if (err)
		return err;
	memset(p->data, 0, head);
	put_at(p, 0, TSI_JPEG_PACKED_MAGIC, TSI_JPEG_PACKED_MAGIC_LEN);
	put_at(p, TSI_PACKED_WIDTH, &f->width, 4);
	put_at(p, TSI_PACKED_HEIGHT, &f->height, 4);
	p->data[TSI_PACKED_COMPS] = f->comps;
	p->data[TSI_PACKED_COLOR] = (uint8_t)f->color;
	for (unsigned k = 0; k < f->comps; k++) {
		p->data[TSI_PACKED_FACTORS + k] = f->comp[k].h;
		p->data[TSI_PACKED_FACTORS + 3 + k] = f->comp[k].v;
		put_at(p, TSI_PACKED_QUANT + 128 * (size_t)k, f->comp[k].quant,
		       128);
	}
	p->len = head;
	return 0;
}

static int add_exception(struct tsi_jpeg_packer *p, uint32_t block, int at,
			 int16_t value)
{
	uint16_t where = (uint16_t)at;
	uint8_t *e;

	if (p->exceptions == p->exception_cap) {
		size_t cap = p->exception_cap * 2 + 64;

		e = realloc(p->exception, cap * 8);
		if (!e)
			return no_pack_memory();
		p->exception = e;
		p->exception_cap = cap;
	}
	e = p->exception + 8 * p->exceptions++;
	memcpy(e, &block, 4);
	memcpy(e + 4, &where, 2);
	memcpy(e + 6, &value, 2);
	return 0;
}

/* The parts of a row that is being made, and its next block. */
struct parts {
	uint8_t *mask;
	uint8_t *dc;
	uint8_t *value;
	uint32_t block;
};

/* A block with exceptions, in whose place there are zeros. */
static int put_block(struct tsi_jpeg_packer *p, const int16_t *coef,
		     struct parts *to)
{
	uint64_t mask = p->gather.mask(coef) & ~UINT64_C(1);

	memcpy(to->mask + 8 * (size_t)to->block, &mask, sizeof(mask));
	memcpy(to->dc + 2 * (size_t)to->block, coef, sizeof(*coef));
	for (; mask; mask &= mask - 1) {
		int at = __builtin_ctzll(mask), err;
		int16_t v = coef[at];

		*to->value++ = (uint8_t)(v == (int8_t)v ? v : 0);
		if (v == (int8_t)v)
			continue;
		err = add_exception(p, to->block, at, v);
		if (err)
			return err;
	}
	to->block++;
	return 0;
}

/* n blocks side by side. */
static int put_run(struct tsi_jpeg_packer *p, const int16_t (*coef)[64],
		   uint32_t n, struct parts *to)
{
	uint32_t done = 0;

	while (done < n) {
		uint32_t more = p->gather.blocks(
			coef + done, n - done, to->mask + 8 * (size_t)to->block,
			to->dc + 2 * (size_t)to->block, &to->value);
		int err;

		to->block += more;
		done += more;
		if (done == n)
			break;
		err = put_block(p, coef[done++], to);
		if (err)
			return err;
	}
	return 0;
}

/* All blocks of the row; at is where its values go. */
static int put_blocks(struct tsi_jpeg_packer *p,
		      const struct tsi_jpeg_blocks *b, uint32_t row, size_t *at)
{
	struct parts to = {
		.mask = p->data + p->len + 8,
		.dc = p->data + p->len + 8 + 8 * (size_t)p->in_row,
		.value = p->data + *at,
	};

	for (unsigned k = 0; k < p->frame.comps; k++) {
		const struct tsi_jpeg_comp *c = &p->frame.comp[k];

		for (uint32_t i = 0; i < c->v; i++) {
			size_t y = (size_t)row * c->v + i;
			int err = put_run(p, b->coef[k] + y * b->stride[k],
					  p->frame.mcus_across * c->h, &to);

			if (err)
				return err;
		}
	}
	*at = (size_t)(to.value - p->data);
	return 0;
}

int tsi_jpeg_packer_row(struct tsi_jpeg_packer *p,
			const struct tsi_jpeg_blocks *b, uint32_t row)
{
	size_t from = p->len, at = from + 8 + 10 * (size_t)p->in_row, len;
	uint32_t counts[2], end[2];
	int err;

	p->exceptions = 0;
	err = grow_record(p,
			  16 + 73 * (size_t)p->in_row + TSI_JPEG_GATHER_SLACK);
	if (!err)
		err = put_blocks(p, b, row, &at);
	if (err)
		return err;
	counts[0] = (uint32_t)(at - from - 8 - 10 * (size_t)p->in_row);
	counts[1] = (uint32_t)p->exceptions;
	put_at(p, from, counts, sizeof(counts));
	p->len = at;
	err = grow_record(p, 8 * p->exceptions + 8);
	if (err)
		return err;
	if (p->exceptions)
		put_at(p, at, p->exception, 8 * p->exceptions);
	at += 8 * p->exceptions;
	len = (at - from + 7) / 8 * 8;
	memset(p->data + at, 0, from + len - at);
	p->len = from + len;
	end[0] = (uint32_t)p->len;
	end[1] = (uint32_t)tsi_hash(p->data + from, len, 0);
	put_at(p, p->index + 8 * (size_t)p->rows++, end, sizeof(end));
	/* So that the end never fails. */
	return grow_record(p, TSI_JPEG_PACKED_SLACK);
}

const uint8_t *tsi_jpeg_packer_end(struct tsi_jpeg_packer *p, size_t *len)
{
	size_t head = p->index + 8 * (size_t)p->frame.mcus_down;
	uint32_t bytes;
	uint64_t sum;

	memset(p->data + p->len, 0, TSI_JPEG_PACKED_SLACK);
	p->len += TSI_JPEG_PACKED_SLACK;
	bytes = (uint32_t)p->len;
	put_at(p, TSI_PACKED_BYTES, &bytes, 4);
	sum = tsi_packed_head_sum(p->data, head);
	put_at(p, TSI_PACKED_SUM, &sum, 8);
	*len = p->len;
	return p->data;
}
