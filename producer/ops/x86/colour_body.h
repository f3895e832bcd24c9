/* SPDX-License-Identifier: MIT */
/*
 * colour_body.h - operations on colours in vectors of any width: included by
 * each file that has a width, with
 *
 *	VEC, FLOATS	the types of a vector of whole numbers, and of float
 *	LANES		double words in a vector
 *	OP(name)	_mm256_name or _mm512_name
 *	TARGET		what its functions are compiled for
 *	load(p)		LANES pixels of three bytes
 *	take(v, k)	their channel k, in double words
 *	put(p, v)	a pixel's channels are a double word's lower bytes
 *	put3(p, v)	of 16 bytes each 4 are a channel's
 *	widen(p)	LANES bytes in double words
 *	widen2(p)	2 * LANES bytes in words
 *	narrow2(w, p)	words to 2 * LANES bytes, clipped
 *	gathered(v)	the double words that packing four vectors has put in
 *			another order
 *	pick(t, i)	double words of a table of eight
 *	same(a, b, x, y) x where a and b are equal, else y
 *
 * A group of pixels is read before the one before it is written, since stores
 * reach into it.
 */
#include <immintrin.h>
#include <string.h>

#include "ops/colour_kernel.h"
#include "ops/colour_parts.h"

#define INLINE TARGET static inline __attribute__((always_inline))
#define BYTES (4 * LANES)

INLINE VEC words(int low, int high)
{
	return OP(set1_epi32)((int)((uint32_t)high << 16 | (uint16_t)low));
}

/* Bytes of four vectors of double words, clipped. */
INLINE VEC packed(VEC a, VEC b, VEC c, VEC d)
{
	return gathered(
		OP(packus_epi16)(OP(packs_epi32)(a, b), OP(packs_epi32)(c, d)));
}

/* ------------------------------------------------------------------------
 * Luminances
 */

/* Green's factor doesn't fit into a word: it is halved, and green comes twice. */
INLINE VEC luminance(VEC r, VEC g, VEC b)
{
	VEC high = OP(slli_epi32)(g, 16);
	VEC rg = OP(madd_epi16)(OPS(or)(r, high), words(19595, 19235));
	VEC bg = OP(madd_epi16)(OPS(or)(b, high), words(7471, 19235));
	VEC sum = OP(add_epi32)(rg, bg);

	return OP(srli_epi32)(OP(add_epi32)(sum, OP(set1_epi32)(0x8000)), 16);
}

INLINE VEC luminance_at(const uint8_t *p)
{
	VEC v = load(p);

	return luminance(take(v, 0), take(v, 1), take(v, 2));
}

TARGET static void vec_luminance(const uint8_t *src, uint8_t *dst, size_t n)
{
	size_t i = 0;

	for (; i + 4 * LANES <= n; i += 4 * LANES, src += 3 * BYTES) {
		VEC a = luminance_at(src);
		VEC b = luminance_at(src + 3 * LANES);
		VEC c = luminance_at(src + 6 * LANES);
		VEC d = luminance_at(src + 9 * LANES);

		store(dst + i, packed(a, b, c, d));
	}
	for (; i < n; i++, src += 3)
		dst[i] = (uint8_t)tsi_colour_luminance(src);
}

/* ------------------------------------------------------------------------
 * Blends
 */

/*
 * A greater factor gives nothing but 0, 255 and d, and products that are no
 * whole numbers of 32 bits.
 */
INLINE FLOATS factor(float alpha)
{
	const float most = 1 << 22;

	return OP(set1_ps)(alpha > most ? most : alpha < -most ? -most : alpha);
}

/* Packing clips it. */
INLINE VEC blended(FLOATS alpha, VEC d, VEC v)
{
	FLOATS by = OP(mul_ps)(alpha, OP(cvtepi32_ps)(OP(sub_epi32)(v, d)));

	return OP(cvttps_epi32)(OP(add_ps)(OP(cvtepi32_ps)(d), by));
}

