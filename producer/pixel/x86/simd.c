/* SPDX-License-Identifier: MIT */
/*
 * simd.c - asks the processor.
 */
#include "pixel/simd.h"

#include <cpuid.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

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
	case TSI_SIMD_NEON:
		return false;
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

/* What the kernel says of gather data sampling: "Mitigation: Microcode". */
static bool gathers_are_slow(void)
{
	char text[64] = "";
	ssize_t n;
	int fd = open("/sys/devices/system/cpu/vulnerabilities/"
		      "gather_data_sampling",
		      O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && strstr(text, "Mitigation");
}

bool tsi_simd_has_wide(void)
{
	return has_avx512() && __builtin_cpu_supports("avx512vbmi2") &&
	       !gathers_are_slow();
}
