/* SPDX-License-Identifier: MIT */
/*
 * avif.c - the one file of the producer that includes libavif's header.
 *
 * libavif decodes whole images: all of one is decoded at the first read, by the
 * calling thread alone, and the rows of the rectangle are given from it.  So
 * that the colours are Pillow's, libavif converts to what Pillow asks for:
 * three bytes a pixel, or four where there is transparency.  libavif's faster
 * conversion, by libyuv, rounds each of them in its own way.
 *
 * A header of a few bytes can lie about the images in the file: none may have
 * more pixels than the file's head says, or than SMALL.
 */
#include "avif/decoder.h"

#include <stdlib.h>
#include <string.h>

#include <avif/avif.h>

#include "base/err.h"

/* Pixels of an image that is decoded whatever the head says. */
#define SMALL (UINT32_C(1) << 20)

/*
 * Memory of libavif's and of its decoder's for a pixel, beside the pixel
 * itself, and for an image.
 */
#define DEEP 8u
#define FLAT 4u
#define ALPHA 4u
#define STATE ((uint64_t)8 << 20)

struct tsi_avif {
	struct tsi_decoder base;
	avifDecoder *avif; /* of the image at hand, until it is decoded */
	uint32_t width, height;
	uint32_t bytes; /* of a pixel: 3, or 4 with alpha */
	bool deep, decoded;
	struct tsi_rect rect;
	uint32_t next;   /* row of rect to give */
	uint8_t *pixels; /* the whole image's */
	size_t pixels_len;
	uint8_t *strip;
	size_t strip_len;
};

static struct tsi_avif *avif_of(struct tsi_decoder *d)
{
	return (struct tsi_avif *)d;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void trim(uint8_t **p, size_t *len)
{
	if (*len <= TSI_SCRATCH_KEEP)
		return;
	free(*p);
	*p = NULL;
	*len = 0;
}

static int reserve(uint8_t **p, size_t *have, size_t len)
{
	if (len <= *have)
		return 0;
	free(*p);
	*have = 0;
	*p = malloc(len);
	if (!*p)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode an AVIF");
	*have = len;
	return 0;
}

static void drop(struct tsi_avif *p)
{
	if (p->avif)
		avifDecoderDestroy(p->avif);
	p->avif = NULL;
}

/* What libavif says of a file, as an error of ours. */
static int failed(avifResult r)
{
	if (r == AVIF_RESULT_OUT_OF_MEMORY)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode an AVIF");
	if (r == AVIF_RESULT_TRUNCATED_DATA)
		return tsi_err(TSOCK_EDATA, "bad AVIF: truncated");
	return tsi_err(TSOCK_EDATA, "bad AVIF: libavif says %s",
		       avifResultToString(r));
}

/* ------------------------------------------------------------------------
 * The operations of decoder.h
 */

static int decoder_create(struct tsi_decoder **out)
{
	struct tsi_avif *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for an AVIF decoder");
	p->base.ops = &tsi_avif_ops;
	*out = &p->base;
	return 0;
}

static void decoder_destroy(struct tsi_decoder *d)
{
	struct tsi_avif *p = avif_of(d);

	if (!p)
		return;
	drop(p);
	free(p->pixels);
	free(p->strip);
	free(p);
}

/* libavif's decoder of a file, with the limits that the head sets. */
static int open_file(struct tsi_avif *p, const void *data, size_t len)
{
	avifResult r;

	p->avif = avifDecoderCreate();
	if (!p->avif)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode an AVIF");
	p->avif->maxThreads = 1;
	p->avif->strictFlags = AVIF_STRICT_DISABLED;
	p->avif->ignoreExif = AVIF_TRUE;
	p->avif->ignoreXMP = AVIF_TRUE;
	p->avif->imageSizeLimit = most(p->width * p->height, SMALL);
	r = avifDecoderSetIOMemory(p->avif, data, len);
	if (!r)
		r = avifDecoderParse(p->avif);
	return r ? failed(r) : 0;
}

static int decoder_open(struct tsi_decoder *d, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	struct tsi_avif *p = avif_of(d);
	int err = tsi_avif_head(data, len, &p->width, &p->height);

	drop(p);
	p->decoded = false;
	if (err == TSOCK_EAGAIN)
		return tsi_err(TSOCK_EDATA,
			       "bad AVIF: truncated before its size");
	if (!err &&
	    (uint64_t)p->width * p->height > AVIF_DEFAULT_IMAGE_SIZE_LIMIT)
		return tsi_err(TSOCK_EDATA,
			       "bad AVIF: %u x %u pixels are more than libavif "
			       "decodes",
			       p->width, p->height);
	if (!err)
		err = open_file(p, data, len);
	if (err)
		return err;
	p->bytes = p->avif->alphaPresent ? 4 : 3;
	p->deep = p->avif->image->depth > 8;
	/* What was opened is what was looked at, or load.c refuses it. */
	p->width = *width = p->avif->image->width;
	p->height = *height = p->avif->image->height;
	return 0;
}

static size_t stride_of(const struct tsi_avif *p)
{
	return (size_t)p->width * p->bytes;
}

static size_t strip_bytes(uint32_t width)
{
	return (size_t)TSI_STRIP_ROWS * width * 4 + TSI_ROW_SLACK;
}

/*
 * The pixels, a strip of them, the planes that they are converted from, and the
 * decoder's own, with what it knows of each block.
 */
static uint64_t decoder_need(struct tsi_decoder *d)
{
	const struct tsi_avif *p = avif_of(d);
	uint64_t pixel = p->bytes + (p->deep ? DEEP : FLAT) +
			 (p->bytes == 4 ? ALPHA : 0);

	return pixel * p->width * p->height + strip_bytes(p->width) + STATE;
}

static int decoder_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct tsi_avif *p = avif_of(d);

