/* SPDX-License-Identifier: MIT */
/*
 * jpeg_stock.c - the coefficients of a JPEG file as libjpeg reads them.
 */
#include "test/lib/jpeg_stock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>

struct errors {
	struct jpeg_error_mgr mgr; /* first: libjpeg knows no more */
	jmp_buf out;
};

static void on_error(j_common_ptr c)
{
	struct errors *e = (struct errors *)(void *)c->err;

	longjmp(e->out, 1);
}

static void on_message(j_common_ptr c, int level)
{
	if (level < 0)
		c->err->num_warnings++;
}

static void copy_blocks(struct jpeg_decompress_struct *d,
			jvirt_barray_ptr *array, struct jpeg_stock *out)
{
	for (int i = 0; i < d->num_components; i++) {
		jpeg_component_info *comp = &d->comp_info[i];
		uint32_t h = d->num_components == 1
				     ? 1
				     : (uint32_t)comp->h_samp_factor;
		uint32_t v = d->num_components == 1
				     ? 1
				     : (uint32_t)comp->v_samp_factor;

		out->across[i] = (comp->width_in_blocks + h - 1) / h * h;
		out->down[i] = (comp->height_in_blocks + v - 1) / v * v;
		out->block[i] =
			malloc((size_t)out->across[i] * out->down[i] * 128);
		for (uint32_t y = 0; y < out->down[i]; y++) {
			JBLOCKARRAY row = d->mem->access_virt_barray(
				(j_common_ptr)d, array[i], y, 1, FALSE);

			memcpy(out->block[i] + (size_t)y * out->across[i],
			       row[0], (size_t)out->across[i] * 128);
		}
	}
}

void jpeg_stock_read(const uint8_t *data, size_t len, struct jpeg_stock *out)
{
	struct jpeg_decompress_struct d;
	struct errors e;

	memset(out, 0, sizeof(*out));
	d.err = jpeg_std_error(&e.mgr);
	e.mgr.error_exit = on_error;
	e.mgr.emit_message = on_message;
	jpeg_create_decompress(&d);
	if (setjmp(e.out)) {
		out->refused = true;
	} else {
		jpeg_mem_src(&d, data, len);
		jpeg_read_header(&d, TRUE);
		copy_blocks(&d, jpeg_read_coefficients(&d), out);
		out->warned = e.mgr.num_warnings > 0;
	}
	jpeg_destroy_decompress(&d);
}

void jpeg_stock_free(struct jpeg_stock *c)
{
	for (int i = 0; i < 3; i++)
		free(c->block[i]);
}

void jpeg_stock_alloc(const struct tsi_jpeg_frame *f,
		      const struct tsi_jpeg_area *area,
		      struct tsi_jpeg_blocks *b)
{
	memset(b, 0, sizeof(*b));
	b->area = *area;
	for (int i = 0; i < f->comps; i++) {
		size_t n;

		/* Some blocks more, which nobody may write. */
		b->stride[i] = area->across * f->comp[i].h + 3;
		n = (size_t)b->stride[i] * area->down * f->comp[i].v;
		b->coef[i] = aligned_alloc(64, n * 128);
		b->last[i] = malloc(n);
		memset(b->coef[i], 0x5a, n * 128);
		memset(b->last[i], 0x5a, n);
	}
}

void jpeg_stock_drop(struct tsi_jpeg_blocks *b)
{
	for (int i = 0; i < TSI_JPEG_COMPS; i++) {
		free(b->coef[i]);
		free(b->last[i]);
	}
}

static unsigned last_of(const int16_t *block)
{
	static const uint8_t natural[64] = {
		0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
		12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
		35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
		58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
	};
	unsigned k = 63;

	while (k && !block[natural[k]])
		k--;
	return k;
}

static void check_row(const struct jpeg_stock *c,
		      const struct tsi_jpeg_blocks *b, int i, uint32_t y,
		      uint32_t left, uint32_t top, uint32_t across)
{
	for (uint32_t x = 0; x < b->stride[i]; x++) {
		size_t at = (size_t)y * b->stride[i] + x;
		const int16_t *got = b->coef[i][at];

		if (x >= across) {
			assert_int_equal(got[0], 0x5a5a);
			assert_int_equal(b->last[i][at], 0x5a);
			continue;
		}
		if (memcmp(got,
			   c->block[i][(size_t)(top + y) * c->across[i] + left +
				       x],
			   128))
			fail_msg("component %d: block %u, %u differs", i,
				 left + x, top + y);
		assert_int_equal(b->last[i][at], last_of(got));
	}
}

void jpeg_stock_check(const struct tsi_jpeg_frame *f,
		      const struct jpeg_stock *c,
		      const struct tsi_jpeg_blocks *b)
{
	for (int i = 0; i < f->comps; i++) {
		const struct tsi_jpeg_comp *comp = &f->comp[i];

		for (uint32_t y = 0; y < b->area.down * comp->v; y++)
			check_row(c, b, i, y, b->area.left * comp->h,
				  b->area.top * comp->v,
				  b->area.across * comp->h);
	}
}
