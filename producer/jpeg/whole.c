/* SPDX-License-Identifier: MIT */
/*
 * whole.c - all coefficients of a JPEG file, by libjpeg.
 *
 * Errors come back by longjmp to tsi_jpeg_whole_open().
 */
#include "jpeg/whole.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "jpeg/libjpeg.h"
#include "jpeg/pixels.h"
#include "pixel/scans.h"

struct tsi_jpeg_whole {
	struct tsi_jpeg_lib lib;
	jvirt_barray_ptr *array; /* of each component */
	struct tsi_jpeg_frame frame;
	/* One row of MCUs. */
	int16_t (*coef)[64];
	size_t cap; /* blocks */
};

int tsi_jpeg_whole_create(struct tsi_jpeg_whole **out)
{
	struct tsi_jpeg_whole *w = calloc(1, sizeof(*w));

	if (!w)
		return tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
	if (setjmp(w->lib.fail)) {
		int err = tsi_jpeg_lib_failed(&w->lib);

		tsi_jpeg_whole_destroy(w);
		return err;
	}
	tsi_jpeg_lib_init(&w->lib);
	*out = w;
	return 0;
}

void tsi_jpeg_whole_destroy(struct tsi_jpeg_whole *w)
{
	if (!w)
		return;
	tsi_jpeg_lib_fini(&w->lib);
	free(w->coef);
	free(w);
}

static void left_out(struct tsi_jpeg_whole *w, const char *why)
{
	tsi_jpeg_lib_bad(&w->lib, why);
}

/* The scans of a hostile file may be more work than it is worth. */
static void check_scans(struct tsi_jpeg_whole *w, const void *data, size_t len)
{
	j_decompress_ptr c = &w->lib.c;
	struct tsi_scan_frame f = { .n = (unsigned)c->num_components,
				    .arithmetic = c->arith_code };
	struct tsi_scan_work work;

	for (unsigned i = 0; i < f.n; i++) {
		const jpeg_component_info *comp = &c->comp_info[i];

		f.id[i] = (uint8_t)comp->component_id;
		f.blocks[i] = (uint64_t)comp->width_in_blocks *
			      comp->height_in_blocks;
	}
	work = tsi_scans_count(&f, data, len);
	if (jpeg_has_multiple_scans(c) && tsi_scans_too_many(&f, &work))
		left_out(w, "JPEG's scans are too much work");
}

static void check_colour(struct tsi_jpeg_whole *w)
{
	j_decompress_ptr c = &w->lib.c;
	J_COLOR_SPACE space = c->jpeg_color_space;

	if (c->num_components == 1 && space == JCS_GRAYSCALE)
		return;
	if (c->num_components != 3 || (space != JCS_YCbCr && space != JCS_RGB))
		left_out(w, "JPEG of colours that aren't packed");
}

/* Every bit of every coefficient has come. */
static void check_complete(struct tsi_jpeg_whole *w)
{
	j_decompress_ptr c = &w->lib.c;

	if (w->lib.ended || w->lib.warned)
		left_out(w, "JPEG is damaged");
	for (int i = 0; i < c->num_components; i++) {
		if (!c->comp_info[i].quant_table)
			left_out(w, "JPEG lacks a component");
		for (int k = 0; c->progressive_mode && k < DCTSIZE2; k++)
			if (c->coef_bits[i][k])
				left_out(w, "JPEG ends before its last scan");
	}
}

static void fill_frame(struct tsi_jpeg_whole *w)
{
	tsi_jpeg_lib_frame(&w->lib.c, &w->frame);
	if (!tsi_jpeg_pixels_can(&w->frame))
		left_out(w, "JPEG of a sampling that isn't packed");
}

/* Room for a row of MCUs. */
static void grow_row(struct tsi_jpeg_whole *w)
{
	size_t n = 0;

	for (unsigned k = 0; k < w->frame.comps; k++)
		n += (size_t)w->frame.mcus_across * w->frame.comp[k].h *
		     w->frame.comp[k].v;
	if (n <= w->cap)
		return;
	free(w->coef);
	w->cap = 0;
	w->coef = aligned_alloc(64, n * sizeof(*w->coef));
	if (!w->coef) {
		w->lib.no_memory = true;
		longjmp(w->lib.fail, 1);
	}
	w->cap = n;
}

int tsi_jpeg_whole_open(struct tsi_jpeg_whole *w, const void *data, size_t len,
			struct tsi_jpeg_frame *frame)
{
	int err;

	tsi_jpeg_lib_reset(&w->lib);
	tsi_jpeg_lib_input(&w->lib, data, len);
	if (setjmp(w->lib.fail)) {
		err = tsi_jpeg_lib_failed(&w->lib);
		/* Whether it is bad isn't the question here. */
		return err == TSOCK_EDATA
			       ? tsi_err(TSOCK_ENOTSUP, "%s", tsock_errmsg())
			       : err;
	}
	jpeg_read_header(&w->lib.c, TRUE);
	check_colour(w);
	check_scans(w, data, len);
	w->lib.in_scan = true;
	w->array = jpeg_read_coefficients(&w->lib.c);
	check_complete(w);
	fill_frame(w);
	grow_row(w);
	*frame = w->frame;
	return 0;
}

/* Coefficients of three components, none of them subsampled, and a row. */
uint64_t tsi_jpeg_whole_need(uint32_t width, uint32_t height)
{
	uint64_t across = ((uint64_t)width + 63) / 32 * 4;
	uint64_t down = ((uint64_t)height + 63) / 32 * 4;

	return across * (down + 4) * 3 * 128 + ((uint64_t)1 << 16);
}

/* Its arrays are in memory, so that reading them can't fail. */
void tsi_jpeg_whole_row(struct tsi_jpeg_whole *w, uint32_t row,
			struct tsi_jpeg_blocks *out)
{
	j_decompress_ptr c = &w->lib.c;
	const struct tsi_jpeg_frame *f = &w->frame;
	int16_t(*to)[64] = w->coef;

	*out = (struct tsi_jpeg_blocks){
		.area = { .across = f->mcus_across, .top = row, .down = 1 },
	};
	for (unsigned k = 0; k < f->comps; k++) {
		uint32_t across = f->mcus_across * f->comp[k].h;

		out->coef[k] = to;
		out->stride[k] = across;
		for (uint32_t y = 0; y < f->comp[k].v; y++) {
			JBLOCKARRAY at = c->mem->access_virt_barray(
				(j_common_ptr)c, w->array[k],
				row * f->comp[k].v + y, 1, FALSE);

			memcpy(to, at[0], across * sizeof(*to));
			to += across;
		}
	}
}

void tsi_jpeg_whole_close(struct tsi_jpeg_whole *w)
{
	tsi_jpeg_lib_reset(&w->lib);
}
