/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_pixels.c - pixels made of coefficients equal those of libjpeg's
 * whole decode, whatever the rectangle, with each kind of vector code.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "jpeg/pixels.h"
#include "test/lib/jpeg_coefs.h"
#include "test/lib/jpeg_region.h"
#include "test/lib/sanitized.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Each kind of vector code, which gives pixels or planes.  All have to make the
 * same of a file, which is read and decoded by libjpeg once for all of them. */
static struct kind {
	enum tsi_simd level;
	bool planes;
	struct tsi_jpeg_pixels *pixels;
} kinds[2 * TSI_SIMD_LEVELS];
static unsigned nkinds;
static unsigned fast;

/* What tsi_jpeg_pixels_can() accepts of what test/lib has, and more. */
static const struct sampling {
	int components;
	J_COLOR_SPACE space;
	int factor[3][2];
} samplings[] = {
	{ 1, 0, { { 1, 1 } } },
	{ 3, 0, { { 1, 1 }, { 1, 1 }, { 1, 1 } } },
	{ 3, 0, { { 2, 1 }, { 1, 1 }, { 1, 1 } } },
	{ 3, 0, { { 2, 2 }, { 1, 1 }, { 1, 1 } } },
	{ 3, 0, { { 1, 2 }, { 1, 1 }, { 1, 1 } } },
	{ 3, JCS_RGB, { { 1, 1 }, { 1, 1 }, { 1, 1 } } },
	{ 3, JCS_RGB, { { 2, 2 }, { 1, 1 }, { 1, 1 } } },
	{ 3, 0, { { 2, 2 }, { 2, 1 }, { 1, 2 } } },
	{ 3, 0, { { 1, 1 }, { 2, 2 }, { 2, 2 } } },
	{ 3, 0, { { 1, 1 }, { 2, 1 }, { 1, 2 } } },
	{ 3, 0, { { 2, 1 }, { 2, 1 }, { 2, 1 } } },
	{ 3, 0, { { 1, 4 }, { 1, 2 }, { 1, 2 } } },
	{ 3, 0, { { 4, 1 }, { 2, 1 }, { 4, 1 } } },
	{ 1, 0, { { 2, 2 } } },
};

static void compare(const struct kind *k, const struct jpeg_picture *want,
		    const struct tsi_rect *r, uint32_t y,
		    const struct tsi_strip *s)
{
	for (uint32_t i = 0; i < s->rows; i++) {
		const uint8_t *a = s->pixels + i * s->stride;
		const uint8_t *b =
			want->rgb +
			((size_t)(r->top + y + i) * want->width + r->left) * 3;

		for (uint32_t x = 0; x < r->width; x++, b += 3) {
			size_t next = s->plane ? s->plane : 1;
			const uint8_t *p = a + (s->plane ? x : 4 * x);

			if (p[0] != b[0] || p[next] != b[1] ||
			    p[2 * next] != b[2])
				fail_msg("%s%s, fast %u, %u x %u: pixel %u, %u "
					 "of the "
					 "region %u x %u at %u, %u is "
					 "%u %u %u, not %u %u %u",
					 tsi_simd_name(k->level),
					 k->planes ? " in planes" : "", fast,
					 want->width, want->height, x, y + i,
					 r->width, r->height, r->left, r->top,
					 p[0], p[next], p[2 * next], b[0], b[1],
					 b[2]);
		}
	}
}

static void check_rect(const struct kind *k, const struct jpeg_coefs *c,
		       const struct jpeg_picture *want,
		       const struct tsi_rect *r)
{
	struct tsi_jpeg_area area;
	uint32_t rows = 0;

	tsi_jpeg_pixels_area(&c->frame, r, fast, &area);
	assert_true(area.left + area.across <= c->frame.mcus_across);
	assert_true(area.top + area.down <= c->frame.mcus_down);
	assert_int_equal(
		tsi_jpeg_pixels_begin(k->pixels, &c->frame, r, fast, k->planes),
		0);
	for (uint32_t y = 0; y < area.down; y++) {
		struct tsi_jpeg_blocks b;
		struct tsi_strip s;

		jpeg_coefs_row(c, &area, y, &b);
		tsi_jpeg_pixels_push(k->pixels, &b, 0);
		jpeg_coefs_free_blocks(&b);
		while (tsi_jpeg_pixels_read(k->pixels, &s)) {
			assert_in_range(s.rows, 1, TSI_STRIP_ROWS);
			assert_int_equal(s.plane > 0, k->planes);
			compare(k, want, r, rows, &s);
			rows += s.rows;
		}
	}
	assert_int_equal(rows, r->height);
}

