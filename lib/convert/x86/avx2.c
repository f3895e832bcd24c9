/* SPDX-License-Identifier: MIT */
/*
 * avx2.c - the conversion with AVX2, FMA and F16C.
 *
 * Values are computed, not looked up: with a divisor's reciprocal in two
 * floats, a rounded division is a product and a fused multiply-add.  Its
 * caller proves the result on all 256 values before it is used.  All loads
 * and stores are unaligned ones; the last pixels go by table.
 */
#include "convert/x86/init.h"

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,fma,f16c")))
#define INLINE_AVX2 AVX2 __attribute__((always_inline)) static inline

/* What eight neighbouring values are computed with. */
struct lanes {
	__m256 mean, hi, lo;
};

struct scale {
	__m256 hi, lo;
};

/* Eight values, one per 32-bit lane, normalised. */
INLINE_AVX2 __m256 compute(__m256i lanes, const struct scale *s,
			   const struct lanes *k)
{
	__m256 v = _mm256_cvtepi32_ps(lanes);
	__m256 q = _mm256_fmadd_ps(v, s->hi, _mm256_mul_ps(v, s->lo));
	__m256 x = _mm256_sub_ps(q, k->mean);

	return _mm256_fmadd_ps(x, k->hi, _mm256_mul_ps(x, k->lo));
}

/* bfloat16 in the upper halves, ties to even; values are never NaN. */
INLINE_AVX2 __m256i to_bfloat(__m256 y)
{
	__m256i u = _mm256_castps_si256(y);
	__m256i odd = _mm256_srli_epi32(_mm256_slli_epi32(u, 15), 31);

	u = _mm256_add_epi32(u, _mm256_set1_epi32(0x7fff));
	return _mm256_add_epi32(u, odd);
}

/* The sixteen bytes of v to dst, from its element i on. */
INLINE_AVX2 void put(char *dst, size_t i, __m128i v, const struct scale *s,
		     const struct lanes *k, const struct lanes *k2,
		     uint32_t dtype)
{
	__m256i lo = _mm256_cvtepu8_epi32(v);
	__m256i hi = _mm256_cvtepu8_epi32(_mm_unpackhi_epi64(v, v));

	if (dtype == TSOCK_F32) {
		float *p = (float *)(void *)(dst + i * 4);

		_mm256_storeu_ps(p, compute(lo, s, k));
		_mm256_storeu_ps(p + 8, compute(hi, s, k2));
	} else {
		__m128i *p = (__m128i *)(void *)(dst + i * 2);

		_mm_storeu_si128(p, _mm256_cvtps_ph(compute(lo, s, k),
						    _MM_FROUND_TO_NEAREST_INT));
		_mm_storeu_si128(p + 1,
				 _mm256_cvtps_ph(compute(hi, s, k2),
						 _MM_FROUND_TO_NEAREST_INT));
	}
}

/*
 * Sixteen bytes as bfloat16.  Even and odd values are computed apart, so that
 * their upper halves fall into place without a shuffle: k is of the even
 * ones, k2 of the odd.
 */
INLINE_AVX2 void put_bfloat(char *dst, size_t i, __m128i v,
			    const struct scale *s, const struct lanes *k,
			    const struct lanes *k2)
{
	__m256i w = _mm256_cvtepu8_epi16(v);
	__m256i even = _mm256_and_si256(w, _mm256_set1_epi32(0xffff));
	__m256i odd = _mm256_srli_epi32(w, 16);

	even = _mm256_srli_epi32(to_bfloat(compute(even, s, k)), 16);
	odd = to_bfloat(compute(odd, s, k2));
	_mm256_storeu_si256((__m256i *)(void *)(dst + i * 2),
			    _mm256_blend_epi16(even, odd, 0xaa));
}

INLINE_AVX2 __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE_AVX2 void store(char *p, __m128i v)
{
	_mm_storeu_si128((__m128i *)(void *)p, v);
}

/*
 * Byte i of channel ch of the 16 pixels in three vectors is byte 3 * i + ch of
 * the 48; a mask is for the vector that begins at byte base, and -1 makes 0.
 */
#define AT(i, ch, base) \
	((uint8_t)((3 * (i) + (ch) - (base)) / 16 == 0 && \
				   3 * (i) + (ch) >= (base) \
			   ? 3 * (i) + (ch) - (base) \
			   : -1))
#define MASK(ch, base) \
	{ \
		AT(0, ch, base), AT(1, ch, base), AT(2, ch, base), \
			AT(3, ch, base), AT(4, ch, base), AT(5, ch, base), \
			AT(6, ch, base), AT(7, ch, base), AT(8, ch, base), \
			AT(9, ch, base), AT(10, ch, base), AT(11, ch, base), \
			AT(12, ch, base), AT(13, ch, base), AT(14, ch, base), \
			AT(15, ch, base) \
	}
#define MASKS(ch) \
	{ \
		MASK(ch, 0), MASK(ch, 16), MASK(ch, 32) \
	}

/* A mask per channel, for each of the three vectors. */
static const uint8_t mask[3][3][16] = { MASKS(0), MASKS(1), MASKS(2) };
#undef MASKS
#undef MASK
#undef AT

/* One channel of the 16 pixels in a, b, d. */
INLINE_AVX2 __m128i pick(__m128i a, __m128i b, __m128i d, int ch)
{
	a = _mm_shuffle_epi8(a, load(mask[ch][0]));
	b = _mm_shuffle_epi8(b, load(mask[ch][1]));
	d = _mm_shuffle_epi8(d, load(mask[ch][2]));
	return _mm_or_si128(_mm_or_si128(a, b), d);
}

