/* SPDX-License-Identifier: MIT */
/*
 * jpeg.c - the operations of a JPEG decoder: which columns and rows are decoded
 * and what the scans of a file may cost.
 *
 * Files that jpeg_direct.h takes are decoded without libjpeg, as far as they are
 * undamaged; all else is libjpeg's.
 *
 * One decompressor serves all images of a thread.  Its errors come back by
 * longjmp to the operations at the end.
 */
#include "image/jpeg.h"

#include <stdlib.h>

#include "base/err.h"
#include "image/image.h"
#include "image/jpeg_direct.h"
#include "image/jpeg_lib.h"
#include "image/scans.h"

struct tsi_jpeg {
	struct tsi_decoder base;
	struct tsi_jpeg_lib lib;
	struct jpeg_progress_mgr progress;
	/* The scans so far, and which components they had. */
	struct tsi_scan_frame frame;
	struct tsi_scan_work work;
	unsigned seen;
	/* The rectangle within the decoded columns, and rows still to give. */
	uint32_t skip_left;
	uint32_t rows_left;
	uint8_t *strip;
	uint8_t *planes;
	size_t stride;
	/* Of the next image; then the image, and whether libjpeg has it. */
	struct tsi_decoder_hint hint;
	struct tsi_jpeg_direct *direct;
	bool by_lib;
	const void *data;
	size_t len;
	uint32_t width;
	struct tsi_rect rect;
};

static void too_many_scans(struct tsi_jpeg *j)
{
	tsi_jpeg_lib_bad(&j->lib,
			 "JPEG's scans are more work than any honest file's");
}

/*
 * Counts each new scan of a multi-scan file once more, as it is decoded: what
 * was read off the markers is not trusted to be all.
 */
static void on_progress(j_common_ptr common)
{
	struct tsi_jpeg *j = (void *)((char *)common->client_data -
				      offsetof(struct tsi_jpeg, lib));
	j_decompress_ptr c = &j->lib.c;

	if (c->input_scan_number == (int)j->work.scans)
		return;
	j->work.scans = (unsigned)c->input_scan_number;
	for (int i = 0; i < c->comps_in_scan; i++) {
		int k = c->cur_comp_info[i]->component_index;

		j->seen |= 1u << k;
		j->work.visits += j->frame.blocks[k];
	}
	if (tsi_scans_too_many(&j->frame, &j->work))
		too_many_scans(j);
}

/* What the scans of a multi-scan file will cost, before memory is allocated. */
static void check_scans(struct tsi_jpeg *j, const void *data, size_t len)
{
	j_decompress_ptr c = &j->lib.c;
	struct tsi_scan_work work;

	j->frame.n = (unsigned)c->num_components;
	j->frame.arithmetic = c->arith_code;
	for (unsigned i = 0; i < j->frame.n; i++) {
		const jpeg_component_info *comp = &c->comp_info[i];

		j->frame.id[i] = (uint8_t)comp->component_id;
		j->frame.blocks[i] = (uint64_t)comp->width_in_blocks *
				     comp->height_in_blocks;
	}
	if (!jpeg_has_multiple_scans(c))
		return;
	work = tsi_scans_count(&j->frame, data, len);
	if (tsi_scans_too_many(&j->frame, &work))
		too_many_scans(j);
}

/*
 * A multi-scan file is read to its end before the first row.  If the end came
 * without its marker, is there nothing that it could have gone on with?
 */
static bool complete(const struct tsi_jpeg *j)
{
	const struct jpeg_decompress_struct *c = &j->lib.c;

	if (!c->progressive_mode)
		return j->seen == (1u << c->num_components) - 1;
	for (int i = 0; i < c->num_components; i++)
		for (int k = 0; k < DCTSIZE2; k++)
			if (c->coef_bits[i][k])
				return false;
	return true;
}

/*
 * Block smoothing guesses the low frequencies of a progressive file that ends
 * early from blocks all around, those outside the rectangle included.
 */
