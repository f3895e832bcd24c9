/* SPDX-License-Identifier: MIT */
/*
 * preset_tint.h - a preset for tests: a square of the image, made redder.
 */
#ifndef TEST_PRESET_TINT_H
#define TEST_PRESET_TINT_H

#include "image/preset.h"

extern const struct tsi_preset tsi_preset_tint;

#endif
