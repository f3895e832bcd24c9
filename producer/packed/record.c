/* SPDX-License-Identifier: MIT */
/*
 * record.c - what a pack, or the cache in memory, holds of one file.
 */
#include "packed/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "pixel/image.h"
#include "jpeg/jpeg.h"
#include "jpeg/entropy.h"
#include "packed/blocks.h"
#include "jpeg/pixels.h"
#include "jpeg/scan.h"
#include "jpeg/whole.h"
#include "packed/decoder.h"
#include "pixel/wrapped.h"

struct tsi_record_maker {
	struct tsi_jpeg_whole *whole;
	struct tsi_jpeg_packer *packer;
	uint64_t decode; /* bytes */
	/* Looks for damage in the files that aren't packed. */
	struct tsi_decoder *decoder;
	/* Faster than libjpeg, for the files that it takes; NULL: for none. */
	struct tsi_jpeg_entropy *entropy;
	int16_t (*coef)[64]; /* a row of MCUs */
	uint8_t *last;
	size_t cap; /* blocks */
};

int tsi_record_maker_create(uint64_t decode, struct tsi_record_maker **out)
{
	struct tsi_record_maker *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return tsi_err(TSOCK_ENOMEM, "no memory to pack images");
	m->decode = decode;
	err = tsi_jpeg_whole_create(&m->whole);
	if (!err)
		err = tsi_jpeg_packer_create(&m->packer);
	if (!err)
		err = tsi_jpeg_entropy_create(TSI_SIMD_BEST, &m->entropy);
	if (err == TSOCK_ENOTSUP)
		err = 0;
	if (!err)
		err = tsi_jpeg_ops.create(&m->decoder);
	if (err) {
		tsi_record_maker_destroy(m);
		return err;
	}
	*out = m;
	return 0;
}

void tsi_record_maker_destroy(struct tsi_record_maker *m)
{
	if (!m)
		return;
	tsi_jpeg_whole_destroy(m->whole);
	tsi_jpeg_packer_destroy(m->packer);
	tsi_jpeg_entropy_destroy(m->entropy);
	tsi_jpeg_ops.destroy(m->decoder);
	free(m->coef);
	free(m->last);
	free(m);
}

static int copy(const void *head, size_t head_len, const void *data, size_t len,
		struct tsi_record *out)
{
	out->data = malloc(head_len + len);
	if (!out->data)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for a record of %zu "
			       "bytes",
			       head_len + len);
	if (head_len)
		memcpy(out->data, head, head_len);
	memcpy(out->data + head_len, data, len);
	out->len = head_len + len;
	return 0;
}

int tsi_record_bad(const char *reason, struct tsi_record *out)
{
	out->packed = false;
	out->damaged = false;
	return copy(TSI_PACKED_BAD_MAGIC, TSI_PACKED_BAD_MAGIC_LEN, reason,
		    strlen(reason), out);
}

/* Is it a JPEG that may be decoded in the memory that there is for it? */
static bool is_small_jpeg(const struct tsi_record_maker *m, const uint8_t *data,
			  size_t len)
{
	uint32_t width, height;

	return tsi_jpeg_claims(data, len) &&
	       !tsi_jpeg_head(data, len, &width, &height) && width && height &&
	       tsi_jpeg_whole_need(width, height) <= m->decode;
}

/* Blocks for a row of MCUs. */
static int make_blocks(struct tsi_record_maker *m,
		       const struct tsi_jpeg_frame *f,
		       struct tsi_jpeg_blocks *b)
{
	size_t n = 0;

	*b = (struct tsi_jpeg_blocks){ .area = { .across = f->mcus_across,
						 .down = 1 } };
	for (unsigned k = 0; k < f->comps; k++) {
		b->stride[k] = f->mcus_across * f->comp[k].h;
		n += (size_t)b->stride[k] * f->comp[k].v;
	}
	if (n > m->cap) {
		free(m->coef);
		free(m->last);
		m->cap = 0;
		m->coef = aligned_alloc(64, n * sizeof(*m->coef));
		m->last = malloc(n);
		if (!m->coef || !m->last)
			return tsi_err(TSOCK_ENOMEM, "no memory for a row of "
						     "a JPEG");
		m->cap = n;
	}
	n = 0;
	for (unsigned k = 0; k < f->comps; k++) {
		b->coef[k] = m->coef + n;
		b->last[k] = m->last + n;
		n += (size_t)b->stride[k] * f->comp[k].v;
	}
	return 0;
}

/*
 * The rows of a file by our own decoder; ENOTSUP: it is one for libjpeg.  What
 * this decoder takes libjpeg reads without a warning.
 */
