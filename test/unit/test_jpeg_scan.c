/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_scan.c - the markers of the files that our decoder takes mean what
 * libjpeg makes of them; all other files are declined.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jpeg/scan.h"
#include "test/lib/image_gen.h"

static struct image_gen_jpeg plain(void)
{
	return (struct image_gen_jpeg){ .width = 50,
					.height = 40,
					.components = 3,
					.factor = { { 2, 2 } } };
}

static bool takes(const struct image_gen_bytes *f)
{
	/* A copy, so that a sanitizer sees overreading. */
	struct image_gen_bytes c = image_gen_copy(f->data, f->len);
	struct tsi_jpeg_scan s;
	bool ok = tsi_jpeg_scan_read(c.data, c.len, &s);

	free(c.data);
	return ok;
}

static bool takes_made(const struct image_gen_jpeg *g)
{
	struct image_gen_bytes f = image_gen_jpeg(g);
	bool ok = takes(&f);

	free(f.data);
	return ok;
}

/* The first byte of the n-th marker of a kind, counted from 0. */
static uint8_t *find(struct image_gen_bytes *f, uint8_t marker, int n)
{
	size_t at = 2;

	while (f->data[at + 1] != marker || n--)
		at += 2 + (size_t)(f->data[at + 2] << 8) + f->data[at + 3];
	return f->data + at;
}

static void on_output(j_common_ptr c)
{
	(void)c;
}

/* libjpeg's own account of the file. */
static void libjpeg_says_the_same(const struct image_gen_bytes *f)
{
	enum tsi_jpeg_color color[] = { [JCS_GRAYSCALE] = TSI_JPEG_GRAY,
					[JCS_YCbCr] = TSI_JPEG_YCC,
					[JCS_RGB] = TSI_JPEG_RGB };
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr err;
	struct tsi_jpeg_scan s;

	assert_true(tsi_jpeg_scan_read(f->data, f->len, &s));
	c.err = jpeg_std_error(&err);
	err.output_message = on_output;
	jpeg_create_decompress(&c);
	jpeg_mem_src(&c, f->data, f->len);
	jpeg_read_header(&c, TRUE);
	assert_int_equal(s.frame.width, c.image_width);
	assert_int_equal(s.frame.height, c.image_height);
	assert_int_equal(s.frame.comps, c.num_components);
	assert_int_equal(s.frame.color, color[c.jpeg_color_space]);
	assert_ptr_equal(f->data + s.data, c.src->next_input_byte);
	for (int i = 0; i < c.num_components; i++) {
		jpeg_component_info *p = &c.comp_info[i];
		JQUANT_TBL *q = c.quant_tbl_ptrs[p->quant_tbl_no];
		JHUFF_TBL *dc = c.dc_huff_tbl_ptrs[p->dc_tbl_no];
		JHUFF_TBL *ac = c.ac_huff_tbl_ptrs[p->ac_tbl_no];

		for (int k = 0; k < 64; k++)
			assert_int_equal(s.frame.comp[i].quant[k],
					 q->quantval[k]);
		assert_memory_equal(s.dc[i].count, dc->bits + 1, 16);
		assert_memory_equal(s.ac[i].count, ac->bits + 1, 16);
		assert_memory_equal(s.ac[i].symbol, ac->huffval, 2);
		if (c.num_components == 3) {
			assert_int_equal(s.frame.comp[i].h, p->h_samp_factor);
			assert_int_equal(s.frame.comp[i].v, p->v_samp_factor);
		}
	}
	jpeg_destroy_decompress(&c);
}

static void headers_mean_what_libjpeg_reads(void **state)
{
	static const int factor[][2] = {
		{ 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 }
	};

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct image_gen_jpeg g = plain();
		struct image_gen_bytes f;

		g.width = 1 + (uint32_t)i * 3;
		g.components = i % 5 ? 3 : 1;
		g.factor[0][0] = factor[i % 4][0];
		g.factor[0][1] = factor[i % 4][1];
		g.space = i % 7 == 6 && i % 5 ? JCS_RGB : 0;
		g.optimize = i % 2;
		f = image_gen_jpeg(&g);
		libjpeg_says_the_same(&f);
		free(f.data);
	}
}

