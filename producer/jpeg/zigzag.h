/* SPDX-License-Identifier: MIT */
/*
 * zigzag.h - the order in which JPEG files have a block's coefficients.
 */
#ifndef TSI_JPEG_ZIGZAG_H
#define TSI_JPEG_ZIGZAG_H

#include <stdint.h>

/* Zigzag position of each coefficient in natural order. */
extern const uint8_t tsi_jpeg_zigzag_of[64];

#endif
