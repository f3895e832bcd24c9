/* SPDX-License-Identifier: MIT */
/*
 * jpeg_unstuff.c - the bytes of a JPEG scan without the stuffed zeros.
 *
 * One byte in about 256 is 0xff, so pieces between them are copied whole.
 */
#include "image/jpeg_unstuff.h"

#include <immintrin.h>
#include <string.h>

/* A 0xff at src[r->read]; false: it is the end. */
static bool take_ff(const uint8_t *src, size_t len, uint8_t *dst,
		    struct tsi_unstuffed *r)
{
	if (len - r->read < 2 || src[r->read + 1]) {
		r->ended = true;
		return false;
	}
	dst[r->written++] = 0xff;
	r->read += 2;
	return true;
}

/* Go on behind what *r says. */
static void unstuff(const uint8_t *src, size_t len, uint8_t *dst, size_t cap,
		    struct tsi_unstuffed *r)
{
	while (r->read < len && r->written < cap) {
		const uint8_t *from = src + r->read;
		size_t n = len - r->read;
		const uint8_t *ff;

		n = n < cap - r->written ? n : cap - r->written;
		ff = memchr(from, 0xff, n);
		n = ff ? (size_t)(ff - from) : n;
		memcpy(dst + r->written, from, n);
		r->read += n;
		r->written += n;
		if (ff && !take_ff(src, len, dst, r))
			return;
	}
}

struct tsi_unstuffed tsi_unstuff_scalar(const uint8_t *src, size_t len,
					uint8_t *dst, size_t cap)
{
	struct tsi_unstuffed r = { 0 };

	unstuff(src, len, dst, cap, &r);
	return r;
}

/* 32 bytes at a time; those behind the first 0xff are written once more. */
__attribute__((target("avx2"))) static struct tsi_unstuffed
unstuff_avx2(const uint8_t *src, size_t len, uint8_t *dst, size_t cap)
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
		if (at && !take_ff(src, len, dst, &r))
			return r;
	}
	unstuff(src, len, dst, cap, &r);
	return r;
}

tsi_unstuff_fn *tsi_unstuff_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? unstuff_avx2 : NULL;
}
