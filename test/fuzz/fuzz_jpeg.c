/* SPDX-License-Identifier: MIT */
/*
 * fuzz_jpeg.c - of any bytes our JPEG decoder makes the pixels or the failure
 * that libjpeg makes of them, rectangle by rectangle, from the file's beginning
 * or from an index, exact or fast, at any size, and from the packed form.  A
 * rectangle of a file that Pillow refuses fails, unless what is the matter lies
 * below its last row.
 *
 * An input is a file with TRAILER bytes behind it that choose the rectangles.
 */
#include "corpus.h"
#include "pixel/image.h"
#include "jpeg/jpeg.h"
#include "jpeg/index.h"
#include "packed/decoder.h"
#include "packed/record.h"
#include "test/lib/image_gen.h"
#include "test/lib/jpeg_plain.h"
#include "tsock/tsock.h"

#define TRAILER 27
#define PIXELS_MAX (1u << 16)

static struct tsi_decoder *decoder, *packed;
static struct tsi_record_maker *maker;

/* ---- seeds ---- */

/* Every third is whole; others have a marker, or rubbish, in their data. */
static void damage(struct image_gen_bytes *f, unsigned i)
{
	uint64_t r = i;
	size_t n = i % 3 == 1 ? 2 : 64, at;

	if (i % 3 == 0 || f->len < 800)
		return;
	at = f->len - n - image_gen_random(&r) % (f->len - 700);
	for (size_t k = 0; k < n; k++)
		f->data[at + k] = (uint8_t)image_gen_random(&r);
	f->data[at] = 0xff;
}

static void seed(const char *folder, unsigned i)
{
	static const int luma[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 } };
	struct image_gen_jpeg g = {
		.width = 9 + i * 11 % 120,
		.height = 9 + i * 17 % 100,
		.components = i % 5 == 4 ? 1 : 3,
		.optimize = i / 2 % 2,
		.restart_rows = i % 11 == 10,
		.progressive = i % 13 == 12,
		.arithmetic = i % 14 == 12 && !(i / 2 % 2),
		.quality = 10 + (int)(i * 9 % 91),
		.seed = i,
	};
	struct image_gen_bytes f;
	uint8_t *bytes;
	char name[32];

	g.factor[0][0] = luma[i % 4][0];
	g.factor[0][1] = luma[i % 4][1];
	f = image_gen_jpeg(&g);
	damage(&f, i / 4);
	bytes = calloc(1, f.len + TRAILER);
	never(!bytes);
	memcpy(bytes, f.data, f.len);
	for (unsigned k = 0; k < TRAILER; k++)
		bytes[f.len + k] = (uint8_t)(i * 37 + k * 101);
	snprintf(name, sizeof(name), "jpeg-%u", i);
	corpus_put(folder, name, bytes, f.len + TRAILER);
	free(bytes);
	free(f.data);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flag[] = { "-rss_limit_mb=2048", "-timeout=60",
					    "-max_len=16384" };
	const char *folder = corpus_folder(*argc, *argv);

	for (unsigned i = 0; folder && i < 120; i++)
		seed(folder, i);
	corpus_limits(argc, argv, flag, 3);
	return 0;
}

/* ---- the test ---- */

/* The rectangle's pixels in 3 bytes each. */
static int decode(struct tsi_decoder *d, const struct tsi_decoder_hint *hint,
		  const uint8_t *data, size_t len, const struct tsi_rect *r,
		  bool planes, uint8_t *out)
{
	uint32_t w, h, y = 0;
	struct tsi_strip s;
	int err;

	d->ops->hint(d, hint);
	err = d->ops->open(d, data, len, &w, &h);
	d->planes = planes && d->has_planes;
	if (!err)
		err = d->ops->begin(d, r);
	for (; !err && y < r->height; y += s.rows) {
		err = d->ops->read(d, &s);
		for (uint32_t i = 0; !err && i < s.rows * r->width * 3; i++) {
			uint32_t x = i / 3 % r->width, c = i % 3;
			const uint8_t *row =
				s.pixels + i / 3 / r->width * s.stride;

			out[(size_t)y * r->width * 3 + i] =
				s.plane ? row[x + c * s.plane] : row[4 * x + c];
		}
	}
	d->ops->close(d);
	return err;
}