static bool smooths(const struct jpeg_decompress_struct *c)
{
	if (!c->progressive_mode)
		return false;
	for (int i = 0; i < c->num_components; i++)
		for (int k = 1; k < 10; k++)
			if (c->coef_bits[i][k])
				return true;
	return false;
}

/*
 * Decode only the rectangle's columns.  Fancy upsampling looks one chroma
 * sample to each side, and is another one where there are but a few samples:
 * hence two pixels more on both sides, and never less than a few blocks.
 */
static void crop_columns(struct tsi_jpeg *j, const struct tsi_rect *rect)
{
	j_decompress_ptr c = &j->lib.c;
	uint32_t least = 4 * DCTSIZE * (uint32_t)c->max_h_samp_factor;
	uint32_t left = rect->left < 2 ? 0 : rect->left - 2;
	uint32_t right = rect->left + rect->width + 2;
	JDIMENSION at, width;

	if (right < left + least)
		right = left + least;
	if (right > c->output_width)
		right = c->output_width;
	if (right - left < least)
		left = right < least ? 0 : right - least;
	at = left;
	width = right - left;
	if (width < c->output_width)
		jpeg_crop_scanline(c, &at, &width);
	j->skip_left = rect->left - at;
}

/* Up to n rows into the strip; n is at most TSI_STRIP_ROWS. */
static void read_rows(struct tsi_jpeg *j, uint32_t n)
{
	JSAMPROW row[TSI_STRIP_ROWS];
	uint32_t have = 0;

	for (uint32_t i = 0; i < n; i++)
		row[i] = j->strip + i * j->stride;
	while (have < n)
		have += jpeg_read_scanlines(&j->lib.c, row + have, n - have);
}

/* Go to the rectangle's first row. */
static void skip_rows(struct tsi_jpeg *j, uint32_t top, bool decode)
{
	/* Whole row groups are skipped, the rest is read in vain. */
	uint32_t skip = top - top % (uint32_t)j->lib.c.max_v_samp_factor;

	if (!decode && skip) {
		jpeg_skip_scanlines(&j->lib.c, skip);
		top -= skip;
	}
	while (top) {
		uint32_t n = top < TSI_STRIP_ROWS ? top : TSI_STRIP_ROWS;

		read_rows(j, n);
		top -= n;
	}
}

static void begin(struct tsi_jpeg *j, const struct tsi_rect *rect)
{
	j_decompress_ptr c = &j->lib.c;
	bool all;

	c->out_color_space = JCS_EXT_RGBX;
	if (c->num_components == 4)
		c->out_color_space = JCS_CMYK;
	if (j->base.fast) {
		c->scale_num = 1;
		c->scale_denom = j->base.fast;
		c->do_fancy_upsampling = FALSE;
	}
	/* Where libjpeg upsamples and converts in one step, it makes no
	 * converter; but jpeg_skip_scanlines() writes into one that is there,
	 * and that of the last image is freed. */
	c->cconvert = NULL;
	j->lib.in_scan = true;
	jpeg_start_decompress(c);
	if (jpeg_has_multiple_scans(c) && j->lib.ended && !complete(j))
		tsi_jpeg_lib_truncated(&j->lib);
	/* Shrunk, what is beside the rectangle costs little. */
	all = smooths(c) || j->base.fast > 1;
	if (all)
		j->skip_left = rect->left;
	else
		crop_columns(j, rect);
	j->stride =
		((size_t)c->output_width * 4 + TSI_ROW_SLACK + 63) / 64 * 64;
	j->strip = tsi_jpeg_lib_alloc(&j->lib, TSI_STRIP_ROWS * j->stride);
	if (j->base.planes)
		j->planes = tsi_jpeg_lib_alloc(
			&j->lib,
			TSI_STRIP_ROWS * 3 * (j->stride / 4 + TSI_PLANE_SLACK));
	skip_rows(j, rect->top, all);
	j->rows_left = rect->height;
}

