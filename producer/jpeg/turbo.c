/* SPDX-License-Identifier: MIT */
/*
 * turbo.c - which columns and rows libjpeg-turbo decodes, and what the
 * scans of a file may cost.
 *
 * One decompressor serves all images of a thread.  Its errors come back by
 * longjmp to the functions at the end, which are those of the header.
 */
#include "jpeg/turbo.h"

#include <stdlib.h>

#include "base/err.h"
#include "jpeg/libjpeg.h"
#include "jpeg/scan.h"
#include "jpeg/verdict.h"
#include "pixel/scans.h"

struct tsi_jpeg_turbo {
	struct tsi_jpeg_lib lib;
	struct jpeg_progress_mgr progress;
	/* The scans so far, and which components they had. */
	struct tsi_scan_frame frame;
	struct tsi_scan_work work;
	unsigned seen;
	/* The file, and whether Pillow takes it. */
	const void *data;
	size_t len;
	bool taken;
	/* The next marker that doesn't belong into the data, or their end. */
	const uint8_t *stray;
	/* Where it doesn't: the rows above the damage. */
	bool refused;
	uint32_t good;
	/* The rectangle within the decoded columns, and rows still to give. */
	uint32_t skip_left;
	uint32_t width;
	uint32_t rows_left;
	uint8_t *strip;
	uint8_t *planes; /* NULL: strips are of whole pixels */
	size_t stride;
};

static void too_many_scans(struct tsi_jpeg_turbo *t)
{
	tsi_jpeg_lib_bad(&t->lib,
			 "JPEG's scans are more work than any honest file's");
}

/*
 * Counts each new scan of a multi-scan file once more, as it is decoded: what
 * was read off the markers is not trusted to be all.
 */
static void on_progress(j_common_ptr common)
{
	struct tsi_jpeg_turbo *t =
		(void *)((char *)common->client_data -
			 offsetof(struct tsi_jpeg_turbo, lib));
	j_decompress_ptr c = &t->lib.c;

	if (c->input_scan_number == (int)t->work.scans)
		return;
	t->work.scans = (unsigned)c->input_scan_number;
	for (int i = 0; i < c->comps_in_scan; i++) {
		int k = c->cur_comp_info[i]->component_index;

		t->seen |= 1u << k;
		t->work.visits += t->frame.blocks[k];
	}
	if (tsi_scans_too_many(&t->frame, &t->work))
		too_many_scans(t);
}

/* What the scans of a multi-scan file will cost, before memory is allocated. */
static void check_scans(struct tsi_jpeg_turbo *t, const void *data, size_t len)
{
	j_decompress_ptr c = &t->lib.c;
	struct tsi_scan_work work;

	t->frame.n = (unsigned)c->num_components;
	t->frame.arithmetic = c->arith_code;
	for (unsigned i = 0; i < t->frame.n; i++) {
		const jpeg_component_info *comp = &c->comp_info[i];

		t->frame.id[i] = (uint8_t)comp->component_id;
		t->frame.blocks[i] = (uint64_t)comp->width_in_blocks *
				     comp->height_in_blocks;
	}
	if (!jpeg_has_multiple_scans(c))
		return;
	work = tsi_scans_count(&t->frame, data, len);
	if (tsi_scans_too_many(&t->frame, &work))
		too_many_scans(t);
}

/*
 * A multi-scan file is read to its end before the first row.  If the end came
 * without its marker, is there nothing that it could have gone on with?
 */
