/* SPDX-License-Identifier: MIT */
/*
 * neon_none.c - stands for the conversion by NEON in a build without it: it is
 * never chosen.
 */
#include "convert/impl.h"

static bool fits(const struct tsi_view_spec *spec)
{
	(void)spec;
	return false;
}

const struct tsi_convert_kernel tsi_convert_neon = { "neon", fits, NULL };