/* n of the picture's rectangles, or all if n is 0. */
static void check_kind(const struct kind *k, const struct jpeg_coefs *c,
		       const struct jpeg_picture *want, int n, uint64_t seed)
{
	struct tsi_rect r;

	for (int i = 0; i < n; i++) {
		r = jpeg_region_pick(want, i, &seed);
		check_rect(k, c, want, &r);
	}
	for (uint32_t i = 0; !n && i < want->width * want->height; i++) {
		r.left = i % want->width;
		r.top = i / want->width;
		for (r.height = 1; r.top + r.height <= want->height; r.height++)
			for (r.width = 1; r.left + r.width <= want->width;
			     r.width++)
				check_rect(k, c, want, &r);
	}
}

static void check_rects(const struct image_gen_bytes *f,
			const struct jpeg_coefs *c, enum tsi_simd from, int n,
			uint64_t seed)
{
	struct jpeg_picture want = jpeg_region_reference_fast(f, fast);

	for (unsigned i = 0; i < nkinds; i++)
		if (kinds[i].level >= from)
			check_kind(&kinds[i], c, &want, n, seed);
	free(want.rgb);
}

/*
 * Check n rectangles of a file, or all if n is 0, at the levels that begin with
 * `from`: exact ones, and fast ones, half as many and of one size, or of all
 * sizes if n is 0.
 */
static void check_levels(struct image_gen_bytes f, enum tsi_simd from, int n,
			 uint64_t seed)
{
	struct jpeg_coefs c;

	assert_true(jpeg_coefs_read(&f, &c));
	assert_true(tsi_jpeg_pixels_can(&c.frame));
	fast = 0;
	check_rects(&f, &c, from, n, seed);
	for (fast = 1; fast <= 8; fast *= 2)
		if (!n || fast == 1u << (seed + seed / COUNT(samplings)) % 4)
			check_rects(&f, &c, from, (n + 1) / 2, seed);
	jpeg_coefs_free(&c);
	free(f.data);
}

static void check_file(struct image_gen_bytes f, int n, uint64_t seed)
{
	check_levels(f, TSI_SIMD_SCALAR, n, seed);
}

static struct image_gen_bytes make(const struct sampling *s, uint32_t width,
				   uint32_t height, int quality, uint64_t seed)
{
	struct image_gen_jpeg g = {
		.width = width,
		.height = height,
		.components = s->components,
		.space = s->space,
		.quality = quality,
		.seed = seed,
	};

	memcpy(g.factor, s->factor, sizeof(s->factor));
	return image_gen_jpeg(&g);
}

static void every_size_from_1_to_67_decodes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < COUNT(samplings) * 67;
	     i += SANITIZED ? 5 : 1) {
		const struct sampling *s = &samplings[i % COUNT(samplings)];
		uint32_t n = i / COUNT(samplings) + 1;
		int quality = 1 + (int)(i * 37 % 100);

		check_file(make(s, n, 1 + i * 29 % 67, quality, i), 8, i);
		check_file(make(s, 1 + i * 43 % 67, n, quality, i), 8, i);
	}
}

static void every_rectangle_of_a_small_image_decodes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 7; i += SANITIZED ? 3 : 1)
		check_file(make(&samplings[i], 11 + i, 21 - i, 90, i), 0, i);
}

static void rectangles_of_large_images_decode(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < COUNT(samplings) * 3; i++)
		check_file(make(&samplings[i % COUNT(samplings)], 300 + 71 * i,
				250 + i * 13, 1 + (int)i * 17 % 100, i),
			   SANITIZED ? 4 : 8, i);
}

/*
 * Coefficients that no encoder makes, up to where words wrap and sums saturate:
 * as libjpeg's vector code has them.
 */
static void any_coefficients_give_what_libjpeg_makes_of_them(void **state)
{
	static const unsigned most[] = { 3, 40, 127, 300, 1000 };
	static const unsigned quant[] = { 1, 20, 255, 3000, 32767 };

	(void)state;
	if (!TSI_JPEG_PIXELS_ALWAYS_ALIKE) {
		print_message("libjpeg wraps elsewhere on this processor\n");
		skip();
	}
	for (uint32_t i = 0; i < 25 * 20; i++) {
		const struct sampling *s = &samplings[i % 7];
		struct jpeg_coefs_random g = {
			.width = 8 + i * 7 % 90,
			.height = 8 + i * 5 % 40,
			.components = s->components,
			.most = most[i % 5],
			.quant = quant[i / 5 % 5],
			.kept = 1 + i * 11 % 64,
			.seed = i,
		};

		memcpy(g.factor, s->factor, sizeof(g.factor));
		check_file(jpeg_coefs_random(&g), 3, i);
	}
}

static void check_path(const char *path, enum tsi_simd from, unsigned *seen)
{
	struct image_gen_bytes f = { 0 };
	FILE *in = fopen(path, "rb");
	struct jpeg_coefs c;
	bool good;
	long len;

	assert_non_null(in);
	assert_int_equal(fseek(in, 0, SEEK_END), 0);
	len = ftell(in);
	rewind(in);
	f = (struct image_gen_bytes){ malloc((size_t)len + 1), (size_t)len };
	assert_int_equal(fread(f.data, 1, f.len, in), f.len);
	fclose(in);
	good = jpeg_coefs_read(&f, &c);
	if (good)
		jpeg_coefs_free(&c);
	if (good && !c.progressive && tsi_jpeg_pixels_can(&c.frame)) {
		check_levels(f, from, 3, f.len);
		++*seen;
	} else {
		free(f.data);
	}
}

