/* SPDX-License-Identifier: MIT */
/*
 * jpeg_plain.c - what libjpeg makes of a file.
 */
#include "test/lib/jpeg_plain.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "jpeg/scan.h"

struct plain {
	struct jpeg_error_mgr err; /* first: libjpeg knows no more */
	struct jpeg_source_mgr src;
	struct jpeg_decompress_struct c;
	jmp_buf out;
	bool suspends;
	bool ended;  /* an end marker was given that the file lacks */
	bool rows;   /* the header is behind us */
	bool lacked; /* a marker came instead of data or a restart */
	bool taken;  /* by Pillow */
};

static void give_up(j_common_ptr c)
{
	struct plain *p = (struct plain *)(void *)c->err;

	longjmp(p->out, 1);
}

static void on_message(j_common_ptr c, int level)
{
	struct plain *p = (struct plain *)(void *)c->err;

	/* Pillow reads the header itself, and knows no TEM. */
	if (p->err.msg_code == JTRC_PARMLESS_MARKER &&
	    p->err.msg_parm.i[0] == 1 && !p->rows)
		give_up(c);
	if (level < 0 && p->ended)
		give_up(c);
	if (level < 0 && p->c.unread_marker != JPEG_EOI &&
	    (p->err.msg_code == JWRN_HIT_MARKER ||
	     p->err.msg_code == JWRN_MUST_RESYNC))
		p->lacked = true;
}

static void nothing(j_decompress_ptr c)
{
	(void)c;
}

static boolean fill(j_decompress_ptr c)
{
	static const JOCTET end[2] = { 0xff, JPEG_EOI };
	struct plain *p = c->client_data;

	if (p->suspends)
		return FALSE;
	if (p->ended || (c->arith_code && p->rows))
		give_up((j_common_ptr)c);
	p->ended = true;
	p->src.next_input_byte = end;
	p->src.bytes_in_buffer = 2;
	return TRUE;
}

static void skip(j_decompress_ptr c, long n)
{
	struct plain *p = c->client_data;

	if (n <= 0)
		return;
	if ((size_t)n > p->src.bytes_in_buffer) {
		if (!p->suspends)
			give_up((j_common_ptr)c);
		n = (long)p->src.bytes_in_buffer;
	}
	p->src.next_input_byte += n;
	p->src.bytes_in_buffer -= (size_t)n;
}

static void begin(struct plain *p, const uint8_t *data, size_t len)
{
	p->c.err = jpeg_std_error(&p->err);
	p->err.error_exit = give_up;
	p->err.emit_message = on_message;
	jpeg_create_decompress(&p->c);
	p->c.client_data = p;
	p->src = (struct jpeg_source_mgr){
		.next_input_byte = data,
		.bytes_in_buffer = len,
		.init_source = nothing,
		.fill_input_buffer = fill,
		.skip_input_data = skip,
		.resync_to_restart = jpeg_resync_to_restart,
		.term_source = nothing,
	};
	p->c.src = &p->src;
}

/* A second frame, which libjpeg-turbo 3 refuses before it reads it. */
static bool is_frame(int marker)
{
	return (marker >= 0xc0 && marker <= 0xc2) || marker == 0xc9 ||
	       marker == 0xca;
}

/* Does Pillow take the file?  It has one scan. */
static bool is_taken(const uint8_t *data, size_t len)
{
	static struct plain p;
	JSAMPROW row;

	memset(&p, 0, sizeof(p));
	p.suspends = true;
	if (!setjmp(p.out)) {
		begin(&p, data, len);
		jpeg_read_header(&p.c, TRUE);
		p.rows = true;
		p.c.out_color_space = p.c.jpeg_color_space;
		jpeg_start_decompress(&p.c);
		row = p.c.mem->alloc_large((j_common_ptr)&p.c, JPOOL_IMAGE,
					   (size_t)p.c.output_width *
						   p.c.num_components);
		while (p.c.output_scanline < p.c.output_height)
			if (!jpeg_read_scanlines(&p.c, &row, 1))
				give_up((j_common_ptr)&p.c);
		if (!jpeg_finish_decompress(&p.c) &&
		    is_frame(p.c.unread_marker))
			give_up((j_common_ptr)&p.c);
		p.taken = true;
	}
	jpeg_destroy_decompress(&p.c);
	return p.taken;
}

