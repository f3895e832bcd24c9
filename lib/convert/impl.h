/* SPDX-License-Identifier: MIT */
/*
 * impl.h - what convert.c and its kernels share.  Only they and their tests
 * include it.
 */
#ifndef TSI_CONVERT_IMPL_H
#define TSI_CONVERT_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/simd.h"
#include "convert/convert.h"

/* npixels of src, u8 [npixels, 3], to dst. */
typedef void tsi_convert_fn(const struct tsi_convert *c, const uint8_t *src,
			    size_t npixels, void *dst);

/*
 * 1 / d in two floats: x / d is fma(x, hi, x * lo) for all but very few x.
 * Whether one of the 256 values is such an x is found by trying all of them.
 */
struct tsi_recip {
	float hi, lo;
};

/* The definition as arithmetic, each step rounded to float32. */
struct tsi_convert_arithmetic {
	struct tsi_recip scale;
	float mean[3];
	struct tsi_recip istd[3];
};

struct tsi_convert {
	struct tsi_view_spec spec;
	tsi_convert_fn *run; /* the kernel's slot for the spec */
	/* The definition: what value v of channel ch becomes. */
	union {
		uint8_t u8[3][256];
		uint16_t u16[3][256]; /* float16 and bfloat16 */
		float f32[3][256];
	} table;
	/* The table byte by byte, for processors that look bytes up. */
	uint8_t plane[3][4][256];
	size_t width; /* of an element of dst */
	struct tsi_convert_arithmetic arithmetic;
	struct tsi_convert *grey; /* of images with one channel; NULL in it */
};

struct tsi_convert_kernel {
	tsi_convert_fn *hwc;    /* to any dtype, pixel by pixel */
	tsi_convert_fn *chw;    /* to floats, in planes */
	tsi_convert_fn *chw_u8; /* to bytes, in planes */
};

/* Plain C is the definition's own loop; every other version must equal it. */
void tsi_convert_kernel_init(struct tsi_convert_kernel *k, enum tsi_simd level);
void tsi_convert_kernel_init_x86(struct tsi_convert_kernel *k,
				 enum tsi_simd level);
void tsi_convert_kernel_init_arm(struct tsi_convert_kernel *k,
				 enum tsi_simd level);

/* The kernel's slot that makes what a spec asks for. */
static inline tsi_convert_fn *
tsi_convert_kernel_for(const struct tsi_convert_kernel *k,
		       const struct tsi_view_spec *spec)
{
	if (spec->layout != TSOCK_CHW)
		return k->hwc;
	return spec->dtype == TSOCK_U8 ? k->chw_u8 : k->chw;
}

/* What a kernel needs of it: dtype and layout, bytes of an element, ... */
static inline const struct tsi_view_spec *
tsi_convert_spec(const struct tsi_convert *c)
{
	return &c->spec;
}

static inline size_t tsi_convert_width(const struct tsi_convert *c)
{
	return c->width;
}

/* ... byte number byte of what the 256 values of channel ch become, ... */
static inline const uint8_t *tsi_convert_plane(const struct tsi_convert *c,
					       size_t ch, size_t byte)
{
	return c->plane[ch][byte];
}

/* ... or how to compute it. */
static inline const struct tsi_convert_arithmetic *
tsi_convert_arithmetic(const struct tsi_convert *c)
{
	return &c->arithmetic;
}

extern const struct tsi_convert_kernel tsi_convert_scalar;

/* Pixels first .. npixels-1 by table: those that fill no vector. */
void tsi_scalar_rest(const struct tsi_convert *c, const uint8_t *src,
		     size_t first, size_t npixels, void *dst);

#endif
