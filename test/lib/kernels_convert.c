/* SPDX-License-Identifier: MIT */
/*
 * kernels_convert.c - images from bytes to a view's dtype and layout.
 * test_convert.c compares each version with the definition as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "convert/impl.h"
#include "test/lib/image_gen.h"
#include "test/lib/kernels.h"

#define ROUNDS 300
#define MOST 700 /* pixels */
#define GUARD 64
#define UNTOUCHED 0x5a

static void compare_as(tsi_convert_fn *plain, tsi_convert_fn *version,
		       const struct tsi_view_spec *spec)
{
	static _Alignas(64) uint8_t want[GUARD + MOST * 3 * 4 + GUARD];
	static _Alignas(64) uint8_t got[sizeof(want)];
	struct tsi_convert *c;
	uint64_t seed = 3;

	assert_int_equal(tsi_convert_create(spec, &c), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = image_gen_random(&seed) % (MOST + 1);
		size_t at = image_gen_random(&seed) % (GUARD / 4) * c->width;
		/* Exactly the bytes, so that a sanitizer sees overreading. */
		uint8_t *src = malloc(n * 3 + 1);

		at = i % 4 ? at : 0; /* whole lines are stored otherwise */
		for (size_t k = 0; k <= n * 3; k++)
			src[k] = (uint8_t)image_gen_random(&seed);
		memset(want, UNTOUCHED, sizeof(want));
		memset(got, UNTOUCHED, sizeof(got));
		plain(c, src + 1, n, want + at);
		version(c, src + 1, n, got + at);
		assert_memory_equal(got, want, sizeof(want));
		free(src);
	}
	tsi_convert_destroy(c);
}

/* The dtypes that a slot is for, and what may be made of their values. */
static void compare_dtypes(tsi_convert_fn *plain, tsi_convert_fn *version,
			   uint32_t layout, bool bytes, bool floats)
{
	static const uint32_t dtype[] = { TSOCK_U8, TSOCK_F16, TSOCK_BF16,
					  TSOCK_F32 };

	for (unsigned i = 0; i < 4 * 3; i++) {
		struct tsi_view_spec s = {
			.dtype = dtype[i / 3],
			.layout = layout,
			.normalize = i % 3,
			.mean = { 0.485f, 0.456f, 0.406f },
			.std = { 0.229f, 0.224f, 0.225f },
		};

		if ((i / 3 ? floats : bytes) && !tsi_view_spec_check(&s))
			compare_as(plain, version, &s);
	}
}

static void compare_hwc(const struct kernels_at *k)
{
	const struct tsi_convert_kernel *plain = k->plain, *version = k->kernel;

	compare_dtypes(plain->hwc, version->hwc, TSOCK_HWC, true, true);
}

static void compare_chw(const struct kernels_at *k)
{
	const struct tsi_convert_kernel *plain = k->plain, *version = k->kernel;

	compare_dtypes(plain->chw, version->chw, TSOCK_CHW, false, true);
}

static void compare_chw_u8(const struct kernels_at *k)
{
	const struct tsi_convert_kernel *plain = k->plain, *version = k->kernel;

	compare_dtypes(plain->chw_u8, version->chw_u8, TSOCK_CHW, true, false);
}

KERNELS_INIT(convert)

#define SLOT(name) \
	{ \
#name, offsetof(struct tsi_convert_kernel, name), \
			compare_##name \
	}

const struct kernels_group kernels_convert = {
	.name = "conversions_are_those_of_plain_c",
	.size = sizeof(struct tsi_convert_kernel),
	.init = init_convert,
	.slot = { SLOT(hwc), SLOT(chw), SLOT(chw_u8) },
};
