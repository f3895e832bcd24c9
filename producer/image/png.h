/*
 * png.h - PNG bytes to the pixels of one rectangle.
 *
 * As Pillow's convert("RGB"): palettes and low depths widened, grey
 * replicated, transparency, gamma and colour profiles ignored.  Depth 16 is
 * refused.  What is bad and what isn't is Pillow's choice (pngfile.h) down to
 * the rectangle's last row.  The file behind it is the only one that knows
 * libpng.
 */
#ifndef TSI_IMAGE_PNG_H
#define TSI_IMAGE_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "image/decoder.h"

/* The contract is jpeg.h's. */
struct tsi_png;

int tsi_png_create(struct tsi_png **out);
void tsi_png_destroy(struct tsi_png *p);
int tsi_png_open(struct tsi_png *p, const void *data, size_t len,
		 uint32_t *width, uint32_t *height);
uint64_t tsi_png_need(struct tsi_png *p);
int tsi_png_begin(struct tsi_png *p, const struct tsi_rect *rect);
int tsi_png_read(struct tsi_png *p, struct tsi_strip *strip);
uint32_t tsi_png_rows(const struct tsi_png *p);
void tsi_png_close(struct tsi_png *p);

/* The version of libpng that is loaded, as "1.6.39". */
const char *tsi_png_version(void);

#endif
