/* SPDX-License-Identifier: MIT */
/*
 * test_packed.c - packed images give back the coefficients of the file that
 * they were made of, by each kind of vector code, and its pixels.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "image/sniff.h"
#include "jpeg/pixels.h"
#include "packed/decoder.h"
#include "packed/expand.h"
#include "test/lib/jpeg_coefs.h"
#include "test/lib/jpeg_region.h"
#include "test/lib/pack_image.h"
#include "test/lib/recipes.h"
#include "test/lib/sanitized.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Blocks of an area, in memory of exactly so many bytes. */
static void take_blocks(const struct tsi_jpeg_frame *f,
			const struct tsi_jpeg_area *a,
			struct tsi_jpeg_blocks *b)
{
	*b = (struct tsi_jpeg_blocks){ .area = *a };
	for (unsigned k = 0; k < f->comps; k++) {
		size_t n = (size_t)a->across * f->comp[k].h * f->comp[k].v;

		b->stride[k] = a->across * f->comp[k].h;
		b->coef[k] = aligned_alloc(64, n * sizeof(*b->coef[k]));
		b->last[k] = malloc(n);
		memset(b->coef[k], 0x55, n * sizeof(*b->coef[k]));
	}
}

/* One row of MCUs of some columns. */
static void check_row(const struct jpeg_coefs *c,
		      const struct tsi_jpeg_packed *p, uint32_t row,
		      const struct tsi_jpeg_area *a, enum tsi_simd level)
{
	struct tsi_expand_kernel expand;
	struct tsi_jpeg_blocks got;

	tsi_expand_kernel_init(&expand, level);
	take_blocks(&c->frame, a, &got);
	tsi_jpeg_packed_row(p, row, &expand, &got);
	for (unsigned k = 0; k < c->frame.comps; k++) {
		const struct tsi_jpeg_comp *comp = &c->frame.comp[k];

		for (uint32_t i = 0; i < got.stride[k] * comp->v; i++) {
			uint32_t y = row * comp->v + i / got.stride[k];
			uint32_t x = a->left * comp->h + i % got.stride[k];
			size_t at = (size_t)y * c->blocks.stride[k] + x;

			if (memcmp(got.coef[k][i], c->blocks.coef[k][at],
				   sizeof(got.coef[k][i])) ||
			    got.last[k][i] != c->blocks.last[k][at])
				fail_msg("%s: row %u, block %u of %u",
					 tsi_simd_name(level), row, i, k);
		}
	}
	jpeg_coefs_free_blocks(&got);
}

static void check_coefs(const struct image_gen_bytes *f,
			const struct image_gen_bytes *packed, uint64_t seed)
{
	struct tsi_jpeg_packed p;
	struct jpeg_coefs c;

	assert_true(jpeg_coefs_read(f, &c));
	assert_int_equal(
		tsi_jpeg_packed_open(&p, packed->data, packed->len, false), 0);
	assert_memory_equal(&p.frame, &c.frame, sizeof(p.frame));
	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++) {
		for (uint32_t y = 0; y < p.frame.mcus_down; y++) {
			struct tsi_jpeg_area a = {
				.across = p.frame.mcus_across
			};

			assert_int_equal(tsi_jpeg_packed_check(&p, y, false),
					 0);
			check_row(&c, &p, y, &a, l);
			a.left = image_gen_random(&seed) % a.across;
			a.across = 1 + image_gen_random(&seed) %
					       (a.across - a.left);
			check_row(&c, &p, y, &a, l);
		}
	}
	jpeg_coefs_free(&c);
}

static void check_pixels(const struct image_gen_bytes *f,
			 const struct image_gen_bytes *packed, uint64_t seed)
{
	unsigned fast = (1u << seed % 5) / 2;
	struct jpeg_picture want = jpeg_region_reference_fast(f, fast);

	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++) {
		struct tsi_decoder *d;
		struct tsi_strip s;
		struct tsi_rect r;
		uint32_t rows = 0, w, h;

		assert_int_equal(tsi_packed_create(l, &d), 0);
		assert_int_equal(
			d->ops->open(d, packed->data, packed->len, &w, &h), 0);
		assert_int_equal(fast ? (w + fast - 1) / fast : w, want.width);
		assert_int_equal(fast ? (h + fast - 1) / fast : h, want.height);
		d->fast = fast;
		w = want.width;
		h = want.height;
		r.left = image_gen_random(&seed) % w;
		r.top = image_gen_random(&seed) % h;
		r.width = 1 + image_gen_random(&seed) % (w - r.left);
		r.height = 1 + image_gen_random(&seed) % (h - r.top);
		assert_true(d->ops->need(d) > 0);
		assert_int_equal(d->ops->begin(d, &r), 0);
		while (rows < r.height) {
			assert_int_equal(d->ops->read(d, &s), 0);
			for (uint32_t y = 0; y < s.rows; y++, rows++)
				for (uint32_t x = 0; x < r.width; x++)
					assert_memory_equal(
						s.pixels + y * s.stride + 4 * x,
						want.rgb + ((size_t)(r.top +
								     rows) *
								    w +
							    r.left + x) *
								   3,
						3);
		}
		assert_int_equal(rows, r.height);
		d->ops->close(d);
		d->ops->destroy(d);
	}
	free(want.rgb);
}

