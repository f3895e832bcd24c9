/* SPDX-License-Identifier: MIT */
/*
 * idct.h - libjpeg's slow integer transform in vectors of any width:
 * included by each file that has a width, with
 *
 *	VEC		the type of a vector
 *	OP(name)	_mm256_name or _mm512_name
 *	TARGET		what its functions are compiled for
 *	dot()		acc + a * low + b * high, for double words
 *
 * Each lane of 16 bytes belongs to another block: a vector holds a row, or a
 * column, of as many blocks as it has lanes.
 *
 * Sums of two words wrap before they are multiplied, as in libjpeg-turbo's
 * vector code; what it adds up behind that wraps alike in whatever order.
 */
#include <immintrin.h>

#include "jpeg/cosines.h"

#define INLINE TARGET static inline __attribute__((always_inline))

/* Eight double words of a pass: half of the columns or rows. */
struct half {
	VEC v[8];
};

INLINE VEC pair(int low, int high)
{
	return OP(set1_epi32)((int)((uint32_t)high << 16 | (uint16_t)low));
}

INLINE VEC times(VEC pairs, int low, int high)
{
	return OP(madd_epi16)(pairs, pair(low, high));
}

/* e[i] + o[i] and e[i] - o[i], shifted. */
INLINE struct half butterfly(VEC e0, VEC e1, VEC e2, VEC e3, VEC o0, VEC o1,
			     VEC o2, VEC o3, const int shift)
{
	struct half h;

	h.v[0] = OP(srai_epi32)(OP(add_epi32)(e0, o0), shift);
	h.v[1] = OP(srai_epi32)(OP(add_epi32)(e1, o1), shift);
	h.v[2] = OP(srai_epi32)(OP(add_epi32)(e2, o2), shift);
	h.v[3] = OP(srai_epi32)(OP(add_epi32)(e3, o3), shift);
	h.v[4] = OP(srai_epi32)(OP(sub_epi32)(e3, o3), shift);
	h.v[5] = OP(srai_epi32)(OP(sub_epi32)(e2, o2), shift);
	h.v[6] = OP(srai_epi32)(OP(sub_epi32)(e1, o1), shift);
	h.v[7] = OP(srai_epi32)(OP(sub_epi32)(e0, o0), shift);
	return h;
}

/*
 * From pairs of words: (in0 + in4, 16), (in0 - in4, 16), (in2, in6), (in3 +
 * in7, in1 + in5), (in7, in1), (in5, in3).  The 16 brings what rounds.
 */
INLINE struct half sums(VEC s, VEC d, VEC p26, VEC z34, VEC p71, VEC p53,
			const int shift)
{
	const int round = (1 << (shift - 1)) / 16;
	VEC even0 = times(s, 8192, round), even1 = times(d, 8192, round);
	VEC odd3 = times(z34, F_1_175 - F_1_961, F_1_175);
	VEC odd4 = times(z34, F_1_175, F_1_175 - F_0_390);

	return butterfly(dot(even0, p26, F_0_541 + F_0_765, F_0_541),
			 dot(even1, p26, F_0_541, F_0_541 - F_1_847),
			 dot(even1, p26, -F_0_541, F_1_847 - F_0_541),
			 dot(even0, p26, -F_0_541 - F_0_765, -F_0_541),
			 dot(odd4, p71, -F_0_899, F_1_501 - F_0_899),
			 dot(odd3, p53, -F_2_562, F_3_072 - F_2_562),
			 dot(odd4, p53, F_2_053 - F_2_562, -F_2_562),
			 dot(odd3, p71, F_0_298 - F_0_899, -F_0_899), shift);
}

/* As sums(), where in4 to in7 are 0, from (in0, in2) and (in1, in3). */
INLINE struct half sums4(VEC p02, VEC p13, const int shift)
{
	const VEC round = OP(set1_epi32)(1 << (shift - 1));
	const int odd1 = F_1_175 - F_0_390, odd3 = F_1_175 - F_1_961;

	return butterfly(dot(round, p02, 8192, F_0_541 + F_0_765),
			 dot(round, p02, 8192, F_0_541),
			 dot(round, p02, 8192, -F_0_541),
			 dot(round, p02, 8192, -F_0_541 - F_0_765),
			 times(p13, odd1 + F_1_501 - F_0_899, F_1_175),
			 times(p13, F_1_175, odd3 + F_3_072 - F_2_562),
			 times(p13, odd1, F_1_175 - F_2_562),
			 times(p13, F_1_175 - F_0_899, odd3), shift);
}

/* Double words to words. */
INLINE void pack(VEC r[8], const struct half *lo, const struct half *hi)
{
	r[0] = OP(packs_epi32)(lo->v[0], hi->v[0]);
	r[1] = OP(packs_epi32)(lo->v[1], hi->v[1]);
	r[2] = OP(packs_epi32)(lo->v[2], hi->v[2]);
	r[3] = OP(packs_epi32)(lo->v[3], hi->v[3]);
	r[4] = OP(packs_epi32)(lo->v[4], hi->v[4]);
	r[5] = OP(packs_epi32)(lo->v[5], hi->v[5]);
	r[6] = OP(packs_epi32)(lo->v[6], hi->v[6]);
	r[7] = OP(packs_epi32)(lo->v[7], hi->v[7]);
}

