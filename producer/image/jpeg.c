/* SPDX-License-Identifier: MIT */
/*
 * jpeg.c - the one file of the producer that includes jpeglib.h.
 *
 * One decompressor serves all images of a thread.  Its memory manager is
 * replaced by an arena: nothing is allocated in the steady state, and the
 * tables of one file can't leak into the next.  Input is in memory and never
 * suspends; where it ends too early libjpeg gets an end marker, and whatever
 * then turns out to be missing makes the file bad.  Errors come back by
 * longjmp to the operations at the end.
 */
#include "image/jpeg.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/err.h"
#include "image/arena.h"
#include "image/scans.h"

/* The coefficients of the largest progressive image that is let in. */
#define COEFFICIENTS_MAX ((long)1536 << 20)

struct tsi_jpeg {
	struct tsi_decoder base;
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr err;
	struct jpeg_source_mgr src;
	struct jpeg_progress_mgr progress;
	struct tsi_arena arena;
	jmp_buf fail;
	const char
		*reason; /* why the file is bad, where libjpeg didn't say it */
	bool ended;   /* libjpeg was given an end marker that the file lacks */
	bool in_scan; /* behind the header */
	bool no_memory;
	bool ready; /* libjpeg's permanent objects were created */
	/* The scans so far, and which components they had. */
	struct tsi_scan_frame frame;
	struct tsi_scan_work work;
	unsigned seen;
	/* The rectangle within the decoded columns, and rows still to give. */
	uint32_t skip_left;
	uint32_t rows_left;
	uint8_t *strip;
	size_t stride;
};

static struct tsi_jpeg *jpeg_behind(j_common_ptr c)
{
	return c->client_data;
}

static void on_error(j_common_ptr c)
{
	longjmp(jpeg_behind(c)->fail, 1);
}

static void bad(struct tsi_jpeg *j, const char *reason)
{
	j->reason = reason;
	longjmp(j->fail, 1);
}

static void truncated(struct tsi_jpeg *j)
{
	bad(j, "JPEG is truncated: its data ends above the last row needed");
}

/*
 * Warnings are what Pillow lets pass, so they pass here; but once the data
 * has ended they mean that some of it is missing.
 */
static void on_message(j_common_ptr c, int level)
{
	if (level < 0 && jpeg_behind(c)->ended)
		truncated(jpeg_behind(c));
}

static void on_output(j_common_ptr c)
{
	(void)c;
}

static void source_init(j_decompress_ptr c)
{
	(void)c;
}

static boolean source_fill(j_decompress_ptr c)
{
	static const JOCTET end[2] = { 0xff, JPEG_EOI };
	struct tsi_jpeg *j = jpeg_behind((j_common_ptr)c);

	/*
	 * The arithmetic decoder accepts any number of zeros after a marker
	 * without a warning, so it can't tell the end from a loss.
	 */
	if (j->ended || (c->arith_code && j->in_scan))
		truncated(j);
	j->ended = true;
	j->src.next_input_byte = end;
	j->src.bytes_in_buffer = sizeof(end);
	return TRUE;
}

static void source_skip(j_decompress_ptr c, long n)
{
	struct tsi_jpeg *j = jpeg_behind((j_common_ptr)c);

	if (n <= 0)
		return;
	if ((size_t)n > j->src.bytes_in_buffer)
		truncated(j);
	j->src.next_input_byte += n;
	j->src.bytes_in_buffer -= (size_t)n;
}

static void source_term(j_decompress_ptr c)
{
	(void)c;
}

static void *alloc(j_common_ptr c, size_t len)
{
	void *p = tsi_arena_alloc(&jpeg_behind(c)->arena, len);

	if (!p) {
		jpeg_behind(c)->no_memory = true;
		longjmp(jpeg_behind(c)->fail, 1);
	}
	return p;
}

static void *mem_alloc(j_common_ptr c, int pool, size_t len)
{
	(void)pool;
	return alloc(c, len);
}

/* Rows start aligned, and vector code may run over a row's end. */
static JSAMPARRAY mem_samples(j_common_ptr c, int pool, JDIMENSION width,
			      JDIMENSION rows)
{
	size_t stride = ((size_t)width + 63) / 64 * 64;
	JSAMPARRAY row = alloc(c, rows * sizeof(*row));
	JSAMPROW p = alloc(c, rows * stride);

	(void)pool;
	for (JDIMENSION i = 0; i < rows; i++)
		row[i] = p + i * stride;
	return row;
}

