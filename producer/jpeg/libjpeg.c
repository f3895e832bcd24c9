/* SPDX-License-Identifier: MIT */
/*
 * libjpeg.c - libjpeg's decompressor with an error, a source and a memory
 * manager of our own.
 */
#include "jpeg/libjpeg.h"

#include "base/err.h"
#include "pixel/decoder.h"

/* The coefficients of the largest progressive image that is let in. */
#define COEFFICIENTS_MAX ((long)1536 << 20)

static struct tsi_jpeg_lib *lib_behind(j_common_ptr c)
{
	return c->client_data;
}

static void on_error(j_common_ptr c)
{
	longjmp(lib_behind(c)->fail, 1);
}

void tsi_jpeg_lib_bad(struct tsi_jpeg_lib *l, const char *reason)
{
	l->reason = reason;
	longjmp(l->fail, 1);
}

void tsi_jpeg_lib_truncated(struct tsi_jpeg_lib *l)
{
	tsi_jpeg_lib_bad(
		l,
		"JPEG is truncated: its data ends above the last row needed");
}

void tsi_jpeg_lib_fail(struct tsi_jpeg_lib *l, int err)
{
	l->failed = err;
	longjmp(l->fail, 1);
}

/* TEM (0x01) in the header: libjpeg lets it pass, Pillow knows no such marker.
 */
static bool is_tem(const struct tsi_jpeg_lib *l)
{
	return l->err.msg_code == JTRC_PARMLESS_MARKER && !l->in_scan &&
	       l->err.msg_parm.i[0] == 0x01;
}

/*
 * Where data by Huffman or a restart were due, there was a marker that isn't
 * the end's.  At a restart libjpeg may skip it, so this message is all that is
 * left of it.
 */
static bool is_stray(const struct tsi_jpeg_lib *l)
{
	int code = l->err.msg_code;

	return (code == JWRN_HIT_MARKER || code == JWRN_MUST_RESYNC) &&
	       l->c.unread_marker != JPEG_EOI;
}

/*
 * Warnings are what Pillow lets pass, so they pass here; but once the data
 * has ended they mean that some of it is missing.
 */
static void on_message(j_common_ptr c, int level)
{
	struct tsi_jpeg_lib *l = lib_behind(c);

	if (is_tem(l))
		tsi_jpeg_lib_bad(l, "bad JPEG: marker 0x01 in its header");
	if (level >= 0)
		return;
	l->warned = true;
	if (is_stray(l))
		l->strayed = true;
	if (l->ended)
		tsi_jpeg_lib_truncated(l);
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
	struct tsi_jpeg_lib *l = lib_behind((j_common_ptr)c);

	/*
	 * The arithmetic decoder accepts any number of zeros after a marker
	 * without a warning, so it can't tell the end from a loss.
	 */
	if (l->ended || (c->arith_code && l->in_scan))
		tsi_jpeg_lib_truncated(l);
	l->ended = true;
	l->src.next_input_byte = end;
	l->src.bytes_in_buffer = sizeof(end);
	return TRUE;
}

static void source_skip(j_decompress_ptr c, long n)
{
	struct tsi_jpeg_lib *l = lib_behind((j_common_ptr)c);

	if (n <= 0)
		return;
	if ((size_t)n > l->src.bytes_in_buffer)
		tsi_jpeg_lib_truncated(l);
	l->src.next_input_byte += n;
	l->src.bytes_in_buffer -= (size_t)n;
}

static void source_term(j_decompress_ptr c)
{
	(void)c;
}

void *tsi_jpeg_lib_alloc(struct tsi_jpeg_lib *l, size_t len)
{
	void *p = tsi_arena_alloc(&l->arena, len);

	if (!p) {
		l->no_memory = true;
		longjmp(l->fail, 1);
	}
	return p;
}