/* Does a marker that doesn't belong there come in so many bytes? */
static bool comes(const struct plain *p, size_t most)
{
	const uint8_t *b = p->src.next_input_byte;

	for (size_t i = 0; i + 1 < p->src.bytes_in_buffer && i + 1 < most;
	     i++) {
		int m = b[i + 1];

		if (b[i] != 0xff || !m || m == 0xff || (m >= 0xd0 && m <= 0xd7))
			continue;
		return m != JPEG_EOI;
	}
	return false;
}

/* Is there a marker where none should be, as far as rows were read? */
static bool is_doubtful(const struct plain *p)
{
	int m = p->c.unread_marker;
	bool all = p->c.input_iMCU_row == p->c.total_iMCU_rows;
	bool restart = m >= 0xd0 && m <= 0xd7 &&
		       (p->c.restart_interval || !p->c.arith_code);

	if (p->lacked || m == JPEG_EOI)
		return p->lacked;
	return (m && !restart) ||
	       (!p->ended && comes(p, all ? SIZE_MAX : TSI_JPEG_SCAN_NEAR));
}

/* Inverted inks on white paper, as Pillow has it: paper less ink. */
static void to_rgb(const uint8_t *p, int parts, uint8_t *to)
{
	for (int i = 0; i < 3; i++) {
		unsigned t = (255u - p[i]) * p[3] + 128;
		unsigned ink = (t + (t >> 8)) >> 8;

		if (parts == 4)
			to[i] = (uint8_t)(p[3] > ink ? p[3] - ink : 0);
		else
			to[i] = p[i];
	}
}

/* All rows, until there is an error. */
static void read_rows(struct plain *p, const uint8_t *data, size_t len,
		      uint8_t *row, struct jpeg_plain *out)
{
	bool taken = false;

	while (p->c.output_scanline < out->height) {
		uint32_t y = p->c.output_scanline;
		JSAMPROW rows[1] = { row };

		jpeg_read_scanlines(&p->c, rows, 1);
		if (!taken && is_doubtful(p)) {
			taken = is_taken(data, len);
			if (!taken)
				return;
		}
		for (uint32_t x = 0; x < out->width; x++)
			to_rgb(row + 4 * x, p->c.num_components,
			       out->rgb + 3 * ((size_t)y * out->width + x));
		out->rows = y + 1;
	}
}

bool jpeg_plain_read(const uint8_t *data, size_t len, unsigned fast,
		     struct jpeg_plain *out)
{
	static struct plain p;
	static uint8_t *row;

	memset(&p, 0, sizeof(p));
	memset(out, 0, sizeof(*out));
	row = NULL;
	if (!setjmp(p.out)) {
		begin(&p, data, len);
		jpeg_read_header(&p.c, TRUE);
		p.rows = true;
		out->many = jpeg_has_multiple_scans(&p.c);
		p.c.out_color_space =
			p.c.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
		if (fast) {
			p.c.scale_num = 1;
			p.c.scale_denom = fast;
			p.c.do_fancy_upsampling = FALSE;
		}
		jpeg_calc_output_dimensions(&p.c);
		out->width = p.c.output_width;
		out->height = p.c.output_height;
		if (!out->many) {
			jpeg_start_decompress(&p.c);
			row = malloc(4 * (size_t)out->width);
			out->rgb = malloc(3 * (size_t)out->width * out->height);
			read_rows(&p, data, len, row, out);
		}
	}
	free(row);
	jpeg_destroy_decompress(&p.c);
	return p.rows;
}
