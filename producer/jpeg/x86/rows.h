/* SPDX-License-Identifier: MIT */
/*
 * rows.h - rows of samples to rows of pixels in vectors of any width:
 * included behind x86/idct.h by each file that has a width, with
 *
 *	WORDS		16-bit words in a vector
 *	WIDEN(p)	that many bytes at p, as words
 *	STORE(p, v)	a vector's bytes to p
 *	ORDER_LO(a, b), ORDER_HI(a, b)
 *			the lanes of a and b in turns: their first half, the
 *			other one
 */
#include <stddef.h>

INLINE VEC triple(VEC v)
{
	return OP(add_epi16)(v, OP(add_epi16)(v, v));
}

/* Bytes from two words each. */
INLINE VEC woven(VEC even, VEC odd)
{
	return OP(or_si)(even, OP(slli_epi16)(odd, 8));
}

TARGET static void vec_twice(const uint8_t *in, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i += WORDS) {
		VEC v = WIDEN(in + i);

		STORE(out + 2 * i, woven(v, v));
	}
}

TARGET static void vec_h2v1(const uint8_t *in, uint8_t *out, size_t n)
{
	const VEC one = OP(set1_epi16)(1), two = OP(set1_epi16)(2);

	for (size_t i = 0; i < n; i += WORDS) {
		VEC here = triple(WIDEN(in + i));
		VEC even = OP(add_epi16)(here, WIDEN(in + i - 1));
		VEC odd = OP(add_epi16)(here, WIDEN(in + i + 1));

		even = OP(srli_epi16)(OP(add_epi16)(even, one), 2);
		odd = OP(srli_epi16)(OP(add_epi16)(odd, two), 2);
		STORE(out + 2 * i, woven(even, odd));
	}
}

INLINE VEC between(const uint8_t *near, const uint8_t *far)
{
	return OP(add_epi16)(triple(WIDEN(near)), WIDEN(far));
}

TARGET static void vec_h2v2(const uint8_t *near, const uint8_t *far,
			    uint8_t *out, size_t n)
{
	const VEC seven = OP(set1_epi16)(7), eight = OP(set1_epi16)(8);

	for (size_t i = 0; i < n; i += WORDS) {
		VEC here = triple(between(near + i, far + i));
		VEC even =
			OP(add_epi16)(here, between(near + i - 1, far + i - 1));
		VEC odd =
			OP(add_epi16)(here, between(near + i + 1, far + i + 1));

		even = OP(srli_epi16)(OP(add_epi16)(even, eight), 4);
		odd = OP(srli_epi16)(OP(add_epi16)(odd, seven), 4);
		STORE(out + 2 * i, woven(even, odd));
	}
}

TARGET static void vec_h1v2(const uint8_t *near, const uint8_t *far,
			    unsigned bias, uint8_t *out, size_t n)
{
	const VEC more = OP(set1_epi16)((short)bias);

	for (size_t i = 0; i < n; i += 2 * WORDS) {
		/* Bytes of two vectors, woven as they are of one. */
		const VEC low = OP(set1_epi16)(255);
		VEC a = LOAD(near + i), b = LOAD(far + i);
		VEC even = OP(add_epi16)(triple(OP(and_si)(a, low)),
					 OP(and_si)(b, low));
		VEC odd = OP(add_epi16)(triple(OP(srli_epi16)(a, 8)),
					OP(srli_epi16)(b, 8));

		even = OP(srli_epi16)(OP(add_epi16)(even, more), 2);
		odd = OP(srli_epi16)(OP(add_epi16)(odd, more), 2);
		STORE(out + i, woven(even, odd));
	}
}

/* WORDS pixels, from words. */
INLINE void store_pixels(uint8_t *out, VEC r, VEC g, VEC b)
{
	const VEC turns = SAME_LANES(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4,
						   12, 5, 13, 6, 14, 7, 15));
	VEC rg = OP(shuffle_epi8)(OP(packus_epi16)(r, g), turns);
	VEC bx = OP(shuffle_epi8)(OP(packus_epi16)(b, OP(set1_epi16)(255)),
				  turns);
	VEC lo = OP(unpacklo_epi16)(rg, bx), hi = OP(unpackhi_epi16)(rg, bx);

	STORE(out, ORDER_LO(lo, hi));
	STORE(out + 2 * WORDS, ORDER_HI(lo, hi));
}

/* -0.34414 * b + 0.28586 * r, rounded; r itself is subtracted after that. */
INLINE VEC green(VEC b, VEC r)
{
	const VEC half = OP(set1_epi32)(32768);
	VEC lo = dot(half, OP(unpacklo_epi16)(b, r), -22554, 65536 - 46802);
	VEC hi = dot(half, OP(unpackhi_epi16)(b, r), -22554, 65536 - 46802);

	return OP(packs_epi32)(OP(srai_epi32)(lo, 16), OP(srai_epi32)(hi, 16));
}

/*
 * 1.402 and 1.772 are 1 + 0.402 and 2 - 0.228: these are the remainders with 15
 * fractional bits, and give libjpeg's integers for each of 256 samples.
 */
#define TO_RED 13173
#define TO_BLUE (-7471)

TARGET static void vec_ycc(const uint8_t *y, const uint8_t *cb,
			   const uint8_t *cr, uint8_t *out, size_t n)
{
	const VEC middle = OP(set1_epi16)(128);
	const VEC to_red = OP(set1_epi16)(TO_RED);
	const VEC to_blue = OP(set1_epi16)(TO_BLUE);

	for (size_t i = 0; i < n; i += WORDS) {
		VEC l = WIDEN(y + i);
		VEC b = OP(sub_epi16)(WIDEN(cb + i), middle);
		VEC r = OP(sub_epi16)(WIDEN(cr + i), middle);
		VEC red = OP(add_epi16)(r, OP(mulhrs_epi16)(r, to_red));
		VEC blue = OP(add_epi16)(OP(add_epi16)(b, b),
					 OP(mulhrs_epi16)(b, to_blue));

		store_pixels(out + 4 * i, OP(add_epi16)(l, red),
			     OP(add_epi16)(OP(sub_epi16)(l, r), green(b, r)),
			     OP(add_epi16)(l, blue));
	}
}

TARGET static void vec_rgb(const uint8_t *r, const uint8_t *g, const uint8_t *b,
			   uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i += WORDS)
		store_pixels(out + 4 * i, WIDEN(r + i), WIDEN(g + i),
			     WIDEN(b + i));
}