static void *alloc(j_common_ptr c, size_t len)
{
	return tsi_jpeg_lib_alloc(lib_behind(c), len);
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

void tsi_jpeg_lib_init(struct tsi_jpeg_lib *l)
{
	j_decompress_ptr c = &l->c;

	c->err = jpeg_std_error(&l->err);
	l->err.error_exit = on_error;
	l->err.emit_message = on_message;
	l->err.output_message = on_output;
	c->client_data = l;
	jpeg_create_decompress(c);
	l->ready = true;
	l->src.init_source = source_init;
	l->src.fill_input_buffer = source_fill;
	l->src.skip_input_data = source_skip;
	l->src.resync_to_restart = jpeg_resync_to_restart;
	l->src.term_source = source_term;
	c->src = &l->src;
	c->mem->max_memory_to_use = COEFFICIENTS_MAX;
	c->mem->alloc_small = mem_alloc;
	c->mem->alloc_large = mem_alloc;
	c->mem->alloc_sarray = mem_samples;
	c->mem->alloc_barray = mem_blocks;
}

void tsi_jpeg_lib_fini(struct tsi_jpeg_lib *l)
{
	if (l->ready)
		jpeg_destroy_decompress(&l->c);
	tsi_arena_fini(&l->arena);
}

void tsi_jpeg_lib_input(struct tsi_jpeg_lib *l, const void *data, size_t len)
{
	l->src.next_input_byte = data;
	l->src.bytes_in_buffer = len;
}

void tsi_jpeg_lib_reset(struct tsi_jpeg_lib *l)
{
	j_decompress_ptr c = &l->c;

	jpeg_abort_decompress(c);
	tsi_arena_reset(&l->arena, TSI_SCRATCH_KEEP);
	/* Tables live in the arena too: a file that lacks its own gets none. */
	for (int i = 0; i < NUM_QUANT_TBLS; i++)
		c->quant_tbl_ptrs[i] = NULL;
	for (int i = 0; i < NUM_HUFF_TBLS; i++) {
		c->dc_huff_tbl_ptrs[i] = NULL;
		c->ac_huff_tbl_ptrs[i] = NULL;
	}
	c->err->reset_error_mgr((j_common_ptr)c);
	l->reason = NULL;
	l->ended = false;
	l->in_scan = false;
	l->warned = false;
	l->strayed = false;
	l->failed = 0;
	l->no_memory = false;
}

int tsi_jpeg_lib_failed(struct tsi_jpeg_lib *l)
{
	char text[JMSG_LENGTH_MAX];
	int code = l->err.msg_code;

	if (!l->reason && !l->no_memory && code)
		l->err.format_message((j_common_ptr)&l->c, text);
	if (l->ready)
		jpeg_abort_decompress(&l->c);
	if (l->failed)
		return l->failed;
	if (l->no_memory || code == JERR_OUT_OF_MEMORY)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode a JPEG");
	if (l->reason)
		return tsi_err(TSOCK_EDATA, "%s", l->reason);
	if (code == JERR_NO_BACKING_STORE)
		return tsi_err(TSOCK_EDATA,
			       "JPEG needs more than %ld MB to "
			       "decode",
			       COEFFICIENTS_MAX >> 20);
	if (l->ended)
		return tsi_err(TSOCK_EDATA, "JPEG is truncated: %s", text);
	return tsi_err(TSOCK_EDATA, "bad JPEG: %s", text);
}

void tsi_jpeg_lib_frame(const struct jpeg_decompress_struct *c,
			struct tsi_jpeg_frame *f)
{
	bool one = c->num_components == 1;

	*f = (struct tsi_jpeg_frame){
		.width = c->image_width,
		.height = c->image_height,
		.comps = (uint8_t)c->num_components,
		.h_max = one ? 1 : (uint8_t)c->max_h_samp_factor,
		.v_max = one ? 1 : (uint8_t)c->max_v_samp_factor,
		.color = one                              ? TSI_JPEG_GRAY
			 : c->jpeg_color_space == JCS_RGB ? TSI_JPEG_RGB
							  : TSI_JPEG_YCC,
	};
	f->mcus_across = (f->width + 8u * f->h_max - 1) / (8u * f->h_max);
	f->mcus_down = (f->height + 8u * f->v_max - 1) / (8u * f->v_max);
	for (int k = 0; k < c->num_components; k++) {
		const jpeg_component_info *comp = &c->comp_info[k];

		f->comp[k].h = one ? 1 : (uint8_t)comp->h_samp_factor;
		f->comp[k].v = one ? 1 : (uint8_t)comp->v_samp_factor;
		for (int i = 0; i < 64; i++)
			f->comp[k].quant[i] = comp->quant_table->quantval[i];
	}
}