/* pixels: libjpeg gives the same. */
static void packs_without_loss(struct image_gen_bytes f, bool pixels,
			       uint64_t seed)
{
	struct image_gen_bytes packed = pack_image(&f);

	assert_true(packed.len > 0);
	check_coefs(&f, &packed, seed);
	if (pixels)
		check_pixels(&f, &packed, seed);
	free(packed.data);
	free(f.data);
}

static const int factors[][3][2] = {
	{ { 1, 1 }, { 1, 1 }, { 1, 1 } }, { { 2, 2 }, { 1, 1 }, { 1, 1 } },
	{ { 2, 1 }, { 1, 1 }, { 1, 1 } }, { { 1, 2 }, { 1, 1 }, { 1, 1 } },
	{ { 2, 2 }, { 2, 1 }, { 1, 2 } }, { { 1, 1 }, { 2, 2 }, { 1, 1 } },
	{ { 2, 2 }, { 1, 2 }, { 1, 1 } },
};

static void every_file_comes_back(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 160; i++) {
		uint64_t seed = 100 + i;
		struct image_gen_jpeg g = {
			.width = 1 + image_gen_random(&seed) % 200,
			.height = 1 + image_gen_random(&seed) % 120,
			.components = i % 8 == 3 ? 1 : 3,
			.space = i % 8 == 5 ? JCS_RGB : 0,
			.progressive = i % 5 == 1,
			.arithmetic = i % 7 == 2,
			.optimize = i % 3 == 1 && i % 7 != 2,
			.restart_rows = i % 11 == 4,
			.quality = 20 + (int)i % 80,
			.seed = i,
		};

		memcpy(g.factor, factors[i % COUNT(factors)],
		       sizeof(factors[0]));
		packs_without_loss(image_gen_jpeg(&g), true, seed);
	}
}

static void coefficients_of_any_size_come_back(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		uint64_t seed = 7 + i;
		struct jpeg_coefs_random g = {
			.width = 1 + image_gen_random(&seed) % 90,
			.height = 1 + image_gen_random(&seed) % 90,
			.components = i % 4 ? 3 : 1,
			.most = i % 2 ? 1000 : 130,
			.quant = 40,
			.kept = 1 + i % 64,
			.seed = i,
		};

		memcpy(g.factor, factors[i % COUNT(factors)],
		       sizeof(factors[0]));
		packs_without_loss(jpeg_coefs_random(&g),
				   TSI_JPEG_PIXELS_ALWAYS_ALIKE, seed);
	}
}

/* Samples of both presets, through the table of decoders. */
static void records_are_files_like_others(void **state)
{
	static uint8_t want[48 * 48 * 3], got[48 * 48 * 3];
	struct image_gen_jpeg g = {
		.width = 150, .height = 101, .components = 3, .seed = 4
	};
	struct image_gen_bytes f, packed;
	struct tsi_image_head head;

	(void)state;
	memcpy(g.factor, factors[1], sizeof(factors[1]));
	f = image_gen_jpeg(&g);
	packed = pack_image(&f);
	assert_int_equal(tsi_image_sniff(packed.data, 4096, false, &head), 0);
	assert_int_equal(head.width, 150);
	assert_int_equal(head.height, 101);
	assert_int_equal(tsi_image_sniff(packed.data, 15, false, &head),
			 TSOCK_EAGAIN);
	for (unsigned preset = 0; preset < 2; preset++) {
		struct tsi_image_opts o = {
			.recipe = preset ? recipes_eval(60, 48)
					 : recipes_train(48),
			.seed = 3
		};
		struct tsi_image *img;
		struct tsi_box a, b;

		assert_int_equal(tsi_image_create(&o, &img), 0);
		for (uint64_t i = 0; i < 50; i++) {
			assert_int_equal(tsi_image_load(img, f.data, f.len, 0,
							i, want, &a),
					 0);
			assert_int_equal(tsi_image_load(img, packed.data,
							packed.len, 0, i, got,
							&b),
					 0);
			assert_memory_equal(&a, &b, sizeof(a));
			assert_memory_equal(want, got, sizeof(want));
		}
		tsi_image_destroy(img);
	}
	free(f.data);
	free(packed.data);
}