INLINE_AVX2 struct scale scale_of(const struct tsi_convert *c)
{
	struct tsi_recip by = tsi_convert_arithmetic(c)->scale;
	struct scale s = { _mm256_set1_ps(by.hi), _mm256_set1_ps(by.lo) };

	return s;
}

/* Lane i computes channel (first + i * step) % 3. */
INLINE_AVX2 struct lanes lanes_of(const struct tsi_convert *c, int first,
				  int step)
{
	const struct tsi_convert_arithmetic *a = tsi_convert_arithmetic(c);
	float mean[8], hi[8], lo[8];
	struct lanes k;

	for (int i = 0; i < 8; i++) {
		int ch = (first + i * step) % 3;

		mean[i] = a->mean[ch];
		hi[i] = a->istd[ch].hi;
		lo[i] = a->istd[ch].lo;
	}
	k.mean = _mm256_loadu_ps(mean);
	k.hi = _mm256_loadu_ps(hi);
	k.lo = _mm256_loadu_ps(lo);
	return k;
}

INLINE_AVX2 void put_any(char *dst, size_t i, __m128i v, const struct scale *s,
			 const struct lanes *k, const struct lanes *k2,
			 uint32_t dtype)
{
	if (dtype == TSOCK_BF16)
		put_bfloat(dst, i, v, s, k, k2);
	else
		put(dst, i, v, s, k, k2, dtype);
}

INLINE_AVX2 void chw(const struct tsi_convert *c, const uint8_t *src, size_t n,
		     char *dst, uint32_t dtype)
{
	const struct scale s = scale_of(c);
	const struct lanes k0 = lanes_of(c, 0, 0);
	const struct lanes k1 = lanes_of(c, 1, 0);
	const struct lanes k2 = lanes_of(c, 2, 0);
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		__m128i a = load(src + i * 3);
		__m128i b = load(src + i * 3 + 16);
		__m128i d = load(src + i * 3 + 32);

		put_any(dst, i, pick(a, b, d, 0), &s, &k0, &k0, dtype);
		put_any(dst, n + i, pick(a, b, d, 1), &s, &k1, &k1, dtype);
		put_any(dst, 2 * n + i, pick(a, b, d, 2), &s, &k2, &k2, dtype);
	}
	tsi_scalar_rest(c, src, i, n, dst);
}

/*
 * Sixteen pixels are three vectors of sixteen values, whose first channels
 * are 0, 1 and 2.  Of each, the two halves (even and odd values, for bfloat16)
 * need their channels in two of three orders.
 */
INLINE_AVX2 void hwc(const struct tsi_convert *c, const uint8_t *src, size_t n,
		     char *dst, uint32_t dtype)
{
	const int step = dtype == TSOCK_BF16 ? 2 : 1;
	const struct scale s = scale_of(c);
	const struct lanes k0 = lanes_of(c, 0, step);
	const struct lanes k1 = lanes_of(c, 1, step);
	const struct lanes k2 = lanes_of(c, 2, step);
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		size_t at = i * 3;
		__m128i a = load(src + at);
		__m128i b = load(src + at + 16);
		__m128i d = load(src + at + 32);

		if (dtype == TSOCK_BF16) {
			put_bfloat(dst, at, a, &s, &k0, &k1);
			put_bfloat(dst, at + 16, b, &s, &k1, &k2);
			put_bfloat(dst, at + 32, d, &s, &k2, &k0);
		} else {
			put(dst, at, a, &s, &k0, &k2, dtype);
			put(dst, at + 16, b, &s, &k1, &k0, dtype);
			put(dst, at + 32, d, &s, &k2, &k1, dtype);
		}
	}
	tsi_scalar_rest(c, src, i, n, dst);
}

AVX2 static void chw_u8(const struct tsi_convert *c, const uint8_t *src,
			size_t n, void *out)
{
	char *dst = out;
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		__m128i a = load(src + i * 3);
		__m128i b = load(src + i * 3 + 16);
		__m128i d = load(src + i * 3 + 32);

		store(dst + i, pick(a, b, d, 0));
		store(dst + n + i, pick(a, b, d, 1));
		store(dst + 2 * n + i, pick(a, b, d, 2));
	}
	tsi_scalar_rest(c, src, i, n, dst);
}

/* A constant dtype in each call: the compiler makes a loop of each. */
AVX2 static void to_hwc(const struct tsi_convert *c, const uint8_t *src,
			size_t npixels, void *dst)
{
	switch (tsi_convert_spec(c)->dtype) {
	case TSOCK_U8:
		memcpy(dst, src, npixels * 3);
		return;
	case TSOCK_F16:
		hwc(c, src, npixels, dst, TSOCK_F16);
		return;
	case TSOCK_BF16:
		hwc(c, src, npixels, dst, TSOCK_BF16);
		return;
	default:
		hwc(c, src, npixels, dst, TSOCK_F32);
	}
}

AVX2 static void to_chw(const struct tsi_convert *c, const uint8_t *src,
			size_t npixels, void *dst)
{
	switch (tsi_convert_spec(c)->dtype) {
	case TSOCK_F16:
		chw(c, src, npixels, dst, TSOCK_F16);
		return;
	case TSOCK_BF16:
		chw(c, src, npixels, dst, TSOCK_BF16);
		return;
	default:
		chw(c, src, npixels, dst, TSOCK_F32);
	}
}

void tsi_convert_kernel_init_avx2(struct tsi_convert_kernel *k)
{
	k->hwc = to_hwc;
	k->chw = to_chw;
	k->chw_u8 = chw_u8;
}
