/* SPDX-License-Identifier: MIT */
/*
 * colour_avx512.c - operations on colours in AVX-512.
 */
#include <immintrin.h>
#include <stdint.h>

#include "ops/x86/colour_init.h"

#define TARGET \
	__attribute__((target( \
		"avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma")))
#define VEC __m512i
#define FLOATS __m512
#define LANES 16
#define OP(name) _mm512_##name
#define OPS(name) _mm512_##name##_si512
#define AVX512 TARGET static inline __attribute__((always_inline))

AVX512 __m512i read(const uint8_t *p)
{
	return _mm512_loadu_si512(p);
}

AVX512 void store(uint8_t *p, __m512i v)
{
	_mm512_storeu_si512(p, v);
}

AVX512 __m512i load(const uint8_t *p)
{
	return read(p);
}

AVX512 __m512i take(__m512i v, int channel)
{
	__m512i at = _mm512_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30,
				       33, 36, 39, 42, 45);

	at = _mm512_add_epi32(at, _mm512_set1_epi32(channel));
	return _mm512_maskz_permutexvar_epi8(0x1111111111111111, at, v);
}

/* Bytes of four pixels in the double words from i on, and in four of each. */
#define IN_WORDS(i) \
	i, i + 1, i + 2, i + 4, i + 5, i + 6, i + 8, i + 9, i + 10, i + 12, \
		i + 13, i + 14
#define IN_FOURS(i) \
	i, i + 4, i + 8, i + 1, i + 5, i + 9, i + 2, i + 6, i + 10, i + 3, \
		i + 7, i + 11

AVX512 void put(uint8_t *p, __m512i v)
{
	static const uint8_t at[64] = { IN_WORDS(0), IN_WORDS(16), IN_WORDS(32),
					IN_WORDS(48) };

	store(p, _mm512_permutexvar_epi8(read(at), v));
}

AVX512 void put3(uint8_t *p, __m512i v)
{
	static const uint8_t at[64] = { IN_FOURS(0), IN_FOURS(16), IN_FOURS(32),
					IN_FOURS(48) };

	store(p, _mm512_permutexvar_epi8(read(at), v));
}

AVX512 __m512i widen(const uint8_t *p)
{
	return _mm512_cvtepu8_epi32(
		_mm_loadu_si128((const __m128i *)(const void *)p));
}

AVX512 __m512i widen2(const uint8_t *p)
{
	return _mm512_cvtepu8_epi16(
		_mm256_loadu_si256((const __m256i *)(const void *)p));
}

AVX512 void narrow2(__m512i w, uint8_t *p)
{
	__m512i v = _mm512_max_epi16(w, _mm512_setzero_si512());

	_mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtusepi16_epi8(v));
}

AVX512 __m512i gathered(__m512i v)
{
	const __m512i at = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10,
					     14, 3, 7, 11, 15);

	return _mm512_permutexvar_epi32(at, v);
}

AVX512 __m512i pick(const uint32_t table[8], __m512i i)
{
	__m256i t = _mm256_loadu_si256((const __m256i *)(const void *)table);

	return _mm512_permutexvar_epi32(i, _mm512_broadcast_i32x8(t));
}

AVX512 __m512i same(__m512i a, __m512i b, __m512i x, __m512i y)
{
	return _mm512_mask_blend_epi32(_mm512_cmpeq_epi32_mask(a, b), y, x);
}

AVX512 __m512i bits_of(__m512 v)
{
	return _mm512_castps_si512(v);
}

AVX512 __m512 as_floats(__m512i v)
{
	return _mm512_castsi512_ps(v);
}

/* The byte offsets of the four double words of 16 bytes, in the lower three
 * bytes of each. */
AVX512 __m512i offsets(void)
{
	return _mm512_broadcast_i32x4(
		_mm_setr_epi32(0, 0x040404, 0x080808, 0x0c0c0c));
}

#include "ops/x86/colour_body.h"

/* ------------------------------------------------------------------------
 * Tables
 */

INLINE void make_table(const uint8_t *table, __m512i d[4])
{
	for (unsigned i = 0; i < 4; i++)
		d[i] = read(table + 64 * i);
}

/* Halves of the table by the places' lower bits. */
INLINE __m512i found(const __m512i d[4], __m512i v)
{
	__m512i low = _mm512_permutex2var_epi8(d[0], v, d[1]);
	__m512i high = _mm512_permutex2var_epi8(d[2], v, d[3]);

	return _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high);
}

TARGET static void avx512_look_up(const uint8_t *table, uint8_t *p, size_t n)
{
	__m512i d[4];

	make_table(table, d);
	for (size_t i = 0; i < n; i += 64)
		store(p + i, found(d, read(p + i)));
}

/* Where i % 3 == 0 those of a, where it is 1 those of b, else those of c. */
INLINE __m512i thirds(__m512i a, __m512i b, __m512i c)
{
	return _mm512_mask_blend_epi8(
		0x4924924924924924,
		_mm512_mask_blend_epi8(0x2492492492492492, a, b), c);
}

/*
 * Each of three vectors has a channel's bytes at places where the other two
 * have none: so one vector can hold the channel, and give its bytes back.
 */
TARGET static void avx512_look_up3(const uint8_t (*tables)[256], uint8_t *p,
				   size_t n)
{
	__m512i d[3][4];

	for (unsigned k = 0; k < 3; k++)
		make_table(tables[k], d[k]);
	for (; n >= 64; n -= 64, p += 192) {
		__m512i a = read(p), b = read(p + 64), c = read(p + 128);
		__m512i x = found(d[0], thirds(a, c, b));
		__m512i y = found(d[1], thirds(b, a, c));
		__m512i z = found(d[2], thirds(c, b, a));

		store(p, thirds(x, y, z));
		store(p + 64, thirds(y, z, x));
		store(p + 128, thirds(z, x, y));
	}
	for (; n; n--, p += 3)
		for (unsigned k = 0; k < 3; k++)
			p[k] = tables[k][p[k]];
}

void tsi_colour_kernel_init_avx512(struct tsi_colour_kernel *k)
{
	k->look_up = avx512_look_up;
	k->look_up3 = avx512_look_up3;
	k->luminance = vec_luminance;
	k->extremes = vec_extremes;
	k->saturate = vec_saturate;
	k->blend = vec_blend;
	k->smooth = vec_smooth;
	k->hue = vec_hue;
	k->weigh = vec_weigh;
	k->truncate = vec_truncate;
}
