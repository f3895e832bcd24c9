/* SPDX-License-Identifier: MIT */
/*
 * kernels_resample.c - both passes of a resize, as the resampler goes through
 * them: their slots work on each other's rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "resample/kernel.h"
#include "test/lib/image_gen.h"
#include "test/lib/kernels.h"
#include "test/lib/resized.h"

#define ROUNDS 600
#define FILTERS (TSI_FILTER_LANCZOS + 1)

static void resize_both(enum tsi_simd simd, bool planes, uint64_t *r,
			uint32_t top)
{
	uint32_t w = 1 + image_gen_random(r) % top;
	uint32_t h = 1 + image_gen_random(r) % top;
	struct resized_picture s = resized_make(w, h, *r);
	struct tsi_axis x = resized_whole(w, 1 + image_gen_random(r) % 300);
	struct tsi_axis y = resized_whole(h, 1 + image_gen_random(r) % 300);
	enum tsi_passes passes = image_gen_random(r) % 2;
	uint8_t *a, *b;

	x.first = image_gen_random(r) % x.out;
	x.count = 1 + image_gen_random(r) % (x.out - x.first);
	y.first = image_gen_random(r) % y.out;
	y.count = 1 + image_gen_random(r) % (y.out - y.first);
	x.mirror = image_gen_random(r) % 2;
	x.filter = y.filter = (enum tsi_filter)(image_gen_random(r) % FILTERS);
	a = resized(TSI_SIMD_SCALAR, &s, &x, &y, passes, 16);
	b = resized_as(simd, planes, &s, &x, &y, passes,
		       1 + image_gen_random(r) % 16);
	assert_memory_equal(a, b, (size_t)x.count * y.count * 3);
	free(a);
	free(b);
	free(s.p);
}

/* Is this the first slot of the level?  Its comparison has all the others in
 * it. */
static bool is_first(const struct kernels_at *k, unsigned *compared)
{
	bool first = !(*compared & 1u << k->level);

	*compared |= 1u << k->level;
	return first;
}

static void compare_pixels(const struct kernels_at *k)
{
	static unsigned compared;
	int rounds = is_first(k, &compared) ? ROUNDS : 0;
	uint64_t state = 11;

	for (int i = 0; i < rounds; i++)
		resize_both(k->level, false, &state, i % 10 ? 200 : 1500);
}

/* Plain C has no planes, but pixels of the same bytes. */
static void compare_planes(const struct kernels_at *k)
{
	static unsigned compared;
	int rounds = is_first(k, &compared) ? ROUNDS : 0;
	uint64_t state = 12;

	for (int i = 0; i < rounds; i++)
		resize_both(k->level, true, &state, i % 10 ? 200 : 1500);
}

KERNELS_INIT(resample)

#define SLOT(name, compare) \
	{ \
#name, offsetof(struct tsi_resample_kernel, name), compare \
	}

/* `pack` is for `across` and `down`, which comes behind across_plane, too. */
const struct kernels_group kernels_resample = {
	.name = "resized_pixels_are_those_of_plain_c",
	.size = sizeof(struct tsi_resample_kernel),
	.init = init_resample,
	.slot = {
		SLOT(pack, compare_pixels),
		SLOT(across, compare_pixels),
		SLOT(down, compare_pixels),
		SLOT(pack_plane, compare_planes),
		SLOT(across_plane, compare_planes),
		SLOT(weave, compare_planes),
	},
};
