/*
 * convert_avx2.c - the conversion with AVX2, FMA and F16C.
 *
 * Values are computed, not looked up: with a divisor's reciprocal in two
 * floats, a rounded division is a product and a fused multiply-add.  Its
 * caller proves the result on all 256 values before it is used.  All loads
 * and stores are unaligned ones; the last pixels go by table.
 */
#include "stage/convert_impl.h"

#if defined(__x86_64__)

#include <cpuid.h>
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

/* The eight values at p, normalised. */
INLINE_AVX2 __m256 compute(__m128i bytes, const struct scale *s,
			   const struct lanes *k)
{
	__m256 v = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
	__m256 q = _mm256_fmadd_ps(v, s->hi, _mm256_mul_ps(v, s->lo));
	__m256 x = _mm256_sub_ps(q, k->mean);

	return _mm256_fmadd_ps(x, k->hi, _mm256_mul_ps(x, k->lo));
}

/* Round to bfloat16, ties to even; the values are never NaN. */
INLINE_AVX2 __m128i to_bfloat(__m256 y)
{
	__m256i u = _mm256_castps_si256(y);
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16),
				       _mm256_set1_epi32(1));

	u = _mm256_add_epi32(u, _mm256_set1_epi32(0x7fff));
	u = _mm256_srli_epi32(_mm256_add_epi32(u, odd), 16);
	return _mm_packus_epi32(_mm256_castsi256_si128(u),
				_mm256_extracti128_si256(u, 1));
}

/* Eight values to dst, from its element i on. */
INLINE_AVX2 void put(char *dst, size_t i, __m256 y, uint32_t dtype)
{
	if (dtype == TSOCK_F32) {
		_mm256_storeu_ps((float *)(void *)(dst + i * 4), y);
	} else if (dtype == TSOCK_F16) {
		_mm_storeu_si128((__m128i *)(void *)(dst + i * 2),
				 _mm256_cvtps_ph(y, _MM_FROUND_TO_NEAREST_INT));
	} else {
		_mm_storeu_si128((__m128i *)(void *)(dst + i * 2),
				 to_bfloat(y));
	}
}

INLINE_AVX2 __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* One channel of the 16 pixels in a, b, d; z sets a byte to zero. */
#define z -1
INLINE_AVX2 __m128i pick(__m128i a, __m128i b, __m128i d, int ch)
{
	const __m128i ma[3] = {
		_mm_setr_epi8(0, 3, 6, 9, 12, 15, z, z, z, z, z, z, z, z, z, z),
		_mm_setr_epi8(1, 4, 7, 10, 13, z, z, z, z, z, z, z, z, z, z, z),
		_mm_setr_epi8(2, 5, 8, 11, 14, z, z, z, z, z, z, z, z, z, z, z),
	};
	const __m128i mb[3] = {
		_mm_setr_epi8(z, z, z, z, z, z, 2, 5, 8, 11, 14, z, z, z, z, z),
		_mm_setr_epi8(z, z, z, z, z, 0, 3, 6, 9, 12, 15, z, z, z, z, z),
		_mm_setr_epi8(z, z, z, z, z, 1, 4, 7, 10, 13, z, z, z, z, z, z),
	};
	const __m128i md[3] = {
		_mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, z, 1, 4, 7, 10, 13),
		_mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, z, 2, 5, 8, 11, 14),
		_mm_setr_epi8(z, z, z, z, z, z, z, z, z, z, 0, 3, 6, 9, 12, 15),
	};

	a = _mm_shuffle_epi8(a, ma[ch]);
	b = _mm_shuffle_epi8(b, mb[ch]);
	d = _mm_shuffle_epi8(d, md[ch]);
	return _mm_or_si128(_mm_or_si128(a, b), d);
}
#undef z

INLINE_AVX2 struct scale scale_of(const struct tsi_convert *c)
{
	struct scale s = { _mm256_set1_ps(c->scale.hi),
			   _mm256_set1_ps(c->scale.lo) };

	return s;
}

/* Lane i computes channel (first + i * step) % 3. */
INLINE_AVX2 struct lanes lanes_of(const struct tsi_convert *c, int first,
				  int step)
{
	float mean[8], hi[8], lo[8];
	struct lanes k;

	for (int i = 0; i < 8; i++) {
		int ch = (first + i * step) % 3;

		mean[i] = c->mean[ch];
		hi[i] = c->istd[ch].hi;
		lo[i] = c->istd[ch].lo;
	}
	k.mean = _mm256_loadu_ps(mean);
	k.hi = _mm256_loadu_ps(hi);
	k.lo = _mm256_loadu_ps(lo);
	return k;
}

