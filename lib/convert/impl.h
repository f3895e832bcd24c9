/* SPDX-License-Identifier: MIT */
/*
 * impl.h - what convert.c and its kernels share.  Only they and their test
 * include it.
 */
#ifndef TSI_CONVERT_IMPL_H
#define TSI_CONVERT_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	const struct tsi_convert_kernel *kernel;
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
};

struct tsi_convert_kernel {
	const char *name;
	/* Can the processor run the kernel, and does it know this spec? */
	bool (*fits)(const struct tsi_view_spec *spec);
	tsi_convert_fn *run;
};

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

/* The definition's own loop; every other kernel must equal it. */
extern const struct tsi_convert_kernel tsi_convert_scalar;
extern const struct tsi_convert_kernel tsi_convert_avx2;
extern const struct tsi_convert_kernel tsi_convert_avx512;
extern const struct tsi_convert_kernel tsi_convert_neon;

/* The fastest kernel first, the scalar one last; NULL ends the list. */
extern const struct tsi_convert_kernel *const tsi_convert_kernels[];

/* Pixels first .. npixels-1 by table: those that fill no vector. */
void tsi_scalar_rest(const struct tsi_convert *c, const uint8_t *src,
		     size_t first, size_t npixels, void *dst);

#endif
