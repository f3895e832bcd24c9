/* SPDX-License-Identifier: MIT */
/*
 * permutation.c - the network of sixteen numbers at once with AVX2.
 *
 * A lane of 64 bits has a row, a column or a word in its lower half.  Rows and
 * columns have zeros above it; what is above a word doesn't matter to the
 * multiplications.
 */
#include "order/permutation_kernel.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE AVX2 __attribute__((always_inline)) static inline

#define VECTORS 4 /* of four numbers */

_Static_assert(TSI_PERMUTATION_STEP == 4 * VECTORS, "a step is all of them");

struct four {
	__m256i v[VECTORS];
};

INLINE __m256i all(uint32_t word)
{
	return _mm256_set1_epi64x((int64_t)word);
}

INLINE struct four load(const uint32_t *v)
{
	struct four f;

	for (unsigned i = 0; i < VECTORS; i++)
		f.v[i] = _mm256_cvtepu32_epi64(_mm_loadu_si128(
			(const __m128i *)(const void *)(v + 4 * i)));
	return f;
}

INLINE void store(const struct four *f, uint32_t *v)
{
	const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);

	for (unsigned i = 0; i < VECTORS; i++)
		_mm_storeu_si128(
			(__m128i *)(void *)(v + 4 * i),
			_mm256_castsi256_si128(
				_mm256_permutevar8x32_epi32(f->v[i], even)));
}

/* to += f(from), modulo m. */
INLINE void round_of(struct four *to, const struct four *from, uint32_t t,
		     uint32_t key, __m256i m)
{
	struct four x = *from, low;

	for (unsigned i = 0; i < VECTORS; i++)
		low.v[i] = all(t);
	for (unsigned r = 0; r < TSI_PERMUTATION_MIXES; r++) {
		__m256i k = all(key + r * TSI_PERMUTATION_W);

		for (unsigned i = 0; i < VECTORS; i++) {
			__m256i p = _mm256_mul_epu32(x.v[i],
						     all(TSI_PERMUTATION_M));

			x.v[i] = _mm256_xor_si256(
				_mm256_xor_si256(_mm256_srli_epi64(p, 32), k),
				low.v[i]);
			low.v[i] = p;
		}
	}
	for (unsigned i = 0; i < VECTORS; i++) {
		__m256i sum = _mm256_add_epi32(
			to->v[i],
			_mm256_srli_epi64(_mm256_mul_epu32(x.v[i], m), 32));

		/* Below m, sum - m is more than sum. */
		to->v[i] = _mm256_min_epu32(sum, _mm256_sub_epi32(sum, m));
	}
}

AVX2 static void run(const struct tsi_permutation *p, const uint32_t *key,
		     uint32_t *row, uint32_t *column, unsigned n)
{
	const __m256i rows = all(p->rows), columns = all(p->columns);

	for (unsigned at = 0; at < n; at += TSI_PERMUTATION_STEP) {
		struct four r = load(row + at), c = load(column + at);

		for (uint32_t i = 0; i < TSI_PERMUTATION_ROUNDS; i += 2) {
			round_of(&r, &c, key[2] + i, key[0], rows);
			round_of(&c, &r, key[3] + i + 1, key[1], columns);
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
