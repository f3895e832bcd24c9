/* SPDX-License-Identifier: MIT */
/*
 * simd.c - asks the processor, and chooses.
 */
#include "image/simd.h"

#ifdef __x86_64__

#include <cpuid.h>

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512vbmi") &&
	       __builtin_cpu_supports("avx512vnni");
}

bool tsi_simd_has(enum tsi_simd simd)
{
	switch (simd) {
	case TSI_SIMD_AVX2:
		return __builtin_cpu_supports("avx2");
	case TSI_SIMD_AVX512:
		return has_avx512();
	default:
		return true;
	}
}

/* clang's __builtin_cpu_supports() doesn't know MOVBE before version 15. */
bool tsi_simd_has_bits(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && c & bit_MOVBE &&
	       __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

#else

bool tsi_simd_has_bits(void)
{
	return false;
}

bool tsi_simd_has(enum tsi_simd simd)
{
	return simd == TSI_SIMD_SCALAR || simd == TSI_SIMD_BEST;
}

#endif

enum tsi_simd tsi_simd_best(void)
{
	if (tsi_simd_has(TSI_SIMD_AVX512))
		return TSI_SIMD_AVX512;
	return tsi_simd_has(TSI_SIMD_AVX2) ? TSI_SIMD_AVX2 : TSI_SIMD_SCALAR;
}
