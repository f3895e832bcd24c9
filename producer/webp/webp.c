/* SPDX-License-Identifier: MIT */
/*
 * webp.c - the one file of the producer that includes libwebp's headers.
 *
 * libwebp decodes a crop without what lies below it, but it interpolates
 * chroma at the crop's edges as if they were the image's: the crop that it
 * gets has a margin, and begins at an even place.  There is no way to have the
 * crop row by row: all of it is decoded at the first read.
 *
 * libwebp says that a file is damaged, and not where.  What is good of an image
 * from its first row on is found out by trying lower and lower crops.
 */
#include "webp/webp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "base/err.h"

/* How far the interpolation of chroma looks, rounded up to an even number. */
#define MARGIN 2u

/* Memory of libwebp's for an image: codes, and rows of macroblocks. */
#define CODES ((uint64_t)1 << 20)
#define ROW 128u /* bytes a pixel */

struct tsi_webp {
	struct tsi_decoder base;
	WebPDemuxer *demux;
	WebPIterator frame; /* the first one: frame.width 0 if it isn't there */
	bool lossless, alpha;
	uint32_t width, height;
	struct tsi_rect rect;
	struct tsi_rect area; /* what pixels has: rect, and libwebp's margin */
	bool decoded;
	uint32_t next; /* row of rect to give */
	uint32_t good; /* rows that could be decoded, after damage */
	uint8_t *pixels;
	size_t pixels_len;
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void drop(struct tsi_webp *p)
{
	if (p->demux)
		WebPDemuxReleaseIterator(&p->frame);
	WebPDemuxDelete(p->demux);
	p->demux = NULL;
	memset(&p->frame, 0, sizeof(p->frame));
	if (p->pixels_len > TSI_SCRATCH_KEEP) {
		free(p->pixels);
		p->pixels = NULL;
		p->pixels_len = 0;
	}
}

static int out_of_memory(void)
{
	return tsi_err(TSOCK_ENOMEM, "no memory to decode a WebP");
}

/* ---- a crop ---- */

/* From where to where libwebp decodes, on one axis of the frame. */
struct span {
	uint32_t from, to;
};

/* The pixels [from, to) of an axis with n, and the margin. */
static struct span with_margin(uint32_t from, uint32_t to, uint32_t n)
{
	from = from > MARGIN ? (from - MARGIN) & ~1u : 0;
	to = n - to > MARGIN ? to + MARGIN : n;
	return (struct span){ from, to };
}

/* The part of [from, to) that is in the frame, in the frame's numbers. */
static struct span in_frame(uint32_t from, uint32_t to, int offset, int n)
{
	uint32_t begin = (uint32_t)offset, end = begin + (uint32_t)n;

	from = most(from, begin);
	to = least(to, end);
	if (from >= to)
		return (struct span){ 0, 0 };
	return with_margin(from - begin, to - begin, (uint32_t)n);
}

static int reserve(struct tsi_webp *p, size_t len)
{
	if (len <= p->pixels_len)
		return 0;
	free(p->pixels);
	p->pixels_len = 0;
	p->pixels = malloc(len);
	if (!p->pixels)
		return out_of_memory();
	p->pixels_len = len;
	return 0;
}

/* Set the area of the pixels, which holds the rectangle and the crop. */
static void set_area(struct tsi_webp *p, const struct tsi_rect *rect,
		     struct span x, struct span y)
{
	uint32_t dx = (uint32_t)p->frame.x_offset;
	uint32_t dy = (uint32_t)p->frame.y_offset;

	p->area = *rect;
	if (x.from == x.to || y.from == y.to)
		return;
	p->area.left = least(rect->left, dx + x.from);
	p->area.top = least(rect->top, dy + y.from);
	p->area.width =
		most(rect->left + rect->width, dx + x.to) - p->area.left;
	p->area.height =
		most(rect->top + rect->height, dy + y.to) - p->area.top;
}

static size_t stride_of(const struct tsi_webp *p)
{
	return (size_t)p->area.width * 4;
}

static bool frame_covers(const struct tsi_webp *p)
{
	return (uint32_t)p->frame.width == p->width &&
	       (uint32_t)p->frame.height == p->height;
}

/* The crop [x, y] of the frame, to its place among the pixels. */
static VP8StatusCode decode_crop(struct tsi_webp *p, struct span x,
				 struct span y)
{
	size_t left = (uint32_t)p->frame.x_offset + x.from - p->area.left;
	size_t top = (uint32_t)p->frame.y_offset + y.from - p->area.top;
	size_t at = top * stride_of(p) + left * 4;
	WebPDecoderConfig c;

