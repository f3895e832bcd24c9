/* SPDX-License-Identifier: MIT */
/*
 * fuzz_packed.c - any bytes are a packed image whose blocks can be expanded and
 * whose pixels can be made, or are refused; the same blocks by each kernel.
 *
 * With the first bit set all sums are put right: they only keep what is wrong
 * from being looked at.
 */
#include "base/hash.h"
#include "corpus.h"
#include "packed/blocks.h"
#include "packed/layout.h"
#include "packed/decoder.h"
#include "packed/expand.h"
#include "tsock/tsock.h"

#define PIXELS 400000u

static struct tsi_decoder *decoder;

/* 20 x 9 pixels, two components subsampled, a few coefficients. */
static void seed(const char *folder)
{
	struct tsi_jpeg_frame f = { .width = 20,
				    .height = 9,
				    .mcus_across = 2,
				    .mcus_down = 1,
				    .h_max = 2,
				    .v_max = 2,
				    .comps = 3,
				    .color = TSI_JPEG_YCC };
	static int16_t coef[12][64] __attribute__((aligned(64)));
	struct tsi_jpeg_blocks b = { .area = { 0, 0, 2, 1 } };
	struct tsi_jpeg_packer *p;
	const uint8_t *data;
	uint8_t *copy;
	size_t len;

	for (unsigned k = 0; k < 3; k++) {
		f.comp[k].h = f.comp[k].v = k ? 1 : 2;
		for (unsigned i = 0; i < 64; i++)
			f.comp[k].quant[i] = (uint16_t)(3 + i);
		b.coef[k] = coef + (k ? 6 + 2 * k : 0);
		b.stride[k] = k ? 2 : 4;
	}
	for (unsigned i = 0; i < 12 * 64; i += 5)
		coef[i / 64][i % 64] = (int16_t)(i * 37 % 300 - 150);
	never(tsi_jpeg_packer_create(&p));
	never(tsi_jpeg_packer_begin(p, &f));
	never(tsi_jpeg_packer_row(p, &b, 0));
	data = tsi_jpeg_packer_end(p, &len);
	copy = malloc(len + 1);
	never(!copy);
	copy[0] = 1;
	memcpy(copy + 1, data, len);
	corpus_put(folder, "record", copy, len + 1);
	free(copy);
	tsi_jpeg_packer_destroy(p);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = corpus_folder(*argc, *argv);

	never(tsi_packed_create(TSI_SIMD_BEST, &decoder));
	if (folder)
		seed(folder);
	return 0;
}

static void mend(uint8_t *d, size_t len)
{
	uint32_t bytes = (uint32_t)len;
	struct tsi_jpeg_packed p;
	uint64_t sum;

	if (len < TSI_PACKED_QUANT)
		return;
	memcpy(d + TSI_PACKED_BYTES, &bytes, 4);
	if (tsi_jpeg_packed_open(&p, d, len, true))
		return;
	for (uint32_t y = 0; y < p.frame.mcus_down; y++) {
		uint8_t *at = d + p.index + 8 * (size_t)y;
		uint32_t from = (uint32_t)p.first, end, low;

		memcpy(&end, at, 4);
		if (y)
			memcpy(&from, at - 8, 4);
		if (from > end || end > len)
			continue;
		low = (uint32_t)tsi_hash(d + from, end - from, 0);
		memcpy(at + 4, &low, 4);
	}
	sum = tsi_packed_head_sum(d, p.first);
	memcpy(d + TSI_PACKED_SUM, &sum, 8);
}

static void take_blocks(const struct tsi_jpeg_packed *p,
			const struct tsi_jpeg_area *a,
			struct tsi_jpeg_blocks *b)
{
	b->area = *a;
	for (unsigned k = 0; k < p->frame.comps; k++) {
		const struct tsi_jpeg_comp *c = &p->frame.comp[k];
		size_t n = (size_t)a->across * c->h * c->v;

		b->stride[k] = a->across * c->h;
		b->coef[k] = aligned_alloc(64, n * 128);
		b->last[k] = malloc(n);
		never(!b->coef[k] || !b->last[k]);
	}
}

static void compare(const struct tsi_jpeg_packed *p, uint32_t row, uint8_t how)
{
	struct tsi_jpeg_area a = { .across = p->frame.mcus_across };
	struct tsi_jpeg_blocks b[TSI_SIMD_LEVELS] = { 0 };

	a.left = how % a.across;
	a.across -= a.left;
	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++) {
		struct tsi_expand_kernel expand;

		tsi_expand_kernel_init(&expand, l);
		take_blocks(p, &a, &b[l]);
		tsi_jpeg_packed_row(p, row, &expand, &b[l]);
	}
	for (unsigned i = 0; i < TSI_SIMD_LEVELS; i++)
		for (unsigned k = 0; b[i].coef[0] && k < p->frame.comps; k++) {
			size_t n = (size_t)b[i].stride[k] * p->frame.comp[k].v;

			never(memcmp(b[i].coef[k], b[0].coef[k], n * 128));
			never(memcmp(b[i].last[k], b[0].last[k], n));
		}
	for (unsigned i = 0; i < TSI_SIMD_LEVELS; i++)
		for (unsigned k = 0; k < 3; k++) {
			free(b[i].coef[k]);
			free(b[i].last[k]);
		}
}

static void decode(const uint8_t *data, size_t len, uint8_t how)
{
	struct tsi_strip strip;
	struct tsi_rect r;
	uint32_t w, h, rows = 0;
	int err = decoder->ops->open(decoder, data, len, &w, &h);

	never(err && err != TSOCK_EDATA);
	if (!err && (uint64_t)w * h <= PIXELS) {
		r.left = how % w;
		r.top = how % h;
		r.width = w - r.left;
		r.height = h - r.top;
		decoder->planes = how & 1 && decoder->has_planes;
		err = decoder->ops->begin(decoder, &r);
		while (!err && rows < r.height) {
			err = decoder->ops->read(decoder, &strip);
			rows += err ? 0 : strip.rows;
		}
		never(err && err != TSOCK_EDATA);
		never(decoder->ops->rows(decoder) != rows);
	}
	decoder->ops->close(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tsi_jpeg_packed p;
	uint8_t *d;

	if (size < 2)
		return 0;
	d = malloc(size - 1);
	never(!d);
	memcpy(d, data + 1, size - 1);
	if (data[0] & 1)
		mend(d, size - 1);
	if (!tsi_jpeg_packed_open(&p, d, size - 1, false) &&
	    (uint64_t)p.frame.width * p.frame.height <= PIXELS)
		for (uint32_t y = 0; y < p.frame.mcus_down; y++)
			if (!tsi_jpeg_packed_check(&p, y, false))
				compare(&p, y, data[0] >> 1);
	decode(d, size - 1, data[0] >> 1);
	free(d);
	return 0;
}
