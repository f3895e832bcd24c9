/* SPDX-License-Identifier: MIT */
/*
 * init.c - the kernels of an x86-64 processor, level by level.
 */
#include "jpeg/x86/init.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/*
 * Pieces from which on sixteen lanes are faster than four: a step takes the
 * same time whether all of the sixteen are busy or one is.
 */
#define WIDE_FROM 7

void tsi_jpeg_kernel_init_x86(struct tsi_jpeg_kernel *k, enum tsi_simd level)
{
	if (level >= TSI_SIMD_AVX2)
		tsi_jpeg_kernel_init_avx2(k);
	if (level >= TSI_SIMD_AVX512)
		tsi_jpeg_kernel_init_avx512(k);
}

/*
 * A mitigation of gather data sampling makes gathers slow.  What the kernel
 * says of it then: "Mitigation: Microcode".
 */
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

void tsi_entropy_kernel_init_x86(struct tsi_entropy_kernel *k,
				 enum tsi_simd level)
{
	if (level < TSI_SIMD_AVX2)
		return;
	k->unstuff = tsi_unstuff_avx2;
	k->run = tsi_lane_run_avx2;
	if (level < TSI_SIMD_AVX512)
		return;
	k->wide_run = tsi_wide_run_avx512;
	k->wide_settle = tsi_wide_settle_avx512;
	k->wide_from = gathers_are_slow() ? 0 : WIDE_FROM;
}
