/* SPDX-License-Identifier: MIT */
/*
 * webp.h - WebP bytes to the pixels of one rectangle.
 *
 * As Pillow's convert("RGB"): transparency and colour profiles are ignored, and
 * of an animation the first frame is the image, on black where the frame is
 * smaller than the animation.  A file whose container is cut short or damaged
 * is bad, as it is to Pillow; damage inside the image matters down to the
 * rectangle's last row.  webp.c is the only file that knows libwebp; a build
 * without libwebp has webp_none.c instead of it.
 */
#ifndef TSI_WEBP_WEBP_H
#define TSI_WEBP_WEBP_H

#include "pixel/decoder.h"

extern const struct tsi_decoder_ops tsi_webp_ops;

/* What names of WebP files end with (struct tsi_decoder_ops). */
#define TSI_WEBP_EXTENSIONS " webp "

/* The decoder's operations on a file's head; they know no libwebp. */
bool tsi_webp_claims(const uint8_t *data, size_t len);
int tsi_webp_head(const uint8_t *data, size_t len, uint32_t *width,
		  uint32_t *height);

/* The version of libwebp that is loaded, as "1.2.4"; NULL: there is none. */
const char *tsi_webp_version(void);

#endif
