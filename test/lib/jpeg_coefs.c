/* SPDX-License-Identifier: MIT */
/*
 * jpeg_coefs.c - coefficients by libjpeg.
 */
#include "test/lib/jpeg_coefs.h"

#include <jerror.h>

#include "jpeg/libjpeg.h"
#include "jpeg/zigzag.h"

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
		on_error(c);
}

static uint8_t last_of(const int16_t *coef)
{
	uint8_t last = 0;

	for (int i = 0; i < 64; i++)
		if (coef[i] && tsi_jpeg_zigzag_of[i] > last)
			last = tsi_jpeg_zigzag_of[i];
	return last;
}

static void take_blocks(const struct tsi_jpeg_frame *f,
			const struct tsi_jpeg_area *a,
			struct tsi_jpeg_blocks *b)
{
	*b = (struct tsi_jpeg_blocks){ .area = *a };
	for (int k = 0; k < f->comps; k++) {
		size_t across = a->across * f->comp[k].h;
		size_t n = across * a->down * f->comp[k].v;

		b->stride[k] = (uint32_t)across;
		b->coef[k] = aligned_alloc(64, n * sizeof(*b->coef[k]));
		b->last[k] = malloc(n);
	}
}

static void read_component(j_decompress_ptr c, jvirt_barray_ptr array, int k,
			   struct jpeg_coefs *out)
{
	const struct tsi_jpeg_frame *f = &out->frame;
	uint32_t across = out->blocks.stride[k];
	uint32_t down = f->mcus_down * f->comp[k].v;

	for (uint32_t y = 0; y < down; y++) {
		JBLOCKARRAY rows = c->mem->access_virt_barray(
			(j_common_ptr)c, array, y, 1, FALSE);

		for (uint32_t x = 0; x < across; x++) {
			int16_t *to = out->blocks.coef[k][y * across + x];

			memcpy(to, rows[0][x], 64 * sizeof(*to));
			out->blocks.last[k][y * across + x] = last_of(to);
		}
	}
}

bool jpeg_coefs_read(const struct image_gen_bytes *f, struct jpeg_coefs *out)
{
	struct jpeg_decompress_struct c;
	struct errors err;
	jvirt_barray_ptr *arrays;
	struct tsi_jpeg_area all = { 0 };
	struct jpeg_coefs *volatile made = NULL;

	c.err = jpeg_std_error(&err.mgr);
	err.mgr.error_exit = on_error;
	err.mgr.emit_message = on_message;
	jpeg_create_decompress(&c);
	if (setjmp(err.out)) {
		jpeg_destroy_decompress(&c);
		if (made)
			jpeg_coefs_free(made);
		return false;
	}
	jpeg_mem_src(&c, f->data, f->len);
	jpeg_read_header(&c, TRUE);
	if (c.num_components != 1 && c.num_components != 3)
		ERREXIT(&c, JERR_BAD_J_COLORSPACE);
	arrays = jpeg_read_coefficients(&c);
	tsi_jpeg_lib_frame(&c, &out->frame);
	out->progressive = c.progressive_mode;
	all.across = out->frame.mcus_across;
	all.down = out->frame.mcus_down;
	take_blocks(&out->frame, &all, &out->blocks);
	made = out;
	for (int k = 0; k < c.num_components; k++)
		read_component(&c, arrays[k], k, out);
	jpeg_finish_decompress(&c);
	jpeg_destroy_decompress(&c);
	return true;
}

void jpeg_coefs_free_blocks(struct tsi_jpeg_blocks *b)
{
	for (int k = 0; k < TSI_JPEG_COMPS; k++) {
		free(b->coef[k]);
		free(b->last[k]);
	}
}

void jpeg_coefs_free(struct jpeg_coefs *c)
{
	jpeg_coefs_free_blocks(&c->blocks);
}

