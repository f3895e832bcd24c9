/* SPDX-License-Identifier: MIT */
/*
 * jpeg.c - the operations of a JPEG decoder: which of two decoders has a file.
 *
 * Files that direct.h takes are decoded without libjpeg, as far as they
 * are undamaged; all else is libjpeg's (turbo.h).
 */
#include "jpeg/jpeg.h"

#include <stdlib.h>

#include "base/err.h"
#include "pixel/image.h"
#include "jpeg/direct.h"
#include "jpeg/turbo.h"

struct tsi_jpeg {
	struct tsi_decoder base;
	struct tsi_jpeg_direct *direct;
	struct tsi_jpeg_turbo *turbo;
	/* What is known of the next image; then the image, and whether libjpeg
	 * has it. */
	struct tsi_decoder_hint hint;
	bool by_lib;
	const void *data;
	size_t len;
	uint32_t width;
	struct tsi_rect rect;
};

static struct tsi_jpeg *jpeg_of(struct tsi_decoder *d)
{
	return (struct tsi_jpeg *)d;
}

static void decoder_close(struct tsi_decoder *d)
{
	struct tsi_jpeg *j = jpeg_of(d);

	tsi_jpeg_direct_close(j->direct);
	tsi_jpeg_turbo_close(j->turbo);
}

static void decoder_destroy(struct tsi_decoder *d)
{
	struct tsi_jpeg *j = jpeg_of(d);

	if (!j)
		return;
	tsi_jpeg_direct_destroy(j->direct);
	tsi_jpeg_turbo_destroy(j->turbo);
	free(j);
}

static int decoder_create(struct tsi_decoder **out)
{
	struct tsi_jpeg *j = calloc(1, sizeof(*j));
	int err;

	if (!j)
		return tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
	j->base.ops = &tsi_jpeg_ops;
	err = tsi_jpeg_turbo_create(&j->turbo);
	if (!err)
		err = tsi_jpeg_direct_create(TSI_SIMD_BEST, &j->direct);
	if (err) {
		decoder_destroy(&j->base);
		return err;
	}
	*out = &j->base;
	return 0;
}

static void decoder_hint(struct tsi_decoder *d,
			 const struct tsi_decoder_hint *hint)
{
	jpeg_of(d)->hint = *hint;
}

static int begin_lib(struct tsi_jpeg *j, const struct tsi_rect *rect)
{
	return tsi_jpeg_turbo_begin(j->turbo, rect, j->base.fast,
				    j->base.planes);
}

/* libjpeg is to decode what the other decoder hasn't given. */
static int go_over(struct tsi_jpeg *j)
{
	uint32_t given = tsi_jpeg_direct_rows(j->direct);
	struct tsi_rect rest = j->rect;
	uint32_t width, height;
	int err =
		tsi_jpeg_turbo_open(j->turbo, j->data, j->len, &width, &height);

	tsi_jpeg_direct_close(j->direct);
	j->by_lib = true;
	rest.top += given;
	rest.height -= given;
	return err ? err : begin_lib(j, &rest);
}

/* Scalar kernels are there for tests: libjpeg has code for SSE2. */
static bool direct_pays(void)
{
	return tsi_simd_best() != TSI_SIMD_SCALAR;
}

static int decoder_open(struct tsi_decoder *d, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	struct tsi_jpeg *j = jpeg_of(d);
	struct tsi_decoder_hint hint = j->hint;

	decoder_close(d);
	j->hint = (struct tsi_decoder_hint){ 0 };
	j->data = data;
	j->len = len;
	j->base.has_planes = false;
	j->by_lib = (hint.opts && hint.opts->stock_jpeg) || !direct_pays() ||
		    !tsi_jpeg_direct_open(j->direct, data, len, &hint, width,
					  height);
	if (j->by_lib)
		return tsi_jpeg_turbo_open(j->turbo, data, len, width, height);
	j->base.has_planes = tsi_jpeg_direct_has_planes(j->direct);
	j->width = *width;
	return 0;
}

static uint64_t decoder_need(struct tsi_decoder *d)
{
	struct tsi_jpeg *j = jpeg_of(d);

	if (j->by_lib)
		return tsi_jpeg_turbo_need(j->turbo);
	/* libjpeg may come after it. */
	return tsi_jpeg_direct_need(j->direct) +
	       tsi_jpeg_turbo_strip_need(j->width);
}

static int decoder_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct tsi_jpeg *j = jpeg_of(d);
	int err;

	j->rect = *rect;
	if (j->by_lib)
		return begin_lib(j, rect);
	err = tsi_jpeg_direct_begin(j->direct, rect, j->base.fast,
				    j->base.planes);
	return err == TSOCK_ENOTSUP ? go_over(j) : err;
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct tsi_jpeg *j = jpeg_of(d);
	int err;

	if (j->by_lib)
		return tsi_jpeg_turbo_read(j->turbo, strip);
	err = tsi_jpeg_direct_read(j->direct, strip);
	if (err != TSOCK_ENOTSUP)
		return err;
	err = go_over(j);
	return err ? err : tsi_jpeg_turbo_read(j->turbo, strip);
}

static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	const struct tsi_jpeg *j = (const struct tsi_jpeg *)d;

	return j->by_lib ? tsi_jpeg_turbo_rows(j->turbo)
			 : tsi_jpeg_direct_rows(j->direct);
}

const struct tsi_decoder_ops tsi_jpeg_ops = {
	.name = "JPEG",
	.shrinks = true,
	.claims = tsi_jpeg_claims,
	.head = tsi_jpeg_head,
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