TARGET static void vec_saturate(float alpha, uint8_t *p, size_t n)
{
	const FLOATS by = factor(alpha);
	VEC next = load(p);

	for (size_t i = 0; i < n; i += LANES, p += 3 * LANES) {
		VEC v = next, r = take(v, 0), g = take(v, 1), b = take(v, 2);
		VEC d = luminance(r, g, b);

		if (i + LANES < n)
			next = load(p + 3 * LANES);
		r = OP(packs_epi32)(blended(by, d, r), blended(by, d, g));
		b = OP(packs_epi32)(blended(by, d, b), d);
		put3(p, OP(packus_epi16)(r, b));
	}
}

TARGET static void vec_blend(float alpha, const uint8_t *d, uint8_t *p,
			     size_t n)
{
	const FLOATS by = factor(alpha);

	for (size_t i = 0; i < n; i += BYTES) {
		VEC v[4];

		for (unsigned k = 0; k < 4; k++)
			v[k] = blended(by, widen(d + i + k * LANES),
				       widen(p + i + k * LANES));
		store(p + i, packed(v[0], v[1], v[2], v[3]));
	}
}

/*
 * Words below 2^16 as float numbers, and 2^23: they are its lower bits.  Each
 * half of a vector's 16 bytes has its own; packing puts them together again.
 */
