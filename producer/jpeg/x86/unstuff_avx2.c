/* SPDX-License-Identifier: MIT */
/*
 * unstuff_avx2.c - the bytes of a JPEG scan without the stuffed zeros,
 * with AVX2.
 */
#include "jpeg/x86/init.h"

#include <immintrin.h>

/* 32 bytes at a time; those behind the first 0xff are written once more. */
__attribute__((target("avx2"))) struct tsi_unstuffed
tsi_unstuff_avx2(const uint8_t *src, size_t len, uint8_t *dst, size_t cap)
{
	const __m256i ff = _mm256_set1_epi8(-1);
	struct tsi_unstuffed r = { 0 };

	while (len - r.read >= 32 && cap - r.written >= 32) {
		__m256i v = _mm256_loadu_si256(
			(const __m256i *)(const void *)(src + r.read));
		unsigned at = (unsigned)_mm256_movemask_epi8(
			_mm256_cmpeq_epi8(v, ff));
		unsigned n = at ? (unsigned)__builtin_ctz(at) : 32;

		_mm256_storeu_si256((__m256i *)(void *)(dst + r.written), v);
		r.read += n;
		r.written += n;
		if (at && !tsi_unstuff_ff(src, len, dst, &r))
			return r;
	}
	tsi_unstuff_on(src, len, dst, cap, &r);
	return r;
}