	if (!WebPInitDecoderConfig(&c))
		return VP8_STATUS_INVALID_PARAM;
	c.options.use_cropping = 1;
	c.options.crop_left = (int)x.from;
	c.options.crop_top = (int)y.from;
	c.options.crop_width = (int)(x.to - x.from);
	c.options.crop_height = (int)(y.to - y.from);
	c.output.colorspace = MODE_RGBA;
	c.output.is_external_memory = 1;
	c.output.u.RGBA.rgba = p->pixels + at;
	c.output.u.RGBA.stride = (int)stride_of(p);
	c.output.u.RGBA.size = p->pixels_len - at;
	return WebPDecode(p->frame.fragment.bytes, p->frame.fragment.size, &c);
}

/* Decode the rectangle, and with it the area around it. */
static int decode(struct tsi_webp *p, const struct tsi_rect *r)
{
	struct span x = in_frame(r->left, r->left + r->width, p->frame.x_offset,
				 p->frame.width);
	struct span y = in_frame(r->top, r->top + r->height, p->frame.y_offset,
				 p->frame.height);
	VP8StatusCode status = VP8_STATUS_OK;
	size_t bytes;

	set_area(p, r, x, y);
	bytes = p->area.height * stride_of(p);
	if (reserve(p, bytes + TSI_ROW_SLACK))
		return TSOCK_ENOMEM;
	if (!frame_covers(p))
		memset(p->pixels, 0, bytes);
	if (x.from < x.to && y.from < y.to)
		status = decode_crop(p, x, y);
	if (status == VP8_STATUS_OUT_OF_MEMORY)
		return out_of_memory();
	if (status)
		return tsi_err(TSOCK_EDATA, "bad WebP: %s",
			       status == VP8_STATUS_NOT_ENOUGH_DATA ||
					       status == VP8_STATUS_SUSPENDED
				       ? "its image is truncated"
				       : "its image is damaged");
	return 0;
}

/* Of a damaged image, the rows that can be decoded without those below. */
static int count_good(struct tsi_webp *p)
{
	uint32_t good = 0, bad = p->rect.height;
	struct tsi_rect r = p->rect;

	while (bad - good > 1) {
		int err;

		r.height = good + (bad - good) / 2;
		err = decode(p, &r);
		if (err == TSOCK_ENOMEM)
			return err;
		if (err)
			bad = r.height;
		else
			good = r.height;
	}
	p->good = good;
	return decode(p, &p->rect);
}

/* ------------------------------------------------------------------------
 * The operations of decoder.h
 */

static struct tsi_webp *webp_of(struct tsi_decoder *d)
{
	return (struct tsi_webp *)d;
}

static int decoder_create(struct tsi_decoder **out)
{
	struct tsi_webp *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a WebP decoder");
	p->base.ops = &tsi_webp_ops;
	*out = &p->base;
	return 0;
}

static void decoder_destroy(struct tsi_decoder *d)
{
	struct tsi_webp *p = webp_of(d);

	if (!p)
		return;
	drop(p);
	free(p->pixels);
	free(p);
}

/* The container is whole; what is its first frame like? */
static int open_frame(struct tsi_webp *p)
{
	WebPBitstreamFeatures f;

	if (!WebPDemuxGetFrame(p->demux, 1, &p->frame))
		return tsi_err(TSOCK_EDATA,
			       "bad WebP: there is no image in it");
	if (WebPGetFeatures(p->frame.fragment.bytes, p->frame.fragment.size,
			    &f))
		return tsi_err(TSOCK_EDATA, "bad WebP: its image is damaged");
	p->lossless = f.format == 2;
	p->alpha = f.has_alpha;
	return 0;
}

static int decoder_open(struct tsi_decoder *d, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	struct tsi_webp *p = webp_of(d);
	WebPData file = { data, len };

	drop(p);
	p->demux = WebPDemux(&file);
	if (!p->demux)
		return tsi_err(TSOCK_EDATA,
			       "bad WebP: truncated, or its parts don't fit "
			       "together");
	p->width = WebPDemuxGetI(p->demux, WEBP_FF_CANVAS_WIDTH);
	p->height = WebPDemuxGetI(p->demux, WEBP_FF_CANVAS_HEIGHT);
	*width = p->width;
	*height = p->height;
	return open_frame(p);
}

/*
 * The pixels, and what libwebp has: all pixels of a lossless image or of a
 * compressed alpha channel, with alpha itself, else some rows.  A lossless image
 * has tables of codes as well, up to 65536 times 20 KB in one that is made for
 * that, and a few hundred where an encoder chooses how many: those.
 */
static uint64_t decoder_need(struct tsi_decoder *d)
{
	const struct tsi_webp *p = webp_of(d);
	uint64_t pixels = (uint64_t)p->width * p->height;
	uint64_t bytes = 4 * pixels + ROW * (uint64_t)p->width + CODES;

	if (p->lossless)
		return bytes + 4 * pixels + 4 * CODES;
	return bytes + (p->alpha ? 5 * pixels + CODES : 0);
}

static int decoder_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct tsi_webp *p = webp_of(d);

	p->rect = *rect;
	p->next = 0;
	p->good = 0;
	p->decoded = false;
	return 0;
}

static int decode_all(struct tsi_webp *p)
{
	int err = decode(p, &p->rect);

	if (err == TSOCK_EDATA && p->rect.top == 0)
		err = count_good(p);
	p->decoded = !err;
	return err;
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct tsi_webp *p = webp_of(d);
	int err = p->decoded ? 0 : decode_all(p);
	size_t row = p->rect.top - p->area.top + p->next;
	size_t left = p->rect.left - p->area.left;

	if (err)
		return err;
	*strip = (struct tsi_strip){
		.pixels = p->pixels + row * stride_of(p) + left * 4,
		.stride = stride_of(p),
		.rows = least(TSI_STRIP_ROWS, p->rect.height - p->next),
	};
	p->next += strip->rows;
	return 0;
}

static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	const struct tsi_webp *p = (const struct tsi_webp *)d;

	return p->decoded ? p->next : p->good;
}

static void decoder_close(struct tsi_decoder *d)
{
	drop(webp_of(d));
}

const struct tsi_decoder_ops tsi_webp_ops = {
	.name = "WebP",
	.extensions = TSI_WEBP_EXTENSIONS,
	.claims = tsi_webp_claims,
	.head = tsi_webp_head,
	.create = decoder_create,
	.destroy = decoder_destroy,
	.open = decoder_open,
	.need = decoder_need,
	.begin = decoder_begin,
	.read = decoder_read,
	.rows = decoder_rows,
	.close = decoder_close,
};

const char *tsi_webp_version(void)
{
	static _Thread_local char text[16];
	int v = WebPGetDecoderVersion();

	snprintf(text, sizeof(text), "%d.%d.%d", v >> 16, v >> 8 & 255,
		 v & 255);
	return text;
}
