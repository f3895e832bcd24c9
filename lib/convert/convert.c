/* SPDX-License-Identifier: MIT */
/*
 * convert.c - one sample's image from u8 HWC to a view's dtype and layout.
 *
 * A table of 3 x 256 entries, made once with torchvision's own operations, is
 * the definition.  A vector kernel computes the same values anew, which is
 * faster than looking them up; it is taken only after it gave every entry of
 * the table bit for bit.
 *
 * Never reads beyond the image, never writes beyond dst, and asks nothing of
 * dst's alignment beyond an element's.
 */
#include "convert/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "convert/impl.h"

/* Round to nearest, ties to even, as IEEE 754 and torch's .half() do. */
static uint16_t half_of(float f)
{
	uint32_t u, sign, mant, rest, half;
	int exp, shift;

	memcpy(&u, &f, sizeof(u));
	sign = u >> 16 & 0x8000;
	exp = (int)(u >> 23 & 0xff) - 127;
	mant = u & 0x7fffff;
	if (exp == 128)
		return (uint16_t)(sign | 0x7c00 | (mant ? 0x200 : 0));
	if (exp > 15)
		return (uint16_t)(sign | 0x7c00);
	if (exp < -25)
		return (uint16_t)sign;
	/* Below 2^-14 the result is subnormal: bits leave one by one. */
	shift = exp < -14 ? 13 - 14 - exp : 13;
	mant |= 0x800000;
	rest = mant & ((1u << shift) - 1);
	half = mant >> shift;
	if (exp >= -14)
		half += (uint32_t)(exp + 14) << 10;
	if (rest > 1u << (shift - 1) ||
	    (rest == 1u << (shift - 1) && (half & 1)))
		half++; /* a carry into the exponent is what it should be */
	return (uint16_t)(sign | half);
}

/* The nearest bfloat16, the upper half of a float32. */
static uint16_t bfloat_of(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	if (isnan(f))
		return 0x7fc0;
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/* Each step is one rounded float32 operation: keep them apart. */
static float value_of(const struct tsi_view_spec *spec, int ch, int v)
{
	float x = (float)v;

	if (spec->normalize != TSOCK_RAW)
		x = x / 255.0f;
	if (spec->normalize == TSOCK_MEAN_STD) {
		x = x - spec->mean[ch];
		x = x / spec->std[ch];
	}
	return x;
}

static void fill_values(struct tsi_convert *c)
{
	for (int ch = 0; ch < 3; ch++) {
		for (int v = 0; v < 256; v++) {
			float x = value_of(&c->spec, ch, v);

			switch (c->spec.dtype) {
			case TSOCK_U8:
				c->table.u8[ch][v] = (uint8_t)v;
				break;
			case TSOCK_F16:
				c->table.u16[ch][v] = half_of(x);
				break;
			case TSOCK_BF16:
				c->table.u16[ch][v] = bfloat_of(x);
				break;
			default:
				c->table.f32[ch][v] = x;
			}
		}
	}
}

static void fill_planes(struct tsi_convert *c)
{
	const uint8_t *t = c->table.u8[0];

	for (size_t i = 0; i < (size_t)3 * 256; i++)
		for (size_t b = 0; b < c->width; b++)
			c->plane[i / 256][b][i % 256] = t[i * c->width + b];
}

static struct tsi_recip recip(double d)
{
	struct tsi_recip r;

	r.hi = (float)(1 / d);
	r.lo = (float)(1 / d - (double)r.hi);
	return r;
}

/* RAW and UNIT are the same arithmetic with numbers that change nothing. */
static void fill_arithmetic(struct tsi_convert *c)
{
	struct tsi_convert_arithmetic *a = &c->arithmetic;
	bool norm = c->spec.normalize == TSOCK_MEAN_STD;

	a->scale = recip(c->spec.normalize == TSOCK_RAW ? 1 : 255);
	for (int ch = 0; ch < 3; ch++) {
		a->mean[ch] = norm ? c->spec.mean[ch] : 0;
		a->istd[ch] = recip(norm ? (double)c->spec.std[ch] : 1);
	}
}

/* Whether a version gives every entry of the table. */
static bool proven(const struct tsi_convert *c, tsi_convert_fn *run)
{
	uint8_t src[256 * 3];
	float want[256 * 3], got[256 * 3]; /* the widest dtype */
	size_t len = sizeof(src) * c->width;

	for (int i = 0; i < 256 * 3; i++)
		src[i] = (uint8_t)(i / 3);
	tsi_convert_kernel_for(&tsi_convert_scalar, &c->spec)(c, src, 256,
							      want);
	run(c, src, 256, got);
	return memcmp(want, got, len) == 0;
}

/* The highest level's version that is proven; the scalar one always is. */
static tsi_convert_fn *choose_kernel(const struct tsi_convert *c)
{
	enum tsi_simd level = tsi_simd_best();

	for (;; level--) {
		struct tsi_convert_kernel k;
		tsi_convert_fn *run;

		tsi_convert_kernel_init(&k, level);
		run = tsi_convert_kernel_for(&k, &c->spec);
		if (level == TSI_SIMD_SCALAR || proven(c, run))
			return run;
	}
}

/* NULL: memory is short. */
static struct tsi_convert *make(const struct tsi_view_spec *spec)
{
	struct tsi_convert *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->spec = *spec;
	c->width = tsock_dtype_size(spec->dtype);
	fill_values(c);
	fill_planes(c);
	fill_arithmetic(c);
	c->run = choose_kernel(c);
	return c;
}

/*
 * The values of one channel lie one behind the other in both layouts, as those
 * of three equal channels do pixel by pixel.
 */
static struct tsi_view_spec grey_of(const struct tsi_view_spec *spec)
{
	struct tsi_view_spec grey = *spec;

	grey.layout = TSOCK_HWC;
	for (int ch = 1; ch < 3; ch++) {
		grey.mean[ch] = grey.mean[0];
		grey.std[ch] = grey.std[0];
	}
	return grey;
}

int tsi_convert_create(const struct tsi_view_spec *spec,
		       struct tsi_convert **out)
{
	const struct tsi_view_spec grey = grey_of(spec);
	struct tsi_convert *c;
	int err = tsi_view_spec_check(spec);

	if (err)
		return err;
	c = make(spec);
	if (c)
		c->grey = make(&grey);
	if (!c || !c->grey) {
		tsi_convert_destroy(c);
		return tsi_err(TSOCK_ENOMEM, "no memory for a converter");
	}
	*out = c;
	return 0;
}

void tsi_convert_destroy(struct tsi_convert *c)
{
	if (c)
		free(c->grey);
	free(c);
}

/* Three values at a time, as a pixel's, and the last ones by table. */
static void convert_grey(const struct tsi_convert *c, const uint8_t *src,
			 size_t n, uint8_t *dst)
{
	const uint8_t *table = c->table.u8[0];

	c->run(c, src, n / 3, dst);
	for (size_t i = n - n % 3; i < n; i++)
		memcpy(dst + i * c->width, table + src[i] * c->width, c->width);
}

void tsi_convert_image(const struct tsi_convert *c, const uint64_t *shape,
		       const uint8_t *src, void *dst)
{
	const size_t pixels = (size_t)(shape[0] * shape[1]);

	if (shape[2] == 1)
		convert_grey(c->grey, src, pixels, dst);
	else
		c->run(c, src, pixels, dst);
}
