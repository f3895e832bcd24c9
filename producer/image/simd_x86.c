/* SPDX-License-Identifier: MIT */
/*
 * simd_x86.c - asks the processor.
 */
#include "image/simd.h"

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