void jpeg_coefs_row(const struct jpeg_coefs *c, const struct tsi_jpeg_area *a,
		    uint32_t row, struct tsi_jpeg_blocks *out)
{
	struct tsi_jpeg_area one = { a->left, a->top + row, a->across, 1 };

	take_blocks(&c->frame, &one, out);
	for (int k = 0; k < c->frame.comps; k++) {
		uint32_t h = c->frame.comp[k].h, v = c->frame.comp[k].v;
		uint32_t across = a->across * h;

		for (uint32_t y = 0; y < v; y++) {
			size_t from = (size_t)(one.top * v + y) *
					      c->blocks.stride[k] +
				      one.left * h;

			memcpy(out->coef[k] + y * across,
			       c->blocks.coef[k] + from,
			       across * sizeof(*out->coef[k]));
			memcpy(out->last[k] + y * across,
			       c->blocks.last[k] + from, across);
		}
	}
}

/* ------------------------------------------------------------------------
 * Files
 */

/* That quantisers above 255 are no baseline JPEG's is on purpose. */
static void on_warning(j_common_ptr c, int level)
{
	(void)c;
	(void)level;
}

static int16_t draw(const struct jpeg_coefs_random *g, uint64_t *state)
{
	int most = (int)g->most;

	if (image_gen_random(state) % 64 >= g->kept)
		return 0;
	return (int16_t)((int)(image_gen_random(state) % (2 * g->most + 1)) -
			 most);
}

static void write_component(j_compress_ptr c, const struct jpeg_coefs_random *g,
			    jvirt_barray_ptr array, uint32_t across,
			    uint32_t down, uint64_t *state)
{
	for (uint32_t y = 0; y < down; y++) {
		JBLOCKARRAY rows = c->mem->access_virt_barray(
			(j_common_ptr)c, array, y, 1, TRUE);

		for (uint32_t x = 0; x < across; x++) {
			/* Many blocks have few coefficients, all of them low. */
			int end = 1 << image_gen_random(state) % 7;

			memset(rows[0][x], 0, sizeof(JBLOCK));
			for (int i = 0; i < end; i++)
				rows[0][x][i] = draw(g, state);
			for (int i = 8; i < 64 && end < 64; i += 8)
				if (end > 4)
					rows[0][x][i] = draw(g, state);
		}
	}
}

static void set_up(j_compress_ptr c, const struct jpeg_coefs_random *g,
		   uint64_t *state)
{
	unsigned quant[64];

	c->image_width = g->width;
	c->image_height = g->height;
	c->input_components = g->components;
	c->in_color_space = image_gen_input(g->components);
	jpeg_set_defaults(c);
	for (int t = 0; t < 2; t++) {
		for (int i = 0; i < 64; i++)
			quant[i] = 1 + image_gen_random(state) % g->quant;
		jpeg_add_quant_table(c, t, quant, 100, FALSE);
	}
	for (int k = 0; k < g->components; k++) {
		c->comp_info[k].h_samp_factor = g->factor[k][0];
		c->comp_info[k].v_samp_factor = g->factor[k][1];
	}
}

struct image_gen_bytes jpeg_coefs_random(const struct jpeg_coefs_random *g)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr err;
	jvirt_barray_ptr arrays[3];
	uint32_t across[3], down[3], h_max = 1, v_max = 1;
	unsigned char *out = NULL;
	unsigned long len = 0;
	uint64_t state = g->seed;

	c.err = jpeg_std_error(&err);
	err.emit_message = on_warning;
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &out, &len);
	set_up(&c, g, &state);
	for (int k = 0; k < g->components; k++) {
		uint32_t h = (uint32_t)g->factor[k][0];
		uint32_t v = (uint32_t)g->factor[k][1];

		h_max = h > h_max ? h : h_max;
		v_max = v > v_max ? v : v_max;
	}
	for (int k = 0; k < g->components; k++) {
		uint32_t h = (uint32_t)g->factor[k][0];
		uint32_t v = (uint32_t)g->factor[k][1];

		across[k] = (g->width + 8 * h_max - 1) / (8 * h_max) * h;
		down[k] = (g->height + 8 * v_max - 1) / (8 * v_max) * v;
		arrays[k] = c.mem->request_virt_barray((j_common_ptr)&c,
						       JPOOL_IMAGE, FALSE,
						       across[k], down[k], v);
	}
	jpeg_write_coefficients(&c, arrays);
	for (int k = 0; k < g->components; k++)
		write_component(&c, g, arrays[k], across[k], down[k], &state);
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	return (struct image_gen_bytes){ out, len };
}