INLINE_AVX2 void chw(const struct tsi_convert *c, const uint8_t *src, size_t n,
		     char *dst, uint32_t dtype)
{
	const struct scale s = scale_of(c);
	const struct lanes k[3] = { lanes_of(c, 0, 0), lanes_of(c, 1, 0),
				    lanes_of(c, 2, 0) };
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		__m128i a = load(src + i * 3);
		__m128i b = load(src + i * 3 + 16);
		__m128i d = load(src + i * 3 + 32);

		for (int ch = 0; ch < 3; ch++) {
			size_t at = (size_t)ch * n + i;
			__m128i v = pick(a, b, d, ch);

			put(dst, at, compute(v, &s, &k[ch]), dtype);
			v = _mm_unpackhi_epi64(v, v);
			put(dst, at + 8, compute(v, &s, &k[ch]), dtype);
		}
	}
	tsi_convert_tail(c, src, i, n, dst);
}

/* Eight pixels are three vectors, each with channels in another order. */
INLINE_AVX2 void hwc(const struct tsi_convert *c, const uint8_t *src, size_t n,
		     char *dst, uint32_t dtype)
{
	const struct scale s = scale_of(c);
	const struct lanes k[3] = { lanes_of(c, 0, 1), lanes_of(c, 2, 1),
				    lanes_of(c, 1, 1) };
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		for (int j = 0; j < 3; j++) {
			size_t at = i * 3 + (size_t)j * 8;
			__m128i v = _mm_loadl_epi64(
				(const __m128i *)(const void *)(src + at));

			put(dst, at, compute(v, &s, &k[j]), dtype);
		}
	}
	tsi_convert_tail(c, src, i, n, dst);
}

AVX2 static void chw_u8(const struct tsi_convert *c, const uint8_t *src,
			size_t n, char *dst)
{
	size_t i;

	for (i = 0; i + 16 <= n; i += 16) {
		__m128i a = load(src + i * 3);
		__m128i b = load(src + i * 3 + 16);
		__m128i d = load(src + i * 3 + 32);

		for (int ch = 0; ch < 3; ch++) {
			char *p = dst + (size_t)ch * n + i;

			_mm_storeu_si128((__m128i *)(void *)p,
					 pick(a, b, d, ch));
		}
	}
	tsi_convert_tail(c, src, i, n, dst);
}

AVX2 static void run(const struct tsi_convert *c, const uint8_t *src,
		     size_t npixels, void *dst)
{
	bool to_chw = c->spec.layout == TSOCK_CHW;

	/* A constant dtype in each call: the compiler makes a loop of each. */
	switch (c->spec.dtype) {
	case TSOCK_U8:
		if (to_chw)
			chw_u8(c, src, npixels, dst);
		else
			memcpy(dst, src, npixels * 3);
		return;
	case TSOCK_F16:
		if (to_chw)
			chw(c, src, npixels, dst, TSOCK_F16);
		else
			hwc(c, src, npixels, dst, TSOCK_F16);
		return;
	case TSOCK_BF16:
		if (to_chw)
			chw(c, src, npixels, dst, TSOCK_BF16);
		else
			hwc(c, src, npixels, dst, TSOCK_BF16);
		return;
	default:
		if (to_chw)
			chw(c, src, npixels, dst, TSOCK_F32);
		else
			hwc(c, src, npixels, dst, TSOCK_F32);
	}
}

static bool fits(const struct tsi_view_spec *spec)
{
	unsigned a, b, c, d;

	(void)spec;
	/* Clang 14 can't be asked for f16c by name: leaf 1, ECX bit 29. */
	return __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("fma") &&
	       __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}

#else /* another processor: never chosen */

static bool fits(const struct tsi_view_spec *spec)
{
	(void)spec;
	return false;
}

static void run(const struct tsi_convert *c, const uint8_t *src, size_t npixels,
		void *dst)
{
	tsi_convert_tail(c, src, 0, npixels, dst);
}

#endif

const struct tsi_convert_kernel tsi_convert_avx2 = { "avx2", fits, run };
