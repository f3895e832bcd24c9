/* SPDX-License-Identifier: MIT */
/*
 * png.h - PNG bytes to the pixels of one rectangle.
 *
 * As Pillow's convert("RGB"): palettes and low depths widened, grey
 * replicated, transparency, gamma and colour profiles ignored.  Of 16 bits
 * colours, and grey with transparency, keep the upper 8; grey alone is clipped:
 * all levels from 255 on are white.  What is bad and what isn't is Pillow's choice (file.h) down to
 * the rectangle's last row.  png.c is the only file that knows libpng.
 */
#ifndef TSI_PNG_PNG_H
#define TSI_PNG_PNG_H

#include "pixel/decoder.h"

extern const struct tsi_decoder_ops tsi_png_ops;

/* With these bytes every PNG file begins. */
extern const uint8_t tsi_png_magic[8];

/* The decoder's operations on a file's head; they know no libpng. */
bool tsi_png_claims(const uint8_t *data, size_t len);
int tsi_png_head(const uint8_t *data, size_t len, uint32_t *width,
		 uint32_t *height);

/*
 * Has a PNG of this colour type and depth one number a pixel, as struct
 * tsi_decoder's numbers wants?  EDATA: no.
 */
int tsi_png_numbers(unsigned type, unsigned depth);

/* The version of libpng that is loaded, as "1.6.39". */
const char *tsi_png_version(void);

#endif