static JBLOCKARRAY mem_blocks(j_common_ptr c, int pool, JDIMENSION width,
			      JDIMENSION rows)
{
	JBLOCKARRAY row = alloc(c, rows * sizeof(*row));
	JBLOCKROW p = alloc(c, (size_t)rows * width * sizeof(*p));

	(void)pool;
	for (JDIMENSION i = 0; i < rows; i++)
		row[i] = p + (size_t)i * width;
	return row;
}

static void too_many_scans(struct tsi_jpeg *j)
{
	bad(j, "JPEG's scans are more work than any honest file's");
}

/*
 * Counts each new scan of a multi-scan file once more, as it is decoded: what
 * was read off the markers is not trusted to be all.
 */
static void on_progress(j_common_ptr common)
{
	struct tsi_jpeg *j = jpeg_behind(common);
	j_decompress_ptr c = &j->c;

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
	j_decompress_ptr c = &j->c;
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

/* The decompressor's permanent objects; libjpeg's own memory manager. */
static void prepare(struct tsi_jpeg *j)
{
	j_decompress_ptr c = &j->c;

	c->err = jpeg_std_error(&j->err);
	j->err.error_exit = on_error;
	j->err.emit_message = on_message;
	j->err.output_message = on_output;
	c->client_data = j;
	jpeg_create_decompress(c);
	j->ready = true;
	j->src.init_source = source_init;
	j->src.fill_input_buffer = source_fill;
	j->src.skip_input_data = source_skip;
	j->src.resync_to_restart = jpeg_resync_to_restart;
	j->src.term_source = source_term;
	c->src = &j->src;
	j->progress.progress_monitor = on_progress;
	c->progress = &j->progress;
	c->mem->max_memory_to_use = COEFFICIENTS_MAX;
	c->mem->alloc_small = mem_alloc;
	c->mem->alloc_large = mem_alloc;
	c->mem->alloc_sarray = mem_samples;
	c->mem->alloc_barray = mem_blocks;
}

static void reset(struct tsi_jpeg *j)
{
	j_decompress_ptr c = &j->c;

	jpeg_abort_decompress(c);
	tsi_arena_reset(&j->arena, TSI_SCRATCH_KEEP);
	/* Tables live in the arena too: a file that lacks its own gets none. */
	for (int i = 0; i < NUM_QUANT_TBLS; i++)
		c->quant_tbl_ptrs[i] = NULL;
	for (int i = 0; i < NUM_HUFF_TBLS; i++) {
		c->dc_huff_tbl_ptrs[i] = NULL;
		c->ac_huff_tbl_ptrs[i] = NULL;
	}
	c->err->reset_error_mgr((j_common_ptr)c);
	j->reason = NULL;
	j->ended = false;
	j->in_scan = false;
	j->no_memory = false;
	j->work = (struct tsi_scan_work){ 0 };
	j->seen = 0;
	j->rows_left = 0;
}

/*
 * A multi-scan file is read to its end before the first row.  If the end came
 * without its marker, is there nothing that it could have gone on with?
 */
static bool complete(const struct tsi_jpeg *j)
{
	const struct jpeg_decompress_struct *c = &j->c;

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
	j_decompress_ptr c = &j->c;
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
		have += jpeg_read_scanlines(&j->c, row + have, n - have);
}

/* Go to the rectangle's first row. */
static void skip_rows(struct tsi_jpeg *j, uint32_t top, bool decode)
{
	/* Whole row groups are skipped, the rest is read in vain. */
	uint32_t skip = top - top % (uint32_t)j->c.max_v_samp_factor;

	if (!decode && skip) {
		jpeg_skip_scanlines(&j->c, skip);
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
	j_decompress_ptr c = &j->c;
	bool smooth;

	c->out_color_space = JCS_EXT_RGBX;
	if (c->num_components == 4)
		c->out_color_space = JCS_CMYK;
	j->in_scan = true;
	jpeg_start_decompress(c);
	if (jpeg_has_multiple_scans(c) && j->ended && !complete(j))
		truncated(j);
	smooth = smooths(c);
	if (smooth)
		j->skip_left = rect->left;
	else
		crop_columns(j, rect);
	j->stride =
		((size_t)c->output_width * 4 + TSI_ROW_SLACK + 63) / 64 * 64;
	j->strip = alloc((j_common_ptr)c, TSI_STRIP_ROWS * j->stride);
	skip_rows(j, rect->top, smooth);
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

static void read_strip(struct tsi_jpeg *j, struct tsi_strip *strip)
{
	uint32_t n =
		j->rows_left < TSI_STRIP_ROWS ? j->rows_left : TSI_STRIP_ROWS;

	read_rows(j, n);
	if (j->c.out_color_space == JCS_CMYK)
		for (uint32_t i = 0; i < n; i++)
			cmyk_to_rgb(j->strip + i * j->stride,
				    j->c.output_width);
	j->rows_left -= n;
	strip->pixels = j->strip + (size_t)j->skip_left * 4;
	strip->stride = j->stride;
	strip->rows = n;
}

/*
 * A file of several scans is decoded to its end before the first row: all its
 * coefficients are in memory.  Else it is rows: of samples before and after
 * they are upsampled, and the strip, together below 256 bytes a column.
 */
static uint64_t need(j_decompress_ptr c)
{
	uint64_t bytes = 256 * ((uint64_t)c->image_width + 64);

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

static int failed(struct tsi_jpeg *j)
{
	char text[JMSG_LENGTH_MAX];
	int code = j->err.msg_code;

	if (!j->reason && !j->no_memory && code)
		j->err.format_message((j_common_ptr)&j->c, text);
	if (j->ready)
		jpeg_abort_decompress(&j->c);
	if (j->no_memory || code == JERR_OUT_OF_MEMORY)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode a JPEG");
	if (j->reason)
		return tsi_err(TSOCK_EDATA, "%s", j->reason);
	if (code == JERR_NO_BACKING_STORE)
		return tsi_err(TSOCK_EDATA,
			       "JPEG needs more than %ld MB to "
			       "decode",
			       COEFFICIENTS_MAX >> 20);
	if (j->ended)
		return tsi_err(TSOCK_EDATA, "JPEG is truncated: %s", text);
	return tsi_err(TSOCK_EDATA, "bad JPEG: %s", text);
}

/* ------------------------------------------------------------------------
 * The operations of decoder.h
 */

static struct tsi_jpeg *jpeg_of(struct tsi_decoder *d)
{
	return (struct tsi_jpeg *)d;
}

static void decoder_destroy(struct tsi_decoder *d)
{
	struct tsi_jpeg *j = jpeg_of(d);

	if (!j)
		return;
	if (j->ready)
		jpeg_destroy_decompress(&j->c);
	tsi_arena_fini(&j->arena);
	free(j);
}

static int decoder_create(struct tsi_decoder **out)
{
	struct tsi_jpeg *j = calloc(1, sizeof(*j));

	if (!j)
		return tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
	j->base.ops = &tsi_jpeg_ops;
	if (setjmp(j->fail)) {
		int err = failed(j);

		decoder_destroy(&j->base);
		return err;
	}
	prepare(j);
	*out = &j->base;
	return 0;
}

static int decoder_open(struct tsi_decoder *d, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	struct tsi_jpeg *j = jpeg_of(d);

	reset(j);
	j->src.next_input_byte = data;
	j->src.bytes_in_buffer = len;
	if (setjmp(j->fail))
		return failed(j);
	jpeg_read_header(&j->c, TRUE);
	if (j->c.num_components > 4)
		bad(j, "JPEG has more than four components");
	check_scans(j, data, len);
	*width = j->c.image_width;
	*height = j->c.image_height;
	return 0;
}

static uint64_t decoder_need(struct tsi_decoder *d)
{
	return need(&jpeg_of(d)->c);
}

static int decoder_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct tsi_jpeg *j = jpeg_of(d);

	if (setjmp(j->fail))
		return failed(j);
	begin(j, rect);
	return 0;
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct tsi_jpeg *j = jpeg_of(d);

	if (setjmp(j->fail))
		return failed(j);
	read_strip(j, strip);
	return 0;
}

static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	return ((const struct tsi_jpeg *)d)->c.output_scanline;
}

static void decoder_close(struct tsi_decoder *d)
{
	reset(jpeg_of(d));
}

const struct tsi_decoder_ops tsi_jpeg_ops = {
	.name = "JPEG",
	.claims = tsi_jpeg_claims,
	.head = tsi_jpeg_head,
	.create = decoder_create,
	.destroy = decoder_destroy,
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
