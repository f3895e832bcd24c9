/* SPDX-License-Identifier: MIT */
/*
 * kernel_avx2.c - two blocks at once, and rows 16 samples at once.
 */
#include "jpeg/x86/init.h"

#include <immintrin.h>
#include <stdbool.h>

#define VEC __m256i
#define OP(name) _mm256_##name
#define TARGET __attribute__((target("avx2")))
#define WORDS 16
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define WIDEN(p) \
	_mm256_cvtepu8_epi16( \
		_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define SAME_LANES(v) _mm256_broadcastsi128_si256(v)
#define SHUFFLE2(a, b, order) \
	_mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), \
					      _mm256_castsi256_ps(b), order))
#define ORDER_LO(a, b) _mm256_permute2x128_si256(a, b, 0x20)
#define ORDER_HI(a, b) _mm256_permute2x128_si256(a, b, 0x31)
#define _mm256_or_si _mm256_or_si256
#define _mm256_and_si _mm256_and_si256

TARGET static inline __attribute__((always_inline)) __m256i
dot(__m256i acc, __m256i pairs, int low, int high)
{
	__m256i c =
		_mm256_set1_epi32((int)((uint32_t)high << 16 | (uint16_t)low));

	return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, c));
}

#include "jpeg/x86/idct.h"
#include "jpeg/x86/row.h"
#include "jpeg/x86/rows.h"

INLINE void store_rows(uint8_t *out, size_t stride, __m256i v)
{
	v = _mm256_permute4x64_epi64(v, 0xd8);
	_mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(v));
	_mm_storeu_si128((__m128i *)(void *)(out + stride),
			 _mm256_extracti128_si256(v, 1));
}

/* Blocks a and b side by side, which may be the same; last: of both. */
TARGET static void idct2(const int16_t *a, const int16_t *b, unsigned last,
			 const uint16_t *quant, uint8_t *out, size_t stride)
{
	__m256i r[8];

	r[0] = row(a, b, quant, 0);
	if (wild(r[0])) {
		uint8_t full = 63;

		/* libjpeg's shortcut depends on what a block holds, not on
		 * last. */
		tsi_jpeg_kernel_scalar.idct(
			(const int16_t(*)[64])(const void *)b, &full, 1, quant,
			out + 8, stride);
		tsi_jpeg_kernel_scalar.idct(
			(const int16_t(*)[64])(const void *)a, &full, 1, quant,
			out, stride);
		return;
	}
	r[1] = row(a, b, quant, 1);
	r[2] = row(a, b, quant, 2);
	r[3] = row(a, b, quant, 3);
	if (last <= 9) {
		transform4(r);
	} else {
		r[4] = row(a, b, quant, 4);
		r[5] = row(a, b, quant, 5);
		r[6] = row(a, b, quant, 6);
		r[7] = row(a, b, quant, 7);
		transform(r);
	}
	store_rows(out, stride, r[0]);
	store_rows(out + 2 * stride, stride, r[1]);
	store_rows(out + 4 * stride, stride, r[2]);
	store_rows(out + 6 * stride, stride, r[3]);
}

static void avx2_idct(const int16_t (*coef)[64], const uint8_t *last,
		      uint32_t n, const uint16_t *quant, uint8_t *out,
		      size_t stride)
{
	for (uint32_t i = 0; i < n; i += 2, out += 16) {
		uint32_t j = i + 1 < n ? i + 1 : i;
		unsigned both = last[i] > last[j] ? last[i] : last[j];

		if (both)
			idct2(coef[i], coef[j], both, quant, out, stride);
		else
			tsi_jpeg_kernel_scalar.idct(coef + i, last + i,
						    j - i + 1, quant, out,
						    stride);
	}
}

void tsi_jpeg_kernel_init_avx2(struct tsi_jpeg_kernel *k)
{
	k->idct = avx2_idct;
	k->idct4 = tsi_jpeg_small_4_avx2;
	k->idct2 = tsi_jpeg_small_2_avx2;
	k->twice = vec_twice;
	k->h2v1 = vec_h2v1;
	k->h2v2 = vec_h2v2;
	k->h1v2 = vec_h1v2;
	k->ycc = vec_ycc;
	k->rgb = vec_rgb;
}
