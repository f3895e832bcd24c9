/* SPDX-License-Identifier: MIT */
/*
 * decoder_ppm.h - an image format for tests: PPM, pixels as they are.
 */
#ifndef TEST_DECODER_PPM_H
#define TEST_DECODER_PPM_H

#include "pixel/decoder.h"

extern const struct tsi_decoder_ops tsi_ppm_ops;

#endif
