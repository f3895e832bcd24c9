/* SPDX-License-Identifier: MIT */
/*
 * colour_avx2.c - operations on colours in AVX2.
 */
#include <immintrin.h>
#include <stdint.h>

#include "ops/x86/colour_init.h"

#define TARGET __attribute__((target("avx2,fma")))
#define VEC __m256i
#define FLOATS __m256
#define LANES 8
#define OP(name) _mm256_##name
#define OPS(name) _mm256_##name##_si256
#define AVX2 TARGET static inline __attribute__((always_inline))

AVX2 __m256i read(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

AVX2 void store(uint8_t *p, __m256i v)
{
	_mm256_storeu_si256((__m256i *)(void *)p, v);
}

AVX2 __m128i read16(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

AVX2 void store16(uint8_t *p, __m128i v)
{
	_mm_storeu_si128((__m128i *)(void *)p, v);
}

/* v in both halves. */
AVX2 __m256i twice(__m128i v)
{
	return _mm256_broadcastsi128_si256(v);
}

/* Four pixels in each half. */
AVX2 __m256i load(const uint8_t *p)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(read16(p)),
				       read16(p + 12), 1);
}

AVX2 __m256i take(__m256i v, int channel)
{
	const int none = (int)0x80808000;
	__m128i at = _mm_setr_epi32(none | channel, none | (channel + 3),
				    none | (channel + 6), none | (channel + 9));

	return _mm256_shuffle_epi8(v, twice(at));
}

AVX2 void put_halves(uint8_t *p, __m256i v)
{
	store16(p, _mm256_castsi256_si128(v));
	store16(p + 12, _mm256_extracti128_si256(v, 1));
}

AVX2 void put(uint8_t *p, __m256i v)
{
	const __m128i at = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14,
					 -1, -1, -1, -1);

	put_halves(p, _mm256_shuffle_epi8(v, twice(at)));
}

AVX2 void put3(uint8_t *p, __m256i v)
{
	const __m128i at = _mm_setr_epi8(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11,
					 -1, -1, -1, -1);

	put_halves(p, _mm256_shuffle_epi8(v, twice(at)));
}

AVX2 __m256i widen(const uint8_t *p)
{
	return _mm256_cvtepu8_epi32(
		_mm_loadl_epi64((const __m128i *)(const void *)p));
}

AVX2 __m256i widen2(const uint8_t *p)
{
	return _mm256_cvtepu8_epi16(read16(p));
}

AVX2 void narrow2(__m256i w, uint8_t *p)
{
	__m256i v = _mm256_packus_epi16(w, w);

	store16(p, _mm256_castsi256_si128(_mm256_permute4x64_epi64(v, 8)));
}

AVX2 __m256i gathered(__m256i v)
{
	return _mm256_permutevar8x32_epi32(
		v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

AVX2 __m256i pick(const uint32_t table[8], __m256i i)
{
	return _mm256_permutevar8x32_epi32(
		_mm256_loadu_si256((const __m256i *)(const void *)table), i);
}

AVX2 __m256i same(__m256i a, __m256i b, __m256i x, __m256i y)
{
	return _mm256_blendv_epi8(y, x, _mm256_cmpeq_epi32(a, b));
}

AVX2 __m256i bits_of(__m256 v)
{
	return _mm256_castps_si256(v);
}

AVX2 __m256 as_floats(__m256i v)
{
	return _mm256_castsi256_ps(v);
}

/* The byte offsets of the four double words of a half, in the lower three bytes
 * of each. */
AVX2 __m256i offsets(void)
{
	return twice(_mm_setr_epi32(0, 0x040404, 0x080808, 0x0c0c0c));
}

#include "ops/x86/colour_body.h"

/* ------------------------------------------------------------------------
 * Tables
 *
 * A shuffle finds a byte among 16, and gives 0 where the place is negative.  If
 * places go down by 16 for each next part of the table, those before the right
 * part have had their turn, and those behind it give 0; so each part is stored
 * as its difference from the one before.  Values from 128 on have the other
 * half.
 */

INLINE void make_table(const uint8_t *table, __m256i d[16])
{
	for (unsigned i = 0; i < 16; i++) {
		d[i] = twice(read16(table + 16 * i));
		if (i % 8)
			d[i] = _mm256_xor_si256(
				d[i], twice(read16(table + 16 * (i - 1))));
	}
}

INLINE __m256i found(const __m256i d[16], __m256i v)
{
	const __m256i next = _mm256_set1_epi8(16);
	__m256i w = _mm256_xor_si256(v, _mm256_set1_epi8(-128));
	__m256i a = _mm256_shuffle_epi8(d[0], v);
	__m256i b = _mm256_shuffle_epi8(d[8], w);

	for (unsigned i = 1; i < 8; i++) {
		v = _mm256_subs_epi8(v, next);
		w = _mm256_subs_epi8(w, next);
		a = _mm256_xor_si256(a, _mm256_shuffle_epi8(d[i], v));
		b = _mm256_xor_si256(b, _mm256_shuffle_epi8(d[i + 8], w));
	}
	return _mm256_xor_si256(a, b);
}

TARGET static void avx2_look_up(const uint8_t *table, uint8_t *p, size_t n)
{
	__m256i d[16];

	make_table(table, d);
	for (size_t i = 0; i < n; i += 32)
		store(p + i, found(d, read(p + i)));
}

/* Where i % 3 == 0 those of a, where it is 1 those of b, else those of c. */
INLINE __m256i thirds(__m256i a, __m256i b, __m256i c)
{
	const __m256i one = _mm256_setr_epi8(
		0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0,
		-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1);
	const __m256i two = _mm256_setr_epi8(
		0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0,
		0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0);

	return _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, one), c, two);
}