/* One pass over eight rows, or columns, of words. */
INLINE void pass(VEC r[8], const int shift)
{
	const VEC sixteen = OP(set1_epi16)(16);
	VEC s = OP(add_epi16)(r[0], r[4]), d = OP(sub_epi16)(r[0], r[4]);
	VEC z3 = OP(add_epi16)(r[3], r[7]), z4 = OP(add_epi16)(r[1], r[5]);
	struct half lo = sums(
		OP(unpacklo_epi16)(s, sixteen), OP(unpacklo_epi16)(d, sixteen),
		OP(unpacklo_epi16)(r[2], r[6]), OP(unpacklo_epi16)(z3, z4),
		OP(unpacklo_epi16)(r[7], r[1]), OP(unpacklo_epi16)(r[5], r[3]),
		shift);
	struct half hi = sums(
		OP(unpackhi_epi16)(s, sixteen), OP(unpackhi_epi16)(d, sixteen),
		OP(unpackhi_epi16)(r[2], r[6]), OP(unpackhi_epi16)(z3, z4),
		OP(unpackhi_epi16)(r[7], r[1]), OP(unpackhi_epi16)(r[5], r[3]),
		shift);

	pack(r, &lo, &hi);
}

/* Rows of words to columns. */
INLINE void turn(VEC r[8])
{
	VEC a0 = OP(unpacklo_epi16)(r[0], r[1]);
	VEC a1 = OP(unpackhi_epi16)(r[0], r[1]);
	VEC a2 = OP(unpacklo_epi16)(r[2], r[3]);
	VEC a3 = OP(unpackhi_epi16)(r[2], r[3]);
	VEC a4 = OP(unpacklo_epi16)(r[4], r[5]);
	VEC a5 = OP(unpackhi_epi16)(r[4], r[5]);
	VEC a6 = OP(unpacklo_epi16)(r[6], r[7]);
	VEC a7 = OP(unpackhi_epi16)(r[6], r[7]);
	VEC b0 = OP(unpacklo_epi32)(a0, a2), b1 = OP(unpackhi_epi32)(a0, a2);
	VEC b2 = OP(unpacklo_epi32)(a1, a3), b3 = OP(unpackhi_epi32)(a1, a3);
	VEC b4 = OP(unpacklo_epi32)(a4, a6), b5 = OP(unpackhi_epi32)(a4, a6);
	VEC b6 = OP(unpacklo_epi32)(a5, a7), b7 = OP(unpackhi_epi32)(a5, a7);

	r[0] = OP(unpacklo_epi64)(b0, b4);
	r[1] = OP(unpackhi_epi64)(b0, b4);
	r[2] = OP(unpacklo_epi64)(b1, b5);
	r[3] = OP(unpackhi_epi64)(b1, b5);
	r[4] = OP(unpacklo_epi64)(b2, b6);
	r[5] = OP(unpackhi_epi64)(b2, b6);
	r[6] = OP(unpacklo_epi64)(b3, b7);
	r[7] = OP(unpackhi_epi64)(b3, b7);
}

/*
 * Columns of words to rows of bytes, around 128: row 2 * i in the low half of
 * each of r[i]'s lanes, the next one in the high half.
 */
INLINE void bytes(VEC r[8])
{
	const VEC middle = OP(set1_epi8)((char)128);
	VEC c04 = OP(packs_epi16)(r[0], r[4]),
	    c15 = OP(packs_epi16)(r[1], r[5]);
	VEC c26 = OP(packs_epi16)(r[2], r[6]),
	    c37 = OP(packs_epi16)(r[3], r[7]);
	VEC a01 = OP(unpacklo_epi8)(c04, c15),
	    a45 = OP(unpackhi_epi8)(c04, c15);
	VEC a23 = OP(unpacklo_epi8)(c26, c37),
	    a67 = OP(unpackhi_epi8)(c26, c37);
	VEC b0 = OP(unpacklo_epi16)(a01, a23),
	    b1 = OP(unpackhi_epi16)(a01, a23);
	VEC b2 = OP(unpacklo_epi16)(a45, a67),
	    b3 = OP(unpackhi_epi16)(a45, a67);

	r[0] = OP(add_epi8)(OP(unpacklo_epi32)(b0, b2), middle);
	r[1] = OP(add_epi8)(OP(unpackhi_epi32)(b0, b2), middle);
	r[2] = OP(add_epi8)(OP(unpacklo_epi32)(b1, b3), middle);
	r[3] = OP(add_epi8)(OP(unpackhi_epi32)(b1, b3), middle);
}

/* Blocks: rows of words times quantisers, to rows of bytes. */
INLINE void transform(VEC r[8])
{
	pass(r, 11);
	turn(r);
	pass(r, 18);
	bytes(r);
}

/*
 * Shorter for blocks of which but the first four coefficients of the first
 * four rows are set.
 */
INLINE void transform4(VEC r[8])
{
	VEC p02, p13, a, b, c, d;
	struct half lo, hi;

	/* Columns 0, 2, 1, 3: pairs of them lie side by side then. */
	p02 = OP(unpacklo_epi16)(OP(shufflelo_epi16)(r[0], 0xd8),
				 OP(shufflelo_epi16)(r[2], 0xd8));
	p13 = OP(unpacklo_epi16)(OP(shufflelo_epi16)(r[1], 0xd8),
				 OP(shufflelo_epi16)(r[3], 0xd8));
	lo = sums4(p02, p13, 11);
	a = OP(packs_epi32)(lo.v[0], lo.v[1]);
	b = OP(packs_epi32)(lo.v[2], lo.v[3]);
	c = OP(packs_epi32)(lo.v[4], lo.v[5]);
	d = OP(packs_epi32)(lo.v[6], lo.v[7]);
	lo = sums4(SHUFFLE2(a, b, 0x88), SHUFFLE2(a, b, 0xdd), 18);
	hi = sums4(SHUFFLE2(c, d, 0x88), SHUFFLE2(c, d, 0xdd), 18);
	pack(r, &lo, &hi);
	bytes(r);
}