/* a * b / 255, rounded. */
static unsigned scale(unsigned a, unsigned b)
{
	unsigned t = a * b + 128;

	return (t + (t >> 8)) >> 8;
}

/*
 * Pillow treats every four-component file as inverted, as Adobe writes them,
 * and converts CMYK to RGB as white paper less the inks.
 */
static void cmyk_to_rgb(uint8_t *p, size_t pixels)
{
	for (; pixels; pixels--, p += 4) {
		unsigned light = p[3];

		for (int i = 0; i < 3; i++) {
			unsigned ink = scale(255u - p[i], light);

			p[i] = (uint8_t)(light > ink ? light - ink : 0);
		}
	}
}

/* What the other decoder began in planes is gone on with in planes. */
static void to_planes(struct tsi_jpeg *j, struct tsi_strip *strip)
{
	size_t plane = strip->stride / 4 + TSI_PLANE_SLACK;

	for (uint32_t y = 0; y < strip->rows; y++) {
		const uint8_t *from = strip->pixels + y * strip->stride;
		uint8_t *to = j->planes + y * 3 * plane;

		for (uint32_t x = 0; x < j->rect.width; x++, from += 4, to++) {
			to[0] = from[0];
			to[plane] = from[1];
			to[2 * plane] = from[2];
		}
	}
	strip->pixels = j->planes;
	strip->stride = 3 * plane;
	strip->plane = plane;
}

static void read_strip(struct tsi_jpeg *j, struct tsi_strip *strip)
{
	uint32_t n =
		j->rows_left < TSI_STRIP_ROWS ? j->rows_left : TSI_STRIP_ROWS;

	read_rows(j, n);
	if (j->lib.c.out_color_space == JCS_CMYK)
		for (uint32_t i = 0; i < n; i++)
			cmyk_to_rgb(j->strip + i * j->stride,
				    j->lib.c.output_width);
	j->rows_left -= n;
	strip->pixels = j->strip + (size_t)j->skip_left * 4;
	strip->stride = j->stride;
	strip->rows = n;
	strip->plane = 0;
	if (j->base.planes)
		to_planes(j, strip);
}

/*
 * A file of several scans is decoded to its end before the first row: all its
 * coefficients are in memory.  Else it is rows: of samples before and after
 * they are upsampled, and the strip, together below 256 bytes a column.
 */
static uint64_t strip_need(uint32_t width)
{
	return 256 * ((uint64_t)width + 64);
}

static uint64_t need(j_decompress_ptr c)
{
	uint64_t bytes = strip_need(c->image_width);

	if (!jpeg_has_multiple_scans(c))
		return bytes;
	for (int i = 0; i < c->num_components; i++) {
		const jpeg_component_info *comp = &c->comp_info[i];
		uint64_t h = (uint64_t)comp->h_samp_factor;
		uint64_t v = (uint64_t)comp->v_samp_factor;
		uint64_t across = (comp->width_in_blocks + h - 1) / h * h;
		uint64_t down = (comp->height_in_blocks + v - 1) / v * v;

		bytes += down * (across * sizeof(JBLOCK) + sizeof(JBLOCKROW));
	}
	return bytes;
}

/* ------------------------------------------------------------------------
 * The operations of decoder.h
 */

static struct tsi_jpeg *jpeg_of(struct tsi_decoder *d)
{
	return (struct tsi_jpeg *)d;
}

static void reset(struct tsi_jpeg *j)
{
	if (j->direct)
		tsi_jpeg_direct_close(j->direct);
	tsi_jpeg_lib_reset(&j->lib);
	j->work = (struct tsi_scan_work){ 0 };
	j->seen = 0;
	j->rows_left = 0;
}

