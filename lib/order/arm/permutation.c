/* SPDX-License-Identifier: MIT */
/*
 * permutation.c - the network of sixteen numbers at once with NEON.
 *
 * A lane of 32 bits has a row, a column or a word.  Loops over vectors are
 * unrolled, so that vectors stay in registers.
 */
#include "order/permutation_kernel.h"

#include <arm_neon.h>

#define INLINE static inline __attribute__((always_inline))

#define VECTORS 4 /* of four numbers */

_Static_assert(TSI_PERMUTATION_STEP == 4 * VECTORS, "a step is all of them");

struct some {
	uint32x4_t v[VECTORS];
};

INLINE struct some load(const uint32_t *v)
{
	struct some s;

#pragma GCC unroll 4
	for (unsigned i = 0; i < VECTORS; i++)
		s.v[i] = vld1q_u32(v + 4 * i);
	return s;
}

INLINE void store(const struct some *s, uint32_t *v)
{
#pragma GCC unroll 4
	for (unsigned i = 0; i < VECTORS; i++)
		vst1q_u32(v + 4 * i, s->v[i]);
}

INLINE uint32x4_t mix(uint32x4_t x, uint32_t m)
{
	x = vmulq_u32(x, vdupq_n_u32(m));
	return veorq_u32(x, vshrq_n_u32(x, TSI_PERMUTATION_SHIFT));
}

/* The upper halves of the products. */
INLINE uint32x4_t times(uint32x4_t x, uint32x4_t m)
{
	uint64x2_t low = vmull_u32(vget_low_u32(x), vget_low_u32(m));
	uint64x2_t high = vmull_high_u32(x, m);

	return vuzp2q_u32(vreinterpretq_u32_u64(low),
			  vreinterpretq_u32_u64(high));
}

/* to += f(from), modulo m. */
INLINE void round_of(struct some *to, const struct some *from, uint32_t first,
		     uint32_t second, uint32x4_t m)
{
#pragma GCC unroll 4
	for (unsigned i = 0; i < VECTORS; i++) {
		uint32x4_t x = veorq_u32(from->v[i], vdupq_n_u32(first)), sum;

		x = mix(x, TSI_PERMUTATION_M0);
		x = veorq_u32(x, vdupq_n_u32(second));
		x = mix(mix(x, TSI_PERMUTATION_M1), TSI_PERMUTATION_M2);
		sum = vaddq_u32(to->v[i], times(x, m));
		/* Below m, sum - m is more than sum. */
		to->v[i] = vminq_u32(sum, vsubq_u32(sum, m));
	}
}

static void run(const struct tsi_permutation *p, const uint32_t *key,
		uint32_t *row, uint32_t *column, unsigned n)
{
	const uint32x4_t rows = vdupq_n_u32(p->rows);
	const uint32x4_t columns = vdupq_n_u32(p->columns);

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

void tsi_permutation_kernel_init_arm(struct tsi_permutation_kernel *k,
				     enum tsi_simd level)
{
	if (level >= TSI_SIMD_NEON)
		k->run = run;
}
