/* SPDX-License-Identifier: MIT */
/*
 * kernel_avx512.c - four blocks at once, and rows 32 samples at once.
 */
#include "jpeg/x86/init.h"

#include <immintrin.h>
#include <stdbool.h>

#define VEC __m512i
#define OP(name) _mm512_##name
#define TARGET \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl," \
			      "avx512vbmi,avx512vnni")))
#define WORDS 32
#define LOAD(p) _mm512_loadu_si512((const void *)(p))
#define STORE(p, v) _mm512_storeu_si512((void *)(p), v)
#define WIDEN(p) \
	_mm512_cvtepu8_epi16( \
		_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define SAME_LANES(v) _mm512_broadcast_i32x4(v)
#define SHUFFLE2(a, b, order) \
	_mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), \
					      _mm512_castsi512_ps(b), order))
#define ORDER_LO(a, b) \
	_mm512_permutex2var_epi64( \
		a, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), b)
#define ORDER_HI(a, b) \
	_mm512_permutex2var_epi64( \
		a, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), b)
#define _mm512_or_si _mm512_or_si512
#define _mm512_and_si _mm512_and_si512

TARGET static inline __attribute__((always_inline)) __m512i
dot(__m512i acc, __m512i pairs, int low, int high)
{
	__m512i c =
		_mm512_set1_epi32((int)((uint32_t)high << 16 | (uint16_t)low));

	return _mm512_dpwssd_epi32(acc, pairs, c);
}

#include "jpeg/x86/idct.h"
#include "jpeg/x86/rows.h"

/* Four rows from row y on of each block, to each row of the four blocks. */
INLINE void load_rows(const int16_t *const block[4], const uint16_t *quant,
		      int y, VEC r[4])
{
	VEC q = LOAD(quant + 8 * y);
	VEC a = OP(mullo_epi16)(LOAD(block[0] + 8 * y), q);
	VEC b = OP(mullo_epi16)(LOAD(block[1] + 8 * y), q);
	VEC c = OP(mullo_epi16)(LOAD(block[2] + 8 * y), q);
	VEC d = OP(mullo_epi16)(LOAD(block[3] + 8 * y), q);
	VEC ab01 = OP(shuffle_i32x4)(a, b, 0x44);
	VEC cd01 = OP(shuffle_i32x4)(c, d, 0x44);
	VEC ab23 = OP(shuffle_i32x4)(a, b, 0xee);
	VEC cd23 = OP(shuffle_i32x4)(c, d, 0xee);

	r[0] = OP(shuffle_i32x4)(ab01, cd01, 0x88);
	r[1] = OP(shuffle_i32x4)(ab01, cd01, 0xdd);
	r[2] = OP(shuffle_i32x4)(ab23, cd23, 0x88);
	r[3] = OP(shuffle_i32x4)(ab23, cd23, 0xdd);
}

/* Does the shortcut of blocks with but one row, which wraps, matter? */
INLINE bool wild(VEC row0)
{
	return OP(test_epi16_mask)(OP(abs_epi16)(row0),
				   OP(set1_epi16)((short)0xe000)) != 0;
}

INLINE void store_rows(uint8_t *out, size_t stride, VEC v)
{
	v = OP(permutexvar_epi64)(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v);
	_mm256_storeu_si256((__m256i *)(void *)out, _mm512_castsi512_si256(v));
	_mm256_storeu_si256((__m256i *)(void *)(out + stride),
			    _mm512_extracti64x4_epi64(v, 1));
}

/* Four blocks side by side, some of which may be the same; last: of all. */
TARGET static void idct4(const int16_t *const block[4], unsigned last,
			 const uint16_t *quant, uint8_t *out, size_t stride)
{
	VEC r[8];

	load_rows(block, quant, 0, r);
	if (wild(r[0])) {
		uint8_t full = 63;

		/* libjpeg's shortcut depends on what a block holds. */
		for (int i = 0; i < 4; i++)
			tsi_jpeg_kernel_scalar.idct(
				(const int16_t(*)[64])(const void *)block[i],
				&full, 1, quant, out + 8 * i, stride);
		return;
	}
	if (last <= 9) {
		transform4(r);
	} else {
		load_rows(block, quant, 4, r + 4);
		transform(r);
	}
	store_rows(out, stride, r[0]);
	store_rows(out + 2 * stride, stride, r[1]);
	store_rows(out + 4 * stride, stride, r[2]);
	store_rows(out + 6 * stride, stride, r[3]);
}

static void avx512_idct(const int16_t (*coef)[64], const uint8_t *last,
			uint32_t n, const uint16_t *quant, uint8_t *out,
			size_t stride)
{
	for (uint32_t i = 0; i < n; i += 4, out += 32) {
		const int16_t *block[4];
		unsigned most = 0;

		for (uint32_t k = 0; k < 4; k++) {
			uint32_t j = i + k < n ? i + k : n - 1;

			block[k] = coef[j];
			most = last[j] > most ? last[j] : most;
		}
		idct4(block, most, quant, out, stride);
	}
}

/* 64 bytes of a plane: those at even places and at odd ones, from words. */
INLINE void store_plane(uint8_t *out, VEC even, VEC odd)
{
	const VEC turns = SAME_LANES(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4,
						   12, 5, 13, 6, 14, 7, 15));

	STORE(out, OP(shuffle_epi8)(OP(packus_epi16)(even, odd), turns));
}

/* What is added to y for red, green and blue; words around 0. */
struct colours {
	VEC red;
	VEC green;
	VEC blue;
};

INLINE struct colours colours(VEC b, VEC r)
{
	const VEC middle = OP(set1_epi16)(128);
	struct colours c;

	b = OP(sub_epi16)(b, middle);
	r = OP(sub_epi16)(r, middle);
	c.red = OP(add_epi16)(r, OP(mulhrs_epi16)(r, OP(set1_epi16)(TO_RED)));
	c.blue = OP(add_epi16)(OP(add_epi16)(b, b),
			       OP(mulhrs_epi16)(b, OP(set1_epi16)(TO_BLUE)));
	c.green = OP(sub_epi16)(green(b, r), r);
	return c;
}

TARGET static void ycc_planes(const uint8_t *y, const uint8_t *cb,
			      const uint8_t *cr, uint8_t *out, size_t plane,
			      size_t n)
{
	const VEC low = OP(set1_epi16)(255);

	for (size_t i = 0; i < n; i += 64) {
		VEC l = LOAD(y + i), b = LOAD(cb + i), r = LOAD(cr + i);
		VEC even = OP(and_si)(l, low), odd = OP(srli_epi16)(l, 8);
		struct colours e =
			colours(OP(and_si)(b, low), OP(and_si)(r, low));
		struct colours o =
			colours(OP(srli_epi16)(b, 8), OP(srli_epi16)(r, 8));

		store_plane(out + i, OP(add_epi16)(even, e.red),
			    OP(add_epi16)(odd, o.red));
		store_plane(out + plane + i, OP(add_epi16)(even, e.green),
			    OP(add_epi16)(odd, o.green));
		store_plane(out + 2 * plane + i, OP(add_epi16)(even, e.blue),
			    OP(add_epi16)(odd, o.blue));
	}
}

void tsi_jpeg_kernel_init_avx512(struct tsi_jpeg_kernel *k)
{
	k->idct = avx512_idct;
	k->twice = vec_twice;
	k->h2v1 = vec_h2v1;
	k->h2v2 = vec_h2v2;
	k->h1v2 = vec_h1v2;
	k->ycc = vec_ycc;
	k->rgb = vec_rgb;
	k->ycc_planes = ycc_planes;
}
