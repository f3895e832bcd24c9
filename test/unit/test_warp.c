/* SPDX-License-Identifier: MIT */
/*
 * test_warp.c - operations that move pixels: their bytes stay as they were when
 * test/parity/test_warp.py found them equal to Pillow's and torchvision's, at
 * every level of vector instructions; and what they refuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/hash.h"
#include "ops/blur.h"
#include "ops/flip.h"
#include "ops/framing.h"
#include "ops/pad.h"
#include "ops/warp.h"
#include "ops/warp_map.h"
#include "resample/resample.h"
#include "test/lib/image_gen.h"

static const uint8_t fill[3] = { 200, 30, 128 };
static const enum tsi_filter filters[] = { TSI_FILTER_NEAREST,
					   TSI_FILTER_BILINEAR,
					   TSI_FILTER_BICUBIC };

static int turned(struct tsi_canvas *c, double degrees, bool expand,
		  const double *centre)
{
	int err = 0;

	for (int f = 0; f < 3 && !err; f++)
		err = tsi_warp_rotate(c, degrees, filters[f], expand, centre,
				      fill);
	return err;
}

static int rotations(struct tsi_canvas *c)
{
	return turned(c, 17, false, NULL);
}

static int rotations_that_grow(struct tsi_canvas *c)
{
	return turned(c, 30, true, NULL);
}

static int right_angles(struct tsi_canvas *c)
{
	const double corner[2] = { 20, 20 };
	int err = turned(c, 90, true, NULL);

	if (!err)
		err = turned(c, 180, false, NULL);
	return err ? err : turned(c, -90, false, corner);
}

static int scales(struct tsi_canvas *c)
{
	const double m[6] = { .7, 0, -3.25, 0, 1.3, 2.5 };

	return tsi_warp_affine(c, 70, 50, m, TSI_FILTER_NEAREST, fill);
}

static int steep_maps(struct tsi_canvas *c)
{
	const double m[6] = { 1200, .5, -35390, .01, 1, 0 };

	return tsi_warp_affine(c, 61, 43, m, TSI_FILTER_NEAREST, fill);
}

static int shears(struct tsi_canvas *c)
{
	double m[6];
	int err;

	tsi_warp_map_shear_x(.3, m);
	err = tsi_warp_affine(c, c->width, c->height, m, TSI_FILTER_NEAREST,
			      fill);
	tsi_warp_map_shear_y(-.2, m);
	if (!err)
		err = tsi_warp_affine(c, c->width, c->height, m,
				      TSI_FILTER_BILINEAR, fill);
	return err;
}

static int affine_transforms(struct tsi_canvas *c)
{
	const struct tsi_warp_affinity a = {
		20, { 3, -5 }, 1.2, { 10, -7 }, { 30.5, 21.5 }
	};
	double m[6];

	tsi_warp_map_affine(&a, m);
	return tsi_warp_affine(c, c->width, c->height, m, TSI_FILTER_BICUBIC,
			       fill);
}

static int perspectives(struct tsi_canvas *c)
{
	const tsi_warp_point start[4] = {
		{ 0, 0 }, { 60, 0 }, { 60, 42 }, { 0, 42 }
	};
	const tsi_warp_point end[4] = {
		{ 5, 3 }, { 50, 9 }, { 58, 40 }, { 1, 33 }
	};
	double m[8];
	int err = 0;

	assert_true(tsi_warp_map_perspective(start, end, m));
	for (int f = 0; f < 3 && !err; f++)
		err = tsi_warp_perspective(c, m, filters[f], fill);
	return err;
}

static int pillow_blurs(struct tsi_canvas *c)
{
	int err = tsi_blur_pillow(c, .7F, 1.9F);

	return err ? err : tsi_blur_pillow(c, 0, 20);
}

static int torchvision_blurs(struct tsi_canvas *c)
{
	return tsi_blur_torchvision(c, 23, 5, 1.3, .4);
}

static int padded(struct tsi_canvas *c, int32_t left, int32_t bottom)
{
	const struct tsi_pad_border b = { left, 3, 90, bottom };
	int err = 0;

	/* A border of equal pixels last: others would only repeat them. */
	for (int m = TSI_PAD_SYMMETRIC; m >= TSI_PAD_CONSTANT && !err; m--)
		err = tsi_pad(c, &b, (enum tsi_pad_mode)m, fill);
	return err;
}

static int borders(struct tsi_canvas *c)
{
	return padded(c, 5, 4);
}

static int borders_that_cut(struct tsi_canvas *c)
{
	return padded(c, -7, -2);
}

static int flips_and_crops(struct tsi_canvas *c)
{
	tsi_flip_crop(c, 3, 5, 50, 30);
	tsi_flip_x(c);
	tsi_flip_crop(c, 0, 2, 49, 27);
	tsi_flip_y(c);
	return 0;
}

static int resized(struct tsi_canvas *c, const struct tsi_rect *part,
		   uint32_t width, uint32_t height, enum tsi_filter filter)
{
	struct tsi_framing g = tsi_framing_of(c->width, c->height);

	assert_true(tsi_framing_crop(&g, part->left, part->top, part->width,
				     part->height, fill));
	assert_true(tsi_framing_resize(&g, width, height, filter));
	return tsi_framing_apply(&g, c);
}