	p->rect = *rect;
	p->next = 0;
	return 0;
}

static int decode(struct tsi_avif *p)
{
	avifRGBImage rgb;
	avifResult r;
	int err = reserve(&p->pixels, &p->pixels_len,
			  stride_of(p) * p->height + TSI_ROW_SLACK);

	if (!err)
		err = reserve(&p->strip, &p->strip_len,
			      strip_bytes(p->rect.width));
	if (err)
		return err;
	r = avifDecoderNthImage(p->avif, 0);
	if (r)
		return failed(r);
	avifRGBImageSetDefaults(&rgb, p->avif->image);
	rgb.depth = 8;
	rgb.format = p->bytes == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
	rgb.pixels = p->pixels;
	rgb.rowBytes = (uint32_t)stride_of(p);
	if (rgb.width != p->width || rgb.height != p->height)
		return tsi_err(TSOCK_EDATA,
			       "bad AVIF: its image has another size than its "
			       "head says");
	r = avifImageYUVToRGB(p->avif->image, &rgb);
	if (r)
		return failed(r);
	drop(p);
	p->decoded = true;
	return 0;
}

/* Rows of three bytes a pixel become some of four. */
static void widen(const struct tsi_avif *p, const uint8_t *from, uint32_t rows)
{
	uint8_t *to = p->strip;

	for (uint32_t y = 0; y < rows; y++, from += stride_of(p))
		for (uint32_t x = 0; x < p->rect.width; x++, to += 4) {
			to[0] = from[3 * x];
			to[1] = from[3 * x + 1];
			to[2] = from[3 * x + 2];
			to[3] = 255;
		}
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct tsi_avif *p = avif_of(d);
	const uint8_t *from;
	int err = p->decoded ? 0 : decode(p);

	if (err)
		return err;
	from = p->pixels + (p->rect.top + p->next) * stride_of(p) +
	       (size_t)p->rect.left * p->bytes;
	*strip = (struct tsi_strip){
		.pixels = from,
		.stride = stride_of(p),
		.rows = least(TSI_STRIP_ROWS, p->rect.height - p->next),
	};
	if (p->bytes == 3) {
		widen(p, from, strip->rows);
		strip->pixels = p->strip;
		strip->stride = (size_t)p->rect.width * 4;
	}
	p->next += strip->rows;
	return 0;
}

/* Of a damaged image no row is good. */
static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	const struct tsi_avif *p = (const struct tsi_avif *)d;

	return p->decoded ? p->next : 0;
}

static void decoder_close(struct tsi_decoder *d)
{
	struct tsi_avif *p = avif_of(d);

	drop(p);
	p->decoded = false;
	trim(&p->pixels, &p->pixels_len);
	trim(&p->strip, &p->strip_len);
}

const struct tsi_decoder_ops tsi_avif_ops = {
	.name = "AVIF",
	.extensions = TSI_AVIF_EXTENSIONS,
	.claims = tsi_avif_claims,
	.head = tsi_avif_head,
	.create = decoder_create,
	.destroy = decoder_destroy,
	.open = decoder_open,
	.need = decoder_need,
	.begin = decoder_begin,
	.read = decoder_read,
	.rows = decoder_rows,
	.close = decoder_close,
};

const char *tsi_avif_version(void)
{
	return avifVersion();
}
