/* SPDX-License-Identifier: MIT */
/*
 * preset.c - the table of presets.
 */
#include "image/preset.h"

#define ENTRY(name, help) &tsi_preset_##name,

static const struct tsi_preset *const presets[] = { TSI_PRESETS(ENTRY) };

const struct tsi_preset *tsi_preset_at(unsigned k)
{
	return presets[k];
}