static int resizes(struct tsi_canvas *c)
{
	const struct tsi_rect part = { 7, 1, 50, 40 }, all = { 0, 0, 33, 80 };
	int err = tsi_resample_create(TSI_SIMD_BEST, &c->resample);

	if (!err)
		err = resized(c, &part, 33, 80, TSI_FILTER_BILINEAR);
	if (!err)
		err = resized(c, &all, 71, 29, TSI_FILTER_NEAREST);
	tsi_resample_destroy(c->resample);
	return err;
}

struct known {
	int (*run)(struct tsi_canvas *c);
	uint64_t colour; /* hashes of the results */
	uint64_t grey;
};

static void begin(struct tsi_canvas *c, enum tsi_simd level, unsigned channels)
{
	uint64_t seed = 5;

	tsi_canvas_init(c, level);
	assert_int_equal(tsi_canvas_begin(c, 61, 43, channels), 0);
	for (size_t i = 0; i < tsi_canvas_bytes(c); i++)
		c->pixels[i] = (uint8_t)(image_gen_random(&seed) >> 9);
}

static uint64_t result(const struct known *k, enum tsi_simd level,
		       unsigned channels)
{
	struct tsi_canvas c;
	uint64_t h;

	begin(&c, level, channels);
	assert_int_equal(k->run(&c), 0);
	assert_int_equal(c.channels, channels);
	h = tsi_hash(c.pixels, tsi_canvas_bytes(&c), c.width);
	tsi_canvas_fini(&c);
	return h;
}

static void the_bytes_are_those_that_pillow_makes(void **state)
{
	const struct known *k = *state;

	for (int l = TSI_SIMD_SCALAR; l <= (int)tsi_simd_best(); l++) {
		uint64_t colour = result(k, (enum tsi_simd)l, 3);
		uint64_t grey = result(k, (enum tsi_simd)l, 1);

		print_message("%s: 0x%016llx, 0x%016llx\n", tsi_simd_name(l),
			      (unsigned long long)colour,
			      (unsigned long long)grey);
		assert_true(colour == k->colour);
		assert_true(grey == k->grey);
	}
}

static void a_border_that_leaves_nothing_is_refused(void **state)
{
	static const struct tsi_pad_border none[] = {
		{ -61, 0, 0, 0 },
		{ 0, -40, 0, -3 },
		{ -62, 0, 70, 0 },
	};
	struct tsi_canvas c;

	(void)state;
	begin(&c, TSI_SIMD_BEST, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tsi_pad(&c, &none[i], TSI_PAD_EDGE, fill),
				 TSOCK_EDATA);
		assert_non_null(strstr(tsock_errmsg(), "picture of 61 x 43"));
		assert_int_equal(c.width, 61);
	}
	/* A border of one colour may be wider than the picture. */
	assert_int_equal(tsi_pad(&c, &none[2], TSI_PAD_CONSTANT, fill), 0);
	assert_int_equal(c.width, 69);
	assert_memory_equal(c.pixels, fill, 3);
	tsi_canvas_fini(&c);
}

static void points_in_a_line_have_no_perspective(void **state)
{
	const tsi_warp_point start[4] = {
		{ 0, 0 }, { 60, 0 }, { 60, 42 }, { 0, 42 }
	};
	const tsi_warp_point end[4] = {
		{ 0, 0 }, { 1, 1 }, { 2, 2 }, { 0, 9 }
	};
	double m[8];

	(void)state;
	assert_false(tsi_warp_map_perspective(start, end, m));
	assert_true(tsi_warp_map_perspective(end, start, m));
}

#define KNOWN(run, colour, grey) \
	{ \
#run, the_bytes_are_those_that_pillow_makes, NULL, NULL, \
			&(struct known) \
		{ \
			run, colour, grey \
		} \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KNOWN(rotations, 0x06c1594a0f28b21f, 0xe67a2cde062e6000),
		KNOWN(rotations_that_grow, 0x10828df712e09f81,
		      0x1928c874be1d712b),
		KNOWN(right_angles, 0xb26e54cf9aa3d895, 0x49eddbcaf1fcaff8),
		KNOWN(scales, 0x2944b41d9276a491, 0x776f9675c609e152),
		KNOWN(steep_maps, 0x69ffe53275fe2c03, 0xd43fb96e3e8a642b),
		KNOWN(shears, 0xa8737eeb089b1886, 0x2769f1f513c7c758),
		KNOWN(affine_transforms, 0xb06ca9bcea3a917e,
		      0x044646c8482ece26),
		KNOWN(perspectives, 0xc1e84b9f96cdfe47, 0x700bc748b1e16a8b),
		KNOWN(pillow_blurs, 0x28fac5b66a809bac, 0x729d105fd319d0cb),
		KNOWN(torchvision_blurs, 0x5937edb221f813a6,
		      0xe20b9eeb578758eb),
		KNOWN(borders, 0xda73ba729519a607, 0x3cc74e31196c7bb7),
		KNOWN(borders_that_cut, 0x5faca689633b6ad5, 0x3c2c7e6dc28edcb9),
		KNOWN(flips_and_crops, 0xf5fe1291bcd9676c, 0xefeb602bde377bad),
		KNOWN(resizes, 0x176571cccbcf3bef, 0xaf9663cb3cae9500),
		cmocka_unit_test(a_border_that_leaves_nothing_is_refused),
		cmocka_unit_test(points_in_a_line_have_no_perspective),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
