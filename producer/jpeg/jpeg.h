/* SPDX-License-Identifier: MIT */
/*
 * jpeg.h - JPEG bytes to the pixels of one rectangle.
 *
 * Pixels are exactly those of a full decode with libjpeg-turbo's defaults
 * (accurate inverse DCT, fancy upsampling, block smoothing of unfinished
 * progressive files), CMYK turned to RGB by Pillow's formula; but only what
 * the rectangle needs is transformed, and rows below it are not even read.
 * Fast pixels (decoder.h) are those of a whole decode with scale_denom 1, 2, 4
 * or 8 and do_fancy_upsampling FALSE.
 * Most files are decoded by direct.h, all others by libjpeg-turbo in
 * turbo.h.
 */
#ifndef TSI_JPEG_JPEG_H
#define TSI_JPEG_JPEG_H

#include "pixel/decoder.h"

extern const struct tsi_decoder_ops tsi_jpeg_ops;

/* Its operations on a file's head; they know no libjpeg. */
bool tsi_jpeg_claims(const uint8_t *data, size_t len);
int tsi_jpeg_head(const uint8_t *data, size_t len, uint32_t *width,
		  uint32_t *height);

#endif