/* Without a JFIF marker the Adobe marker counts, then the components' names. */
static void colours_are_told_apart_as_libjpeg_does(void **state)
{
	static const uint8_t adobe[16] = { 0xff, 0xee, 0,   14, 'A', 'd',
					   'o',  'b',  'e', 0,  100 };
	static const uint8_t ids[][3] = { { 1, 2, 3 },
					  { 'R', 'G', 'B' },
					  { 0, 1, 2 } };

	(void)state;
	for (int i = 0; i < 3 * 3 * 2; i++) {
		struct image_gen_jpeg g = plain();
		struct image_gen_bytes f = image_gen_jpeg(&g), c;
		const uint8_t *id = ids[i % 3];

		for (int k = 0; k < 3; k++) {
			find(&f, 0xc0, 0)[10 + 3 * k] = id[k];
			find(&f, 0xda, 0)[5 + 2 * k] = id[k];
		}
		/* The JFIF marker becomes a comment. */
		if (i / 9)
			f.data[3] = 0xfe;
		c = (struct image_gen_bytes){ malloc(f.len + 16), f.len + 16 };
		memcpy(c.data, f.data, 2);
		memcpy(c.data + 2, adobe, 16);
		c.data[2 + 15] = (uint8_t)(i / 3 % 3);
		memcpy(c.data + 18, f.data + 2, f.len - 2);
		libjpeg_says_the_same(&f);
		libjpeg_says_the_same(&c);
		free(c.data);
		free(f.data);
	}
}

static void other_processes_are_declined(void **state)
{
	static const jpeg_scan_info scans[] = { { 1, { 0 }, 0, 63, 0, 0 },
						{ 2, { 1, 2 }, 0, 63, 0, 0 } };
	struct image_gen_jpeg g = plain();

	(void)state;
	assert_true(takes_made(&g));
	g.progressive = true;
	assert_false(takes_made(&g));
	g = plain();
	g.arithmetic = true;
	assert_false(takes_made(&g));
	g = plain();
	g.restart_rows = 1;
	assert_false(takes_made(&g));
	g = plain();
	g.components = 4;
	assert_false(takes_made(&g));
	g = plain();
	g.factor[0][0] = 4;
	assert_false(takes_made(&g));
	g = plain();
	g.factor[1][0] = 2;
	assert_false(takes_made(&g));
	g = plain();
	g.scans = scans;
	g.scan_count = 2;
	assert_false(takes_made(&g));
}

/* What libjpeg refuses, repairs or warns of is left to libjpeg. */
static void damaged_markers_are_declined(void **state)
{
	struct image_gen_jpeg g = plain();

	(void)state;
	for (int i = 0; i < 18; i++) {
		struct image_gen_bytes f = image_gen_jpeg(&g);
		uint8_t *sof = find(&f, 0xc0, 0), *sos = find(&f, 0xda, 0);
		uint8_t *dqt = find(&f, 0xdb, 0), *dht = find(&f, 0xc4, 0);
		uint8_t *at[] = {
			f.data + 1, dqt,      dqt + 4,  dqt + 5, dht + 4,
			dht + 5,    dht + 3,  sof + 4,  sof + 9, sof + 11,
			sof + 12,   sof + 13, sos + 4,  sos + 5, sos + 6,
			sos + 11,   sos + 12, sos + 13,
		};
		static const uint8_t value[] = {
			0xd9, 0, 0x10, 0, 0x22, 9,    9, 12, 2,
			0,    7, 1,    1, 9,    0x99, 1, 62, 1,
		};

		*at[i] = value[i];
		if (takes(&f))
			fail_msg("damage %d is taken", i);
		free(f.data);
	}
}

static void a_header_cut_anywhere_is_declined(void **state)
{
	struct image_gen_jpeg g = plain();
	struct image_gen_bytes f = image_gen_jpeg(&g), c = f;
	struct tsi_jpeg_scan s;

	(void)state;
	assert_true(tsi_jpeg_scan_read(f.data, f.len, &s));
	for (c.len = 0; c.len < s.data; c.len++)
		assert_false(takes(&c));
	assert_true(takes(&c));
	free(f.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_mean_what_libjpeg_reads),
		cmocka_unit_test(colours_are_told_apart_as_libjpeg_does),
		cmocka_unit_test(other_processes_are_declined),
		cmocka_unit_test(damaged_markers_are_declined),
		cmocka_unit_test(a_header_cut_anywhere_is_declined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