static bool complete(const struct tsi_jpeg_turbo *t)
{
	const struct jpeg_decompress_struct *c = &t->lib.c;

	if (!c->progressive_mode)
		return t->seen == (1u << c->num_components) - 1;
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
static void crop_columns(struct tsi_jpeg_turbo *t, const struct tsi_rect *rect)
{
	j_decompress_ptr c = &t->lib.c;
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
	t->skip_left = rect->left - at;
}

/*
 * Does a marker come soon that doesn't belong into the data?  Behind the last
 * row all that comes counts.
 */
static bool has_stray_ahead(struct tsi_jpeg_turbo *t)
{
	const struct jpeg_decompress_struct *c = &t->lib.c;
	const uint8_t *p = c->src->next_input_byte;
	size_t n = c->src->bytes_in_buffer;

	if (t->lib.ended)
		return false;
	if (!t->stray || t->stray < p)
		t->stray = p + tsi_jpeg_scan_stray(p, n);
	if (t->stray == p + n)
		return false;
	return c->input_iMCU_row == c->total_iMCU_rows ||
	       t->stray - p < TSI_JPEG_SCAN_NEAR;
}

/* A restart, unless the file has none: arithmetic data end there. */
static bool is_due(const struct jpeg_decompress_struct *c, int marker)
{
	return marker >= JPEG_RST0 && marker <= JPEG_RST0 + 7 &&
	       (c->restart_interval || !c->arith_code);
}

/*
 * Is there a marker because of which Pillow may refuse a file that libjpeg goes
 * on with?  Once there is, there is for all rows below, also where rows were
 * skipped.
 */
static bool is_doubtful(struct tsi_jpeg_turbo *t)
{
	j_decompress_ptr c = &t->lib.c;
	int marker = c->unread_marker;

	/* All scans are read before the first row, as Pillow does. */
	if (t->taken || jpeg_has_multiple_scans(c))
		return false;
	if (t->lib.strayed)
		return true;
	if (marker == JPEG_EOI)
		return false;
	return (marker && !is_due(c, marker)) || has_stray_ahead(t);
}

/* Rows have been read, those above `good` without a doubt. */
static void look_at_damage(struct tsi_jpeg_turbo *t, uint32_t good)
{
	int err;

	if (!is_doubtful(t))
		return;
	err = tsi_jpeg_verdict(t->data, t->len);
	t->taken = !err;
	if (!err)
		return;
	t->refused = true;
	t->good = good;
	tsi_jpeg_lib_fail(&t->lib, err);
}

/* Up to n rows into the strip; n is at most TSI_STRIP_ROWS. */
static void read_rows(struct tsi_jpeg_turbo *t, uint32_t n)
{
	JSAMPROW row[TSI_STRIP_ROWS];
	uint32_t have = 0;

	for (uint32_t i = 0; i < n; i++)
		row[i] = t->strip + i * t->stride;
	while (have < n) {
		uint32_t good = t->lib.c.output_scanline;

		have += jpeg_read_scanlines(&t->lib.c, row + have, n - have);
		look_at_damage(t, good);
	}
}

/* Go to the rectangle's first row. */
static void skip_rows(struct tsi_jpeg_turbo *t, uint32_t top, bool decode)
{
	/* Whole row groups are skipped, the rest is read in vain. */
	uint32_t skip = top - top % (uint32_t)t->lib.c.max_v_samp_factor;

	if (!decode && skip) {
		jpeg_skip_scanlines(&t->lib.c, skip);
		top -= skip;
	}
	while (top) {
		uint32_t n = top < TSI_STRIP_ROWS ? top : TSI_STRIP_ROWS;

		read_rows(t, n);
		top -= n;
	}
}

static void begin_rows(struct tsi_jpeg_turbo *t, const struct tsi_rect *rect,
		       unsigned fast, bool planes)
{
	j_decompress_ptr c = &t->lib.c;
	bool all;

	c->out_color_space = JCS_EXT_RGBX;
	if (c->num_components == 4)
		c->out_color_space = JCS_CMYK;
	if (fast) {
		c->scale_num = 1;
		c->scale_denom = fast;
		c->do_fancy_upsampling = FALSE;
	}
	/* Where libjpeg upsamples and converts in one step, it makes no
	 * converter; but jpeg_skip_scanlines() writes into one that is there,
	 * and that of the last image is freed. */
	c->cconvert = NULL;
	t->lib.in_scan = true;
	jpeg_start_decompress(c);
	if (jpeg_has_multiple_scans(c) && t->lib.ended && !complete(t))
		tsi_jpeg_lib_truncated(&t->lib);
	/* Shrunk, what is beside the rectangle costs little. */
	all = smooths(c) || fast > 1;
	if (all)
		t->skip_left = rect->left;
	else
		crop_columns(t, rect);
	t->stride =
		((size_t)c->output_width * 4 + TSI_ROW_SLACK + 63) / 64 * 64;
	t->strip = tsi_jpeg_lib_alloc(&t->lib, TSI_STRIP_ROWS * t->stride);
	t->planes = NULL;
	if (planes)
		t->planes = tsi_jpeg_lib_alloc(
			&t->lib,
			TSI_STRIP_ROWS * 3 * (t->stride / 4 + TSI_PLANE_SLACK));
	skip_rows(t, rect->top, all);
	t->width = rect->width;
	t->rows_left = rect->height;
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

/* If the other decoder began in planes, go on in planes. */
static void to_planes(struct tsi_jpeg_turbo *t, struct tsi_strip *strip)
{
	size_t plane = strip->stride / 4 + TSI_PLANE_SLACK;

	for (uint32_t y = 0; y < strip->rows; y++) {
		const uint8_t *from = strip->pixels + y * strip->stride;
		uint8_t *to = t->planes + y * 3 * plane;

		for (uint32_t x = 0; x < t->width; x++, from += 4, to++) {
			to[0] = from[0];
			to[plane] = from[1];
			to[2 * plane] = from[2];
		}
	}
	strip->pixels = t->planes;
	strip->stride = 3 * plane;
	strip->plane = plane;
}

static void read_strip(struct tsi_jpeg_turbo *t, struct tsi_strip *strip)
{
	uint32_t n =
		t->rows_left < TSI_STRIP_ROWS ? t->rows_left : TSI_STRIP_ROWS;

	read_rows(t, n);
	if (t->lib.c.out_color_space == JCS_CMYK)
		for (uint32_t i = 0; i < n; i++)
			cmyk_to_rgb(t->strip + i * t->stride,
				    t->lib.c.output_width);
	t->rows_left -= n;
	strip->pixels = t->strip + (size_t)t->skip_left * 4;
	strip->stride = t->stride;
	strip->rows = n;
	strip->plane = 0;
	if (t->planes)
		to_planes(t, strip);
}

/*
 * A file of several scans is decoded to its end before the first row: all its
 * coefficients are in memory.  Else it is rows: of samples before and after
 * they are upsampled, and the strip, together below 256 bytes a column; and 16
 * for the verdict on a damaged file.
 */
uint64_t tsi_jpeg_turbo_strip_need(uint32_t width)
{
	return (256 + 16) * ((uint64_t)width + 64);
}

static uint64_t need(j_decompress_ptr c)
{
	uint64_t bytes = tsi_jpeg_turbo_strip_need(c->image_width);

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
 * The functions of the header: each that calls libjpeg is where its errors
 * come back.
 */

void tsi_jpeg_turbo_destroy(struct tsi_jpeg_turbo *t)
{
	if (!t)
		return;
	tsi_jpeg_lib_fini(&t->lib);
	free(t);
}

int tsi_jpeg_turbo_create(struct tsi_jpeg_turbo **out)
{
	struct tsi_jpeg_turbo *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
	if (setjmp(t->lib.fail)) {
		err = tsi_jpeg_lib_failed(&t->lib);
		tsi_jpeg_turbo_destroy(t);
		return err;
	}
	tsi_jpeg_lib_init(&t->lib);
	t->progress.progress_monitor = on_progress;
	t->lib.c.progress = &t->progress;
	*out = t;
	return 0;
}

int tsi_jpeg_turbo_open(struct tsi_jpeg_turbo *t, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	tsi_jpeg_lib_input(&t->lib, data, len);
	t->data = data;
	t->len = len;
	if (setjmp(t->lib.fail))
		return tsi_jpeg_lib_failed(&t->lib);
	jpeg_read_header(&t->lib.c, TRUE);
	if (t->lib.c.num_components > 4)
		tsi_jpeg_lib_bad(&t->lib, "JPEG has more than four components");
	check_scans(t, data, len);
	*width = t->lib.c.image_width;
	*height = t->lib.c.image_height;
	return 0;
}

uint64_t tsi_jpeg_turbo_need(struct tsi_jpeg_turbo *t)
{
	return need(&t->lib.c);
}

int tsi_jpeg_turbo_begin(struct tsi_jpeg_turbo *t, const struct tsi_rect *rect,
			 unsigned fast, bool planes)
{
	if (setjmp(t->lib.fail))
		return tsi_jpeg_lib_failed(&t->lib);
	begin_rows(t, rect, fast, planes);
	return 0;
}

int tsi_jpeg_turbo_read(struct tsi_jpeg_turbo *t, struct tsi_strip *strip)
{
	if (setjmp(t->lib.fail))
		return tsi_jpeg_lib_failed(&t->lib);
	read_strip(t, strip);
	return 0;
}

uint32_t tsi_jpeg_turbo_rows(const struct tsi_jpeg_turbo *t)
{
	return t->refused ? t->good : t->lib.c.output_scanline;
}

void tsi_jpeg_turbo_close(struct tsi_jpeg_turbo *t)
{
	tsi_jpeg_lib_reset(&t->lib);
	t->work = (struct tsi_scan_work){ 0 };
	t->seen = 0;
	t->taken = false;
	t->stray = NULL;
	t->refused = false;
	t->rows_left = 0;
}

#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

#ifdef LIBJPEG_TURBO_VERSION
#define TURBO_VERSION STRING(LIBJPEG_TURBO_VERSION)
#else
#define TURBO_VERSION "unknown"
#endif

const char *tsi_jpeg_turbo_version(void)
{
	return TURBO_VERSION;
}