static struct tsi_rect choose(struct bytes *b, uint32_t w, uint32_t h)
{
	struct tsi_rect r = { .left = (uint32_t)take(b, 2) % w,
			      .top = (uint32_t)take(b, 2) % h };

	r.width = 1 + (uint32_t)take(b, 2) % (w - r.left);
	r.height = 1 + (uint32_t)take(b, 2) % (h - r.top);
	return r;
}

/* 0, 1, 2, 4 or 8, and the rectangle in an image that is so much smaller. */
static struct tsi_rect choose_size(struct bytes *b, uint32_t w, uint32_t h)
{
	uint32_t n = (1u << take(b, 1) % 5) / 2;

	decoder->fast = n;
	if (!n)
		n = 1;
	return choose(b, (w + n - 1) / n, (h + n - 1) / n);
}

/* Is it what libjpeg makes of the file when it decodes all of it? */
static void compare_plain(const uint8_t *data, size_t len,
			  const struct tsi_rect *r, int err, const uint8_t *got)
{
	struct jpeg_plain p;

	never(!jpeg_plain_read(data, len, decoder->fast, &p));
	if (p.many)
		return;
	never(!err != (r->top + r->height <= p.rows));
	for (uint32_t y = 0; !err && y < r->height; y++)
		never(memcmp(
			got + (size_t)y * r->width * 3,
			p.rgb + ((size_t)(r->top + y) * p.width + r->left) * 3,
			(size_t)r->width * 3));
	free(p.rgb);
}

/* What is packed fails nowhere. */
static void compare_packed(const uint8_t *data, size_t len,
			   const struct tsi_rect *r, int err,
			   const uint8_t *want, uint8_t *out)
{
	struct tsi_decoder_hint hint = { .trusted = true };
	const uint8_t *record;
	size_t n;

	packed->fast = decoder->fast;
	if (tsi_record_pack(maker, data, len, &record, &n))
		return;
	never(err);
	never(decode(packed, &hint, record, n, r, r->left % 2, out));
	never(memcmp(out, want, (size_t)r->width * r->height * 3));
}

static void compare_decoders(struct tsi_jpeg_index *x, const uint8_t *data,
			     size_t len, const struct tsi_rect *r)
{
	static const struct tsi_image_opts by_lib = { .stock_jpeg = true };
	struct tsi_decoder_hint stock = { .opts = &by_lib };
	const struct tsi_image_opts opts = { .jpeg_index = x };
	struct tsi_decoder_hint own = { .opts = &opts };
	size_t n = (size_t)r->width * r->height * 3;
	uint8_t *a = calloc(1, n), *b = calloc(1, n);
	int err;

	never(!a || !b);
	err = decode(decoder, &stock, data, len, r, false, a);
	never(decode(decoder, &own, data, len, r, r->top % 2, b) != err);
	never(!err && memcmp(a, b, n));
	compare_plain(data, len, r, err, a);
	compare_packed(data, len, r, err, a, b);
	free(a);
	free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tsi_image_opts by_lib = { .stock_jpeg = true };
	struct tsi_decoder_hint stock = { .opts = &by_lib };
	struct tsi_jpeg_index *x;
	struct bytes b;
	uint32_t w = 0, h = 0;
	size_t len;
	uint8_t *copy;
	int err;

	if (size < TRAILER)
		return 0;
	len = size - TRAILER;
	b = (struct bytes){ data + len, TRAILER };
	copy = malloc(len ? len : 1);
	never(!copy);
	memcpy(copy, data, len);
	if (!decoder)
		never(tsi_jpeg_ops.create(&decoder) ||
		      tsi_packed_ops.create(&packed) ||
		      tsi_record_maker_create(64 << 20, &maker));
	tsi_jpeg_ops.hint(decoder, &stock);
	err = tsi_jpeg_ops.open(decoder, copy, len, &w, &h);
	tsi_jpeg_ops.close(decoder);
	if (!err && w && h && (uint64_t)w * h <= PIXELS_MAX) {
		never(tsi_jpeg_index_create(1, 1 << 20, &x));
		for (int i = 0; i < 3; i++) {
			struct tsi_rect r = choose_size(&b, w, h);

			compare_decoders(x, copy, len, &r);
		}
		tsi_jpeg_index_destroy(x);
	}
	free(copy);
	return 0;
}