#define LIFTED_BY 8388608.0f
#define LIFTED(half, w) \
	as_floats(OP(unpack##half##_epi16)(w, OP(set1_epi16)(0x4b00)))

INLINE VEC blended_lifted(FLOATS alpha, FLOATS d, FLOATS v)
{
	FLOATS by = OP(mul_ps)(alpha, OP(sub_ps)(v, d));

	d = OP(sub_ps)(d, OP(set1_ps)(LIFTED_BY));
	return OP(cvttps_epi32)(OP(add_ps)(d, by));
}

/* n sums of three rows' bytes, as words. */
INLINE void add_rows(const uint8_t *p, size_t row, uint16_t *sum, size_t n)
{
	for (size_t i = 0; i < n; i += 2 * LANES) {
		VEC v = OP(add_epi16)(widen2(p + i - row), widen2(p + i));

		v = OP(add_epi16)(v, widen2(p + i + row));
		store((uint8_t *)(sum + i), v);
	}
}

INLINE VEC sum_at(const uint16_t *sum)
{
	return read((const uint8_t *)sum);
}

/* x / 13 is x * 5042 / 2^16 up to 13 * 255 + 6. */
INLINE void smooth_some(FLOATS alpha, const uint8_t *src, const uint16_t *sum,
			size_t step, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < n; i += 2 * LANES) {
		VEC v = widen2(src + i), d, low, high;

		d = OP(add_epi16)(sum_at(sum + i - step), sum_at(sum + i));
		d = OP(add_epi16)(d, sum_at(sum + i + step));
		d = OP(add_epi16)(d, OP(slli_epi16)(v, 2));
		d = OP(add_epi16)(d, OP(set1_epi16)(6));
		d = OP(mulhi_epu16)(d, OP(set1_epi16)(5042));
		low = blended_lifted(alpha, LIFTED(lo, d), LIFTED(lo, v));
		high = blended_lifted(alpha, LIFTED(hi, d), LIFTED(hi, v));
		narrow2(OP(packs_epi32)(low, high), dst + i);
	}
}

#define SOME 1024

TARGET static void vec_smooth(float alpha, const uint8_t *src, size_t row,
			      size_t step, uint8_t *dst, size_t n)
{
	uint16_t sum[SOME + 6 + 2 * 2 * LANES];
	const FLOATS by = factor(alpha);

	for (size_t i = 0; i < n; i += SOME) {
		size_t some = n - i < SOME ? n - i : SOME;

		add_rows(src + i - step, row, sum, some + 2 * step);
		smooth_some(by, src + i, sum + step, step, dst + i, some);
	}
}

TARGET static void vec_weigh(float weight, const uint8_t *p, float *sum,
			     size_t n)
{
	const FLOATS by = OP(set1_ps)(weight);

	for (size_t i = 0; i < n; i += LANES) {
		FLOATS v = OP(mul_ps)(by, OP(cvtepi32_ps)(widen(p + i)));

		OP(storeu_ps)(sum + i, OP(add_ps)(OP(loadu_ps)(sum + i), v));
	}
}

TARGET static void vec_truncate(const float *sum, uint8_t *dst, size_t n)
{
	const FLOATS most = OP(set1_ps)(255);

	for (size_t i = 0; i < n; i += BYTES) {
		VEC v[4];

		for (unsigned k = 0; k < 4; k++) {
			FLOATS f = OP(loadu_ps)(sum + i + k * LANES);

			v[k] = OP(cvttps_epi32)(OP(min_ps)(f, most));
		}
		store(dst + i, packed(v[0], v[1], v[2], v[3]));
	}
}

/* ------------------------------------------------------------------------
 * Extremes
 */

TARGET static void vec_extremes(const uint8_t *p, size_t n, uint8_t low[3],
				uint8_t high[3])
{
	VEC least[3], most[3];
	uint8_t lows[3 * BYTES], highs[3 * BYTES];
	size_t i = 0;

	for (unsigned k = 0; k < 3; k++) {
		least[k] = OP(set1_epi8)(-1);
		most[k] = OPS(setzero)();
	}
	for (; i + 3 * BYTES <= n; i += 3 * BYTES)
		for (unsigned k = 0; k < 3; k++) {
			VEC v = read(p + i + k * BYTES);

			least[k] = OP(min_epu8)(least[k], v);
			most[k] = OP(max_epu8)(most[k], v);
		}
	for (unsigned k = 0; k < 3; k++) {
		store(lows + k * BYTES, least[k]);
		store(highs + k * BYTES, most[k]);
		low[k] = 255;
		high[k] = 0;
	}
	/* Some more values of each channel. */
	for (unsigned k = 0; k < n - i; k++) {
		lows[k] = p[i + k] < lows[k] ? p[i + k] : lows[k];
		highs[k] = p[i + k] > highs[k] ? p[i + k] : highs[k];
	}
	for (unsigned k = 0; k < 3 * BYTES; k++) {
		low[k % 3] = lows[k] < low[k % 3] ? lows[k] : low[k % 3];
		high[k % 3] = highs[k] > high[k % 3] ? highs[k] : high[k % 3];
	}
}

/* ------------------------------------------------------------------------
 * Hues
 */

#define SIX(x) OP(add_epi32)(OP(slli_epi32)(x, 1), OP(slli_epi32)(x, 2))

/* The hue times 1/6 of its range and of the greatest value less the least. */
INLINE VEC turned(VEC r, VEC g, VEC b, VEC most, VEC range)
{
	VEC two = OP(slli_epi32)(range, 1), four = OP(slli_epi32)(range, 2);
	VEC hr = OP(sub_epi32)(g, b);
	VEC hg = OP(add_epi32)(OP(sub_epi32)(b, r), two);
	VEC hb = OP(add_epi32)(OP(sub_epi32)(r, g), four);
	VEC below = OP(srai_epi32)(hr, 31);

	hr = OP(add_epi32)(hr, OPS(and)(below, OP(add_epi32)(two, four)));
	return same(r, most, hr, same(g, most, hg, hb));
}

/*
 * The byte of a hue x / range, where 6 is a whole turn: 85 x / (2 range),
 * rounded down.  All is exact but for the quotient, which never reaches a whole
 * number that it should not.  Where the quotient is a whole number, Pillow's is
 * one less for those in HUES_BELOW: its parts are rounded.
 */
INLINE VEC hue_of(VEC x, VEC range)
{
	FLOATS by = OP(cvtepi32_ps)(OP(slli_epi32)(range, 1));
	FLOATS n = OP(mul_ps)(OP(cvtepi32_ps)(x), OP(set1_ps)(85));
	VEC h = OP(cvttps_epi32)(OP(div_ps)(n, by));
	FLOATS left = OP(sub_ps)(n, OP(mul_ps)(OP(cvtepi32_ps)(h), by));
	VEC bits = pick(tsi_colour_hues_below, OP(srli_epi32)(h, 5));
	VEC one = OP(set1_epi32)(1), less;

	bits = OP(srlv_epi32)(bits, OPS(and)(h, OP(set1_epi32)(31)));
	less = same(bits_of(left), OPS(setzero)(), OPS(and)(bits, one),
		    OPS(setzero)());
	return OP(sub_epi32)(h, less);
}

/*
 * range / most, rounded to float, times 255: the product's error is what the
 * fused operation leaves, and tells whether it was rounded up to the whole
 * number.
 */
INLINE VEC saturation_of(VEC range, VEC most)
{
	const FLOATS by = OP(set1_ps)(255);
	FLOATS q = OP(div_ps)(OP(cvtepi32_ps)(range), OP(cvtepi32_ps)(most));
	VEC s = OP(cvttps_epi32)(OP(mul_ps)(q, by));
	FLOATS left = OP(fmsub_ps)(q, by, OP(cvtepi32_ps)(s));

	return OP(add_epi32)(s, OP(srai_epi32)(bits_of(left), 31));
}

/* v * (255 - s) / 255, to the nearest: there is never a half. */
INLINE VEC lowest(VEC v, VEC s)
{
	VEC x = OP(mullo_epi16)(v, OP(sub_epi32)(OP(set1_epi32)(255), s));

	x = OP(add_epi32)(x, OP(set1_epi32)(128));
	return OP(srli_epi32)(OP(add_epi32)(x, OP(srli_epi32)(x, 8)), 8);
}

/* v * (255^2 - s * f) / 255^2, to the nearest: there is never a half. */
INLINE VEC middle(VEC v, VEC s, VEC f)
{
	const FLOATS whole = OP(set1_ps)(65025);
	VEC x = OP(sub_epi32)(OP(set1_epi32)(65025), OP(mullo_epi16)(s, f));
	FLOATS n = OP(mul_ps)(OP(cvtepi32_ps)(v), OP(cvtepi32_ps)(x));

	return OP(cvttps_epi32)(
		OP(add_ps)(OP(div_ps)(n, whole), OP(set1_ps)(0.5f)));
}

/* Where there is no colour, hues and saturations of black are anything. */
INLINE VEC turn_hue(VEC r, VEC g, VEC b, VEC by)
{
	const VEC byte = OP(set1_epi32)(255);
	VEC most = OP(max_epi32)(OP(max_epi32)(r, g), b);
	VEC least = OP(min_epi32)(OP(min_epi32)(r, g), b);
	VEC range = OP(sub_epi32)(most, least);
	VEC s = OPS(and)(saturation_of(range, most), byte);
	VEC h = hue_of(turned(r, g, b, most, range), range);
	VEC sector, f, even, places;

	h = OPS(and)(OP(add_epi32)(h, by), byte);
	h = SIX(h);
	sector = OP(add_epi32)(OP(add_epi32)(h, OP(srli_epi32)(h, 8)),
			       OP(set1_epi32)(1));
	sector = OP(srli_epi32)(sector, 8);
	f = OP(sub_epi32)(OP(add_epi32)(h, sector), OP(slli_epi32)(sector, 8));
	/* In even sectors the rest of 255. */
	even = OP(sub_epi32)(OPS(and)(sector, OP(set1_epi32)(1)),
			     OP(set1_epi32)(1));
	f = OPS(and)(OPS(xor)(f, even), byte);
	places = OP(add_epi32)(pick(tsi_colour_places, sector), offsets());
	most = OPS(or)(most, OP(slli_epi32)(lowest(most, s), 8));
	f = middle(OPS(and)(most, byte), s, f);
	return OP(shuffle_epi8)(OPS(or)(most, OP(slli_epi32)(f, 16)), places);
}

TARGET static void vec_hue(uint8_t by, uint8_t *p, size_t n)
{
	const VEC turn = OP(set1_epi32)(by);
	VEC next = load(p);

	for (size_t i = 0; i < n; i += LANES, p += 3 * LANES) {
		VEC v = next;

		if (i + LANES < n)
			next = load(p + 3 * LANES);
		put(p, turn_hue(take(v, 0), take(v, 1), take(v, 2), turn));
	}
}
