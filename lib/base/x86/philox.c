/* SPDX-License-Identifier: MIT */
/*
 * philox.c - Philox4x32-10 of eight counters at once with AVX2.
 *
 * A lane of 64 bits has one word of one counter in its lower half; what is in
 * its upper half doesn't matter to the multiplications.
 */
#include "base/philox_kernel.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE AVX2 __attribute__((always_inline)) static inline

#define ROUNDS 10
#define VECTORS 2 /* of four counters */

_Static_assert(TSI_PHILOX_STEP == 4 * VECTORS, "a step is all of them");

/* The paper's multipliers, and what is added to the key's halves. */
#define M0 0xd2511f53u
#define M1 0xcd9e8d57u
#define W0 0x9e3779b9u
#define W1 0xbb67ae85u

struct four {
	__m256i v[4];
};

INLINE __m256i all(uint32_t word)
{
	return _mm256_set1_epi64x((int64_t)word);
}

INLINE struct four begin(struct tsi_philox_ctr c)
{
	/* The first word wraps around by itself. */
	__m256i first =
		_mm256_add_epi32(all(c.v[0]), _mm256_set_epi64x(3, 2, 1, 0));

	return (struct four){ { first, all(c.v[1]), all(c.v[2]),
				all(c.v[3]) } };
}

INLINE struct four mix(struct four c, __m256i k0, __m256i k1)
{
	__m256i p0 = _mm256_mul_epu32(c.v[0], all(M0));
	__m256i p1 = _mm256_mul_epu32(c.v[2], all(M1));
	__m256i high0 = _mm256_srli_epi64(p0, 32);
	__m256i high1 = _mm256_srli_epi64(p1, 32);

	return (struct four){
		{ _mm256_xor_si256(_mm256_xor_si256(high1, c.v[1]), k0), p1,
		  _mm256_xor_si256(_mm256_xor_si256(high0, c.v[3]), k1), p0 }
	};
}

/* Two words of each counter, next to each other. */
INLINE __m256i join(__m256i low, __m256i high)
{
	return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
}

INLINE void store(struct four c, struct tsi_philox_ctr *out)
{
	__m256i a = join(c.v[0], c.v[1]), b = join(c.v[2], c.v[3]);
	__m256i even = _mm256_unpacklo_epi64(a, b); /* counters 0 and 2 */
	__m256i odd = _mm256_unpackhi_epi64(a, b);
	__m256i *to = (__m256i *)(void *)out;

	_mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
	_mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
}

AVX2 static void run(uint64_t key, struct tsi_philox_ctr ctr, unsigned n,
		     struct tsi_philox_ctr *out)
{
	for (unsigned i = 0; i < n; i += TSI_PHILOX_STEP) {
		uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
		struct four c[VECTORS];

		for (unsigned v = 0; v < VECTORS; v++, ctr.v[0] += 4)
			c[v] = begin(ctr);
		for (unsigned r = 0; r < ROUNDS; r++, k0 += W0, k1 += W1)
			for (unsigned v = 0; v < VECTORS; v++)
				c[v] = mix(c[v], all(k0), all(k1));
		for (unsigned v = 0; v < VECTORS; v++)
			store(c[v], out + i + 4 * v);
	}
}

void tsi_philox_kernel_init_x86(struct tsi_philox_kernel *k,
				enum tsi_simd level)
{
	if (level >= TSI_SIMD_AVX2)
		k->run = run;
}