/*
 * Each of three vectors has a channel's bytes at places where the other two
 * have none: so one vector can hold the channel, and give its bytes back.
 */
TARGET static void avx2_look_up3(const uint8_t (*tables)[256], uint8_t *p,
				 size_t n)
{
	__m256i d[3][16];

	for (unsigned k = 0; k < 3; k++)
		make_table(tables[k], d[k]);
	for (; n >= 32; n -= 32, p += 96) {
		__m256i a = read(p), b = read(p + 32), c = read(p + 64);
		__m256i x = found(d[0], thirds(a, b, c));
		__m256i y = found(d[1], thirds(c, a, b));
		__m256i z = found(d[2], thirds(b, c, a));

		store(p, thirds(x, y, z));
		store(p + 32, thirds(z, x, y));
		store(p + 64, thirds(y, z, x));
	}
	for (; n; n--, p += 3)
		for (unsigned k = 0; k < 3; k++)
			p[k] = tables[k][p[k]];
}

/* ------------------------------------------------------------------------
 * Sums, and greys in three channels
 */

TARGET static uint64_t avx2_sum(const uint8_t *p, size_t n)
{
	__m256i sums = _mm256_setzero_si256();
	uint64_t sum = 0, part[4];
	size_t i = 0;

	for (; i + 32 <= n; i += 32)
		sums = _mm256_add_epi64(
			sums,
			_mm256_sad_epu8(read(p + i), _mm256_setzero_si256()));
	_mm256_storeu_si256((__m256i *)(void *)part, sums);
	for (; i < n; i++)
		sum += p[i];
	return sum + part[0] + part[1] + part[2] + part[3];
}

TARGET static void avx2_spread(const uint8_t *src, uint8_t *dst, size_t n)
{
	const __m128i a =
		_mm_setr_epi8(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5);
	const __m128i b =
		_mm_setr_epi8(5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10);
	const __m128i c = _mm_setr_epi8(10, 11, 11, 11, 12, 12, 12, 13, 13, 13,
					14, 14, 14, 15, 15, 15);

	for (size_t i = 0; i < n; i += 16, dst += 48) {
		__m128i v = read16(src + i);

		store16(dst, _mm_shuffle_epi8(v, a));
		store16(dst + 16, _mm_shuffle_epi8(v, b));
		store16(dst + 32, _mm_shuffle_epi8(v, c));
	}
}

void tsi_colour_kernel_init_avx2(struct tsi_colour_kernel *k)
{
	*k = (struct tsi_colour_kernel){
		.look_up = avx2_look_up,
		.look_up3 = avx2_look_up3,
		.luminance = vec_luminance,
		.spread = avx2_spread,
		.sum = avx2_sum,
		.extremes = vec_extremes,
		.saturate = vec_saturate,
		.blend = vec_blend,
		.smooth = vec_smooth,
		.hue = vec_hue,
		.weigh = vec_weigh,
		.truncate = vec_truncate,
	};
}
