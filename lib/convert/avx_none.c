/* SPDX-License-Identifier: MIT */
/*
 * avx_none.c - stands for the conversions by AVX2 and AVX-512 in a build without
 * them: they are never chosen.
 */
#include "convert/impl.h"

static bool fits(const struct tsi_view_spec *spec)
{
	(void)spec;
	return false;
}

const struct tsi_convert_kernel tsi_convert_avx2 = { "avx2", fits, NULL };
const struct tsi_convert_kernel tsi_convert_avx512 = { "avx512", fits, NULL };
