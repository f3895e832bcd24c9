/* SPDX-License-Identifier: MIT */
/*
 * decoder.c - the operations of a decoder of packed images.
 */
#include "packed/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "packed/blocks.h"
#include "packed/expand.h"
#include "jpeg/pixels.h"

struct packed {
	struct tsi_decoder base;
	struct tsi_jpeg_pixels *pixels;
	struct tsi_expand_kernel expand;
	bool trusted;
	struct tsi_jpeg_packed record;
	struct tsi_jpeg_area area;
	uint32_t next; /* row of MCUs, of the area */
	uint32_t rows; /* of pixels, given so far */
	uint32_t rows_left;
	/* One row of MCUs of the area. */
	struct tsi_jpeg_blocks blocks;
	uint8_t *memory;
	size_t len;
};

/* ------------------------------------------------------------------------
 * The head
 */

static bool is_bad_record(const uint8_t *data, size_t len)
{
	return len >= TSI_PACKED_BAD_MAGIC_LEN &&
	       !memcmp(data, TSI_PACKED_BAD_MAGIC, TSI_PACKED_BAD_MAGIC_LEN);
}

static bool claims(const uint8_t *data, size_t len)
{
	return tsi_jpeg_packed_claims(data, len) || is_bad_record(data, len);
}

static int head(const uint8_t *data, size_t len, uint32_t *width,
		uint32_t *height)
{
	if (is_bad_record(data, len)) {
		size_t n = len - TSI_PACKED_BAD_MAGIC_LEN;

		return tsi_err(TSOCK_EDATA, "%.*s", (int)(n < 200 ? n : 200),
			       (const char *)data + TSI_PACKED_BAD_MAGIC_LEN);
	}
	if (len < 20)
		return TSOCK_EAGAIN;
	memcpy(width, data + 12, sizeof(*width));
	memcpy(height, data + 16, sizeof(*height));
	return 0;
}

/* ------------------------------------------------------------------------
 * Memory
 */

/* Bytes for a row of MCUs of so many columns. */
static size_t row_bytes(const struct tsi_jpeg_frame *f, uint32_t across)
{
	size_t n = 0;

	for (unsigned k = 0; k < f->comps; k++)
		n += (size_t)across * f->comp[k].h * f->comp[k].v;
	/* Blocks and their last[], in whole cache lines. */
	return n * 128 + (n + 63) / 64 * 64;
}

static int lay_out(struct packed *p)
{
	const struct tsi_jpeg_frame *f = &p->record.frame;
	size_t len = row_bytes(f, p->area.across);
	int16_t(*coef)[64];
	uint8_t *last;

	if (len > p->len) {
		free(p->memory);
		p->len = 0;
		p->memory = aligned_alloc(64, len);
		if (!p->memory)
			return tsi_err(TSOCK_ENOMEM,
				       "no memory to expand a packed image");
		p->len = len;
	}
	coef = (void *)p->memory;
	p->blocks.area = p->area;
	p->blocks.area.down = 1;
	for (unsigned k = 0; k < f->comps; k++) {
		p->blocks.coef[k] = coef;
		p->blocks.stride[k] = p->area.across * f->comp[k].h;
		coef += (size_t)p->blocks.stride[k] * f->comp[k].v;
	}
	last = (void *)coef;
	for (unsigned k = 0; k < f->comps; k++) {
		p->blocks.last[k] = last;
		last += (size_t)p->blocks.stride[k] * f->comp[k].v;
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * The operations of decoder.h
 */

static struct packed *packed_of(struct tsi_decoder *d)
{
	return (struct packed *)d;
}

static void decoder_destroy(struct tsi_decoder *d)
{
	struct packed *p = packed_of(d);

	if (!p)
		return;
	tsi_jpeg_pixels_destroy(p->pixels);
	free(p->memory);
	free(p);
}

int tsi_packed_create(enum tsi_simd simd, struct tsi_decoder **out)
{
	struct packed *p = calloc(1, sizeof(*p));
	enum tsi_simd level;
	int err;

	if (!p)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for a decoder of packed images");
	p->base.ops = &tsi_packed_ops;
	err = tsi_simd_choose(simd, &level);
	if (!err)
		err = tsi_jpeg_pixels_create(simd, &p->pixels);
	if (err) {
		decoder_destroy(&p->base);
		return err;
	}
	tsi_expand_kernel_init(&p->expand, level);
	*out = &p->base;
	return 0;
}

static int decoder_create(struct tsi_decoder **out)
{
	return tsi_packed_create(TSI_SIMD_BEST, out);
}

static void decoder_hint(struct tsi_decoder *d,
			 const struct tsi_decoder_hint *hint)
{
	packed_of(d)->trusted = hint->trusted;
}

static int decoder_open(struct tsi_decoder *d, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	struct packed *p = packed_of(d);
	int err;

	p->rows = 0;
	p->rows_left = 0;
	err = tsi_jpeg_packed_open(&p->record, data, len, p->trusted);
	if (err)
		return err;
	if (!tsi_jpeg_pixels_can(&p->record.frame))
		return tsi_err(TSOCK_EDATA,
			       "packed image: a sampling that isn't supported");
	d->has_planes = tsi_jpeg_pixels_has_planes(p->pixels);
	*width = p->record.frame.width;
	*height = p->record.frame.height;
	return 0;
}

static uint64_t decoder_need(struct tsi_decoder *d)
{
	const struct tsi_jpeg_frame *f = &packed_of(d)->record.frame;

	return tsi_jpeg_pixels_need(f) + row_bytes(f, f->mcus_across);
}

static int decoder_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct packed *p = packed_of(d);
	const struct tsi_jpeg_frame *f = &p->record.frame;
	int err;

	tsi_jpeg_pixels_area(f, rect, d->fast, &p->area);
	/* Rows above count too: then it is bad for a sample or it isn't. */
	for (uint32_t y = 0; y < p->area.top; y++) {
		err = tsi_jpeg_packed_check(&p->record, y, p->trusted);
		if (err)
			return err;
	}
	err = lay_out(p);
	if (!err)
		err = tsi_jpeg_pixels_begin(p->pixels, f, rect, d->fast,
					    d->planes);
	p->next = 0;
	p->rows_left = err ? 0 : rect->height;
	return err;
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct packed *p = packed_of(d);

	while (p->rows_left && !tsi_jpeg_pixels_read(p->pixels, strip)) {
		uint32_t y = p->area.top + p->next;
		int err = tsi_jpeg_packed_check(&p->record, y, p->trusted);

		if (err)
			return err;
		tsi_jpeg_packed_row(&p->record, y, &p->expand, &p->blocks);
		p->blocks.area.top = y;
		tsi_jpeg_pixels_push(p->pixels, &p->blocks, 0);
		p->next++;
	}
	p->rows += strip->rows;
	p->rows_left -= strip->rows;
	return 0;
}

static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	return ((const struct packed *)d)->rows;
}

static void decoder_close(struct tsi_decoder *d)
{
	struct packed *p = packed_of(d);

	p->rows_left = 0;
	if (p->len > TSI_SCRATCH_KEEP / 2) {
		free(p->memory);
		p->memory = NULL;
		p->len = 0;
	}
}

const struct tsi_decoder_ops tsi_packed_ops = {
	.name = "packed image",
	.internal = true,
	.shrinks = true,
	.claims = claims,
	.head = head,
	.create = decoder_create,
	.destroy = decoder_destroy,
	.hint = decoder_hint,
	.open = decoder_open,
	.need = decoder_need,
	.begin = decoder_begin,
	.read = decoder_read,
	.rows = decoder_rows,
	.close = decoder_close,
};
