/* SPDX-License-Identifier: MIT */
/*
 * zigzag.h - the order in which JPEG files have a block's coefficients.
 */
#ifndef TSI_JPEG_ZIGZAG_H
#define TSI_JPEG_ZIGZAG_H

#include <stdint.h>

/* Zigzag position of each coefficient in natural order. */
extern const uint8_t tsi_jpeg_zigzag_of[64];

/*
 * The coefficient, in natural order, at each zigzag position.  Those behind the
 * last one are 0: what damaged files have there goes to the first coefficient,
 * which is written when the block has ended.
 */
extern const uint8_t tsi_jpeg_natural[256];

#endif
