/* SPDX-License-Identifier: MIT */
/*
 * verdict.c - does Pillow take a damaged JPEG file?
 *
 * Pillow gives libjpeg the file piece by piece, and where libjpeg wants more
 * than there is, the file is truncated; unless all rows have come by then.
 */
#include "jpeg/verdict.h"

#include "base/err.h"
#include "jpeg/libjpeg.h"

struct verdict {
	struct jpeg_decompress_struct c; /* its client_data is this struct */
	struct jpeg_error_mgr err;
	struct jpeg_source_mgr src;
	jmp_buf end;
	const char *reason; /* where libjpeg doesn't say it */
	bool has_rows;      /* all of them */
	bool taken;
};

static void on_error(j_common_ptr c)
{
	struct verdict *v = c->client_data;

	longjmp(v->end, 1);
}

static void on_message(j_common_ptr c, int level)
{
	(void)c;
	(void)level;
}

static void nothing(j_decompress_ptr c)
{
	(void)c;
}

/* The marker of a second frame: libjpeg-turbo 2 reads all of it first. */
static bool at_frame(j_decompress_ptr c)
{
	int m = c->unread_marker;

	return (m >= 0xc0 && m <= 0xc2) || m == 0xc9 || m == 0xca;
}

static boolean source_fill(j_decompress_ptr c)
{
	struct verdict *v = c->client_data;

	if (!v->has_rows)
		v->reason = "JPEG is truncated";
	else if (at_frame(c))
		v->reason = "bad JPEG: it has two frames";
	else
		v->taken = true;
	longjmp(v->end, 1);
}

static void source_skip(j_decompress_ptr c, long n)
{
	if (n <= 0)
		return;
	if ((size_t)n > c->src->bytes_in_buffer)
		source_fill(c);
	c->src->next_input_byte += n;
	c->src->bytes_in_buffer -= (size_t)n;
}

static void begin_verdict(struct verdict *v, const void *data, size_t len)
{
	v->c.err = jpeg_std_error(&v->err);
	v->err.error_exit = on_error;
	v->err.emit_message = on_message;
	v->c.client_data = v;
	jpeg_create_decompress(&v->c);
	v->src = (struct jpeg_source_mgr){
		.next_input_byte = data,
		.bytes_in_buffer = len,
		.init_source = nothing,
		.fill_input_buffer = source_fill,
		.skip_input_data = source_skip,
		.resync_to_restart = jpeg_resync_to_restart,
		.term_source = nothing,
	};
	v->c.src = &v->src;
}

static void decode(struct verdict *v)
{
	j_decompress_ptr c = &v->c;
	JSAMPROW row;

	jpeg_read_header(c, TRUE);
	/* Nobody looks at the pixels. */
	c->out_color_space = c->jpeg_color_space;
	c->scale_num = 1;
	c->scale_denom = 8;
	c->do_fancy_upsampling = FALSE;
	jpeg_start_decompress(c);
	row = c->mem->alloc_large((j_common_ptr)c, JPOOL_IMAGE,
				  (size_t)c->output_width *
					  (size_t)c->output_components);
	while (c->output_scanline < c->output_height)
		jpeg_read_scanlines(c, &row, 1);
	v->has_rows = true;
	jpeg_finish_decompress(c);
	v->taken = true;
}

static int verdict_failed(struct verdict *v)
{
	char text[JMSG_LENGTH_MAX];

	if (v->reason)
		return tsi_err(TSOCK_EDATA, "%s", v->reason);
	if (v->err.msg_code == JERR_OUT_OF_MEMORY)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode a JPEG");
	v->err.format_message((j_common_ptr)&v->c, text);
	return tsi_err(TSOCK_EDATA, "bad JPEG: %s", text);
}

static int judge(struct verdict *v, const void *data, size_t len)
{
	int err;

	if (!setjmp(v->end)) {
		begin_verdict(v, data, len);
		decode(v);
	}
	err = v->taken ? 0 : verdict_failed(v);
	jpeg_destroy_decompress(&v->c);
	return err;
}

int tsi_jpeg_verdict(const void *data, size_t len)
{
	struct verdict v = { .taken = false };

	return judge(&v, data, len);
}
