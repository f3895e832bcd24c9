/* SPDX-License-Identifier: MIT */
/*
 * simd.c - what an x86-64 processor says that it has.
 */
#include "base/simd.h"

#include <cpuid.h>
#include <stdbool.h>

/*
 * Bits of cpuid's leaf 1 and leaf 0x80000001, ECX: clang 14 can't be asked for
 * these by __builtin_cpu_supports(), nor do all compilers name them alike.
 */
#define LEAF_1_MOVBE (1u << 22)
#define LEAF_1_F16C (1u << 29)
#define LEAF_EXTENDED 0x80000001
#define EXTENDED_LZCNT (1u << 5)

static bool has(unsigned leaf, unsigned ecx)
{
	unsigned a, b, c, d;

	return __get_cpuid(leaf, &a, &b, &c, &d) && (c & ecx) == ecx;
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2") &&
	       __builtin_cpu_supports("bmi") &&
	       __builtin_cpu_supports("bmi2") &&
	       __builtin_cpu_supports("fma") &&
	       has(1, LEAF_1_MOVBE | LEAF_1_F16C) &&
	       has(LEAF_EXTENDED, EXTENDED_LZCNT);
}

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512vbmi") &&
	       __builtin_cpu_supports("avx512vbmi2") &&
	       __builtin_cpu_supports("avx512vnni");
}

void tsi_simd_init_x86(struct tsi_simd_levels *l, enum tsi_simd level)
{
	if (level < TSI_SIMD_AVX2 || !has_avx2())
		return;
	l->best = TSI_SIMD_AVX2;
	l->name[TSI_SIMD_AVX2] = "avx2";
	if (level < TSI_SIMD_AVX512 || !has_avx512())
		return;
	l->best = TSI_SIMD_AVX512;
	l->name[TSI_SIMD_AVX512] = "avx512";
}