static void decoder_destroy(struct tsi_decoder *d)
{
	struct tsi_jpeg *j = jpeg_of(d);

	if (!j)
		return;
	tsi_jpeg_direct_destroy(j->direct);
	tsi_jpeg_lib_fini(&j->lib);
	free(j);
}

static int decoder_create(struct tsi_decoder **out)
{
	struct tsi_jpeg *j = calloc(1, sizeof(*j));
	int err;

	if (!j)
		return tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
	j->base.ops = &tsi_jpeg_ops;
	if (setjmp(j->lib.fail)) {
		err = tsi_jpeg_lib_failed(&j->lib);
		decoder_destroy(&j->base);
		return err;
	}
	tsi_jpeg_lib_init(&j->lib);
	j->progress.progress_monitor = on_progress;
	j->lib.c.progress = &j->progress;
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

/* libjpeg reads the header. */
static int open_lib(struct tsi_jpeg *j)
{
	tsi_jpeg_lib_input(&j->lib, j->data, j->len);
	if (setjmp(j->lib.fail))
		return tsi_jpeg_lib_failed(&j->lib);
	jpeg_read_header(&j->lib.c, TRUE);
	if (j->lib.c.num_components > 4)
		tsi_jpeg_lib_bad(&j->lib, "JPEG has more than four components");
	check_scans(j, j->data, j->len);
	return 0;
}

static int begin_lib(struct tsi_jpeg *j, const struct tsi_rect *rect)
{
	if (setjmp(j->lib.fail))
		return tsi_jpeg_lib_failed(&j->lib);
	begin(j, rect);
	return 0;
}

/* libjpeg is to decode what the other decoder hasn't given. */
static int go_over(struct tsi_jpeg *j)
{
	uint32_t given = tsi_jpeg_direct_rows(j->direct);
	struct tsi_rect rest = j->rect;
	int err = open_lib(j);

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
	int err;

	reset(j);
	j->hint = (struct tsi_decoder_hint){ 0 };
	j->data = data;
	j->len = len;
	j->base.has_planes = false;
	j->by_lib = hint.stock || (hint.opts && hint.opts->stock_jpeg) ||
		    !direct_pays() ||
		    !tsi_jpeg_direct_open(j->direct, data, len, &hint, width,
					  height);
	if (!j->by_lib) {
		j->base.has_planes = tsi_jpeg_direct_has_planes(j->direct);
		j->width = *width;
		return 0;
	}
	err = open_lib(j);
	if (err)
		return err;
	*width = j->lib.c.image_width;
	*height = j->lib.c.image_height;
	return 0;
}

static uint64_t decoder_need(struct tsi_decoder *d)
{
	struct tsi_jpeg *j = jpeg_of(d);

	if (j->by_lib)
		return need(&j->lib.c);
	/* libjpeg may come after it. */
	return tsi_jpeg_direct_need(j->direct) + strip_need(j->width);
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

static int read_lib(struct tsi_jpeg *j, struct tsi_strip *strip)
{
	if (setjmp(j->lib.fail))
		return tsi_jpeg_lib_failed(&j->lib);
	read_strip(j, strip);
	return 0;
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct tsi_jpeg *j = jpeg_of(d);
	int err;

	if (j->by_lib)
		return read_lib(j, strip);
	err = tsi_jpeg_direct_read(j->direct, strip);
	if (err != TSOCK_ENOTSUP)
		return err;
	err = go_over(j);
	return err ? err : read_lib(j, strip);
}

static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	const struct tsi_jpeg *j = (const struct tsi_jpeg *)d;

	return j->by_lib ? j->lib.c.output_scanline
			 : tsi_jpeg_direct_rows(j->direct);
}

static void decoder_close(struct tsi_decoder *d)
{
	reset(jpeg_of(d));
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

#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

const char *tsi_jpeg_version(void)
{
#ifdef LIBJPEG_TURBO_VERSION
	return STRING(LIBJPEG_TURBO_VERSION);
#else
	return "unknown";
#endif
}