static int pack_direct(struct tsi_record_maker *m, const uint8_t *data,
		       size_t len)
{
	struct tsi_jpeg_entry row = { .bit = 0 }, next;
	struct tsi_jpeg_blocks b;
	struct tsi_jpeg_scan scan;
	int err;

	if (!m->entropy || !tsi_jpeg_scan_read(data, len, &scan) ||
	    !tsi_jpeg_pixels_can(&scan.frame))
		return TSOCK_ENOTSUP;
	err = make_blocks(m, &scan.frame, &b);
	if (!err)
		err = tsi_jpeg_packer_begin(m->packer, &scan.frame);
	tsi_jpeg_entropy_open(m->entropy, &scan, data, len);
	for (uint32_t y = 0; y < scan.frame.mcus_down && !err; y++) {
		b.area.top = y;
		if (!tsi_jpeg_entropy_record(m->entropy, &row, &b, 0, NULL,
					     &next))
			return TSOCK_ENOTSUP;
		err = tsi_jpeg_packer_row(m->packer, &b, 0);
		row = next;
	}
	if (!err && !tsi_jpeg_entropy_ends_well(m->entropy, &row, true))
		return TSOCK_ENOTSUP;
	return err;
}

static int pack_rows(struct tsi_record_maker *m,
		     const struct tsi_jpeg_frame *frame)
{
	struct tsi_jpeg_blocks b;
	int err = tsi_jpeg_packer_begin(m->packer, frame);

	for (uint32_t y = 0; y < frame->mcus_down && !err; y++) {
		tsi_jpeg_whole_row(m->whole, y, &b);
		err = tsi_jpeg_packer_row(m->packer, &b, 0);
	}
	return err;
}

/* Every byte of a record is as it was written, or ENOTSUP. */
static int check_all(const uint8_t *data, size_t len)
{
	struct tsi_jpeg_packed p;
	int err = tsi_jpeg_packed_open(&p, data, len, false);

	for (uint32_t y = 0; !err && y < p.frame.mcus_down; y++)
		err = tsi_jpeg_packed_check(&p, y, false);
	return err ? TSOCK_ENOTSUP : 0;
}

int tsi_record_pack(struct tsi_record_maker *m, const uint8_t *data, size_t len,
		    const uint8_t **record, size_t *record_len)
{
	struct tsi_jpeg_frame frame;
	int err;

	if (tsi_jpeg_packed_claims(data, len)) {
		*record = data;
		*record_len = len;
		return check_all(data, len);
	}
	if (!is_small_jpeg(m, data, len))
		return TSOCK_ENOTSUP;
	err = pack_direct(m, data, len);
	if (err == TSOCK_ENOTSUP) {
		err = tsi_jpeg_whole_open(m->whole, data, len, &frame);
		if (!err)
			err = pack_rows(m, &frame);
		tsi_jpeg_whole_close(m->whole);
	}
	if (!err)
		*record = tsi_jpeg_packer_end(m->packer, record_len);
	return err;
}

/* Decode all rows of a JPEG: nobody looks at the pixels, so small. */
static int decode_all(struct tsi_decoder *d, const uint8_t *data, size_t len)
{
	struct tsi_rect rect = { 0 };
	struct tsi_strip strip;
	int err = d->ops->open(d, data, len, &rect.width, &rect.height);

	d->fast = 8;
	d->planes = false;
	rect.width = (rect.width + 7) / 8;
	rect.height = (rect.height + 7) / 8;
	if (!err)
		err = d->ops->begin(d, &rect);
	for (uint32_t y = 0; !err && y < rect.height; y += strip.rows)
		err = d->ops->read(d, &strip);
	d->ops->close(d);
	return err;
}

static bool is_record(const uint8_t *data, size_t len)
{
	return tsi_packed_ops.claims(data, len) ||
	       (len >= TSI_WRAPPED_HEAD && !memcmp(data, TSI_WRAPPED_MAGIC, 8));
}

int tsi_record_make(struct tsi_record_maker *m, const uint8_t *data, size_t len,
		    struct tsi_record *out)
{
	uint8_t head[TSI_WRAPPED_HEAD];
	const uint8_t *record = NULL;
	size_t record_len = 0;
	int err;

	out->packed = false;
	out->damaged = false;
	if (!len)
		return tsi_record_bad("the file is empty", out);
	if (is_record(data, len)) {
		out->packed = tsi_jpeg_packed_claims(data, len);
		return copy(NULL, 0, data, len, out);
	}
	err = tsi_record_pack(m, data, len, &record, &record_len);
	if (!err) {
		out->packed = true;
		return copy(NULL, 0, record, record_len, out);
	}
	if (err != TSOCK_ENOTSUP)
		return err;
	if (is_small_jpeg(m, data, len)) {
		err = decode_all(m->decoder, data, len);
		if (err == TSOCK_ENOMEM)
			return err;
		out->damaged = err != 0;
	}
	tsi_wrapped_head(data, len, head);
	return copy(head, sizeof(head), data, len, out);
}
