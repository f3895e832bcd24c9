/* SPDX-License-Identifier: MIT */
/*
 * permutation.c - the network of sixteen numbers at once with AVX2.
 *
 * A lane of 32 bits has a row, a column or a word.
 */
#include "order/permutation_kernel.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE AVX2 __attribute__((always_inline)) static inline

#define VECTORS 2 /* of eight numbers */

_Static_assert(TSI_PERMUTATION_STEP == 8 * VECTORS, "a step is all of them");

struct some {
	__m256i v[VECTORS];
};

INLINE __m256i all(uint32_t word)
{
	return _mm256_set1_epi32((int)word);
}

INLINE struct some load(const uint32_t *v)
{
	struct some s;

	for (unsigned i = 0; i < VECTORS; i++)
		s.v[i] = _mm256_loadu_si256(
			(const __m256i *)(const void *)(v + 8 * i));
	return s;
}

INLINE void store(const struct some *s, uint32_t *v)
{
	for (unsigned i = 0; i < VECTORS; i++)
		_mm256_storeu_si256((__m256i *)(void *)(v + 8 * i), s->v[i]);
}

INLINE __m256i mix(__m256i x, uint32_t m)
{
	x = _mm256_mullo_epi32(x, all(m));
	return _mm256_xor_si256(x, _mm256_srli_epi32(x, TSI_PERMUTATION_SHIFT));
}

/* The upper halves of the products. */
INLINE __m256i times(__m256i x, __m256i m)
{
	__m256i even = _mm256_srli_epi64(_mm256_mul_epu32(x, m), 32);
	__m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), m);

	return _mm256_blend_epi32(even, odd, 0xaa);
}

/* to += f(from), modulo m. */
INLINE void round_of(struct some *to, const struct some *from, uint32_t first,
		     uint32_t second, __m256i m)
{
	for (unsigned i = 0; i < VECTORS; i++) {
		__m256i x = _mm256_xor_si256(from->v[i], all(first)), sum;

		x = _mm256_xor_si256(mix(x, TSI_PERMUTATION_M0), all(second));
		x = mix(mix(x, TSI_PERMUTATION_M1), TSI_PERMUTATION_M2);
		sum = _mm256_add_epi32(to->v[i], times(x, m));
		/* Below m, sum - m is more than sum. */
		to->v[i] = _mm256_min_epu32(sum, _mm256_sub_epi32(sum, m));
	}
}

AVX2 static void run(const struct tsi_permutation *p, const uint32_t *key,
		     uint32_t *row, uint32_t *column, unsigned n)
{
	const __m256i rows = all(p->rows), columns = all(p->columns);

	for (unsigned at = 0; at < n; at += TSI_PERMUTATION_STEP) {
		struct some r = load(row + at), c = load(column + at);

		for (uint32_t i = 0; i < TSI_PERMUTATION_ROUNDS; i += 2) {
			round_of(&r, &c, key[0], key[2] + i, rows);
			round_of(&c, &r, key[1], key[3] + i + 1, columns);
		}
		store(&r, row + at);
		store(&c, column + at);
	}
}

void tsi_permutation_kernel_init_x86(struct tsi_permutation_kernel *k,
				     enum tsi_simd level)
{
	if (level >= TSI_SIMD_AVX2)
		k->run = run;
}