static void left_out(struct image_gen_bytes f)
{
	struct image_gen_bytes p = pack_image(&f);

	assert_int_equal(p.len, 0);
	free(f.data);
}

/* The last refinements are missing: libjpeg smooths it. */
static struct image_gen_bytes unrefined(void)
{
	static const jpeg_scan_info scans[] = {
		{ 3, { 0, 1, 2 }, 0, 0, 0, 1 },
		{ 1, { 0 }, 1, 63, 0, 2 },
		{ 1, { 1 }, 1, 63, 0, 2 },
		{ 1, { 2 }, 1, 63, 0, 2 },
	};
	struct image_gen_jpeg g = { .width = 60,
				    .height = 60,
				    .components = 3,
				    .scans = scans,
				    .scan_count = 4,
				    .seed = 9 };

	return image_gen_jpeg(&g);
}

static void what_isnt_coefficients_alone_is_left_out(void **state)
{
	struct image_gen_jpeg cmyk = {
		.width = 40, .height = 40, .components = 4, .seed = 1
	};
	struct image_gen_jpeg odd = {
		.width = 40,
		.height = 40,
		.components = 3,
		.factor = { { 3, 1 }, { 1, 1 }, { 1, 1 } },
		.seed = 1
	};
	struct image_gen_jpeg plain = {
		.width = 60, .height = 60, .components = 3, .seed = 2
	};
	struct image_gen_bytes f, cut;

	(void)state;
	left_out(image_gen_jpeg(&cmyk));
	left_out(image_gen_jpeg(&odd));
	left_out(unrefined());
	left_out(image_gen_copy("\xff\xd8\xff", 3));
	left_out(image_gen_copy("text", 4));
	f = image_gen_jpeg(&plain);
	/* Without its end mark it is damaged; with bytes behind it isn't. */
	for (size_t n = 0; n < f.len; n += n + 1 < f.len - 3 ? 97 : 1)
		left_out(image_gen_copy(f.data, n));
	left_out(image_gen_copy(f.data, f.len - 1));
	cut = image_gen_copy(f.data, f.len);
	/* A marker in the middle of the data. */
	memcpy(cut.data + cut.len / 2, "\xff\xd3", 2);
	left_out(cut);
	packs_without_loss(f, true, 1);
}

/* Files that a pattern finds below the data's folder, and back; how many. */
static unsigned check_pattern(const char *data, const char *pattern)
{
	unsigned packed = 0;
	char path[600];
	glob_t found;

	snprintf(path, sizeof(path), "%s/%s", data, pattern);
	if (glob(path, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i += SANITIZED ? 3 : 1) {
		struct image_gen_bytes f = { malloc(1 << 20), 0 }, p;
		FILE *file = fopen(found.gl_pathv[i], "rb");

		if (file) {
			f.len = fread(f.data, 1, 1 << 20, file);
			fclose(file);
			p = pack_image(&f);
			if (p.len) {
				packed++;
				check_coefs(&f, &p, (unsigned)i);
				check_pixels(&f, &p, (unsigned)i);
			}
			free(p.data);
		}
		free(f.data);
	}
	print_message("%u of %zu files packed\n", packed, found.gl_pathc);
	assert_int_not_equal(packed, 0);
	globfree(&found);
	return packed;
}

/* Real files, if there are any beside the checkout. */
static void real_files_come_back(void **state)
{
	const char *data = getenv("TSOCK_TEST_DATA");
	unsigned packed;

	(void)state;
	data = data ? data : "/none";
	packed = check_pattern(data, "jpeg-hostile/*");
	packed += check_pattern(data, "imagenet-sample/*/*/*");
	if (!packed)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_comes_back),
		cmocka_unit_test(coefficients_of_any_size_come_back),
		cmocka_unit_test(records_are_files_like_others),
		cmocka_unit_test(what_isnt_coefficients_alone_is_left_out),
		cmocka_unit_test(real_files_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