static void baseline_files_at_hand_decode(void **state)
{
	const char *data = getenv("TSOCK_TEST_DATA");
	static const char *const where[] = { "imagenet-sample/*/*/*",
					     "jpeg-hostile/*" };
	/* Plain C is slow: some of the files. */
	size_t step = SANITIZED ? 4 : 1, plain = SANITIZED ? 8 : 9;
	unsigned seen = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(where); i++) {
		char pattern[4096];
		glob_t found;

		snprintf(pattern, sizeof(pattern), "%s/%s",
			 data ? data : "../shared/data", where[i]);
		if (glob(pattern, 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k += step)
			check_path(found.gl_pathv[k],
				   k % plain ? TSI_SIMD_SCALAR + 1
					     : TSI_SIMD_SCALAR,
				   &seen);
		globfree(&found);
	}
	print_message("%u files\n", seen);
	if (!seen)
		skip();
}

static void nothing_is_allocated_once_buffers_have_grown(void **state)
{
	struct image_gen_bytes f = make(&samplings[3], 300, 200, 90, 1);
	struct jpeg_coefs c;

	(void)state;
	assert_true(jpeg_coefs_read(&f, &c));
	for (const struct kind *k = kinds; k < kinds + nkinds; k++) {
		struct tsi_rect r = { 5, 7, 290, 190 };
		struct tsi_strip s = { 0 }, again;

		for (int i = 0; i < 3; i++, r.width -= 100) {
			again = s;
			assert_int_equal(tsi_jpeg_pixels_begin(k->pixels,
							       &c.frame, &r, 0,
							       k->planes),
					 0);
			tsi_jpeg_pixels_push(k->pixels, &c.blocks, 0);
			assert_true(tsi_jpeg_pixels_read(k->pixels, &s));
			assert_true(i == 0 || s.pixels == again.pixels);
		}
	}
	jpeg_coefs_free(&c);
	free(f.data);
}

static void other_samplings_are_declined(void **state)
{
	struct tsi_jpeg_frame f = { .width = 40,
				    .height = 40,
				    .h_max = 2,
				    .v_max = 2,
				    .comps = 3,
				    .color = TSI_JPEG_YCC };

	(void)state;
	for (int k = 0; k < 3; k++)
		f.comp[k].h = f.comp[k].v = k ? 1 : 2;
	assert_true(tsi_jpeg_pixels_can(&f));
	f.h_max = f.comp[0].h = 4;
	assert_false(tsi_jpeg_pixels_can(&f));
	f.h_max = f.comp[0].h = 3;
	assert_false(tsi_jpeg_pixels_can(&f));
	f.h_max = f.comp[0].h = 2;
	f.v_max = f.comp[0].v = 3;
	assert_false(tsi_jpeg_pixels_can(&f));
	f.v_max = f.comp[0].v = 2;
	f.color = TSI_JPEG_GRAY;
	assert_false(tsi_jpeg_pixels_can(&f));
	f.color = TSI_JPEG_YCC;
	f.comps = 2;
	assert_false(tsi_jpeg_pixels_can(&f));
}

static int make_kind(enum tsi_simd level, bool planes)
{
	struct kind *k = &kinds[nkinds];

	if (tsi_jpeg_pixels_create(level, &k->pixels))
		return -1;
	if (planes && !tsi_jpeg_pixels_has_planes(k->pixels)) {
		tsi_jpeg_pixels_destroy(k->pixels);
		return 0;
	}
	k->level = level;
	k->planes = planes;
	print_message("with %s%s\n", tsi_simd_name(level),
		      planes ? " in planes" : "");
	nkinds++;
	return 0;
}

static int make_kinds(void **state)
{
	(void)state;
	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++)
		if (make_kind(l, false) || make_kind(l, true))
			return -1;
	return 0;
}

static int destroy_kinds(void **state)
{
	(void)state;
	while (nkinds)
		tsi_jpeg_pixels_destroy(kinds[--nkinds].pixels);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_from_1_to_67_decodes),
		cmocka_unit_test(every_rectangle_of_a_small_image_decodes),
		cmocka_unit_test(rectangles_of_large_images_decode),
		cmocka_unit_test(
			any_coefficients_give_what_libjpeg_makes_of_them),
		cmocka_unit_test(baseline_files_at_hand_decode),
		cmocka_unit_test(nothing_is_allocated_once_buffers_have_grown),
		cmocka_unit_test(other_samplings_are_declined),
	};

	return cmocka_run_group_tests(tests, make_kinds, destroy_kinds);
}
