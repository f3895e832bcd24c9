/* SPDX-License-Identifier: MIT */
/*
 * colour.h - the colours of a picture changed, as by Pillow: what torchvision's
 * functions do to a picture of Pillow's.
 *
 * The bytes are those of Pillow 13.  Pictures of one channel are treated as
 * Pillow treats those of mode L.  All fail with TSOCK_ENOMEM, or can't fail and
 * return 0.
 *
 * A blend is Image.blend(d, picture, factor): d + factor * (p - d) in float32,
 * truncated to a byte, and for factors outside of 0 to 1 clipped first.
 */
#ifndef TSI_OPS_COLOUR_H
#define TSI_OPS_COLOUR_H

#include <stdint.h>

#include "ops/canvas.h"

/* ImageEnhance.Brightness: a blend with black. */
int tsi_colour_brightness(struct tsi_canvas *c, double factor);

/*
 * ImageEnhance.Contrast: a blend with one grey, int(mean + 0.5) of the pixels'
 * luminances.
 */
int tsi_colour_contrast(struct tsi_canvas *c, double factor);

/* ImageEnhance.Color: a blend of each pixel with its luminance. */
int tsi_colour_saturation(struct tsi_canvas *c, double factor);

/*
 * ImageEnhance.Sharpness: a blend with the picture smoothed by ImageFilter's
 * SMOOTH (src/libImaging/Filter.c), whose border is the picture's own.
 */
int tsi_colour_sharpness(struct tsi_canvas *c, double factor);

/*
 * torchvision's adjust_hue(), -0.5 to 0.5: by way of bytes of HSV
 * (src/libImaging/Convert.c), so that 0 changes pixels, too.  Grey pictures stay
 * as they are.
 */
int tsi_colour_hue(struct tsi_canvas *c, double hue);

/*
 * Image.blend(d, picture, factor), where d is another picture of this one's size
 * and channels, with TSI_CANVAS_SLACK bytes behind it that may be read.
 */
int tsi_colour_blend_with(struct tsi_canvas *c, const uint8_t *d,
			  double factor);

/*
 * The luminance, (19595 R + 38470 G + 7471 B + 2^15) >> 16, in all channels that
 * the picture has; or in one, which it has then.
 */
int tsi_colour_grayscale(struct tsi_canvas *c);
int tsi_colour_to_gray(struct tsi_canvas *c);

/* Grey in three channels, which the picture has then. */
int tsi_colour_to_rgb(struct tsi_canvas *c);

/* 255 - v. */
int tsi_colour_invert(struct tsi_canvas *c);

/* 255 - v from this value on. */
int tsi_colour_solarize(struct tsi_canvas *c, double threshold);

/* timm's SolarizeAdd: v + add, at most 255, below 128. */
int tsi_colour_solarize_add(struct tsi_canvas *c, int add);

/* The highest so many bits, 0 to 8. */
int tsi_colour_posterize(struct tsi_canvas *c, unsigned bits);

/* ImageOps.autocontrast: each channel from 0 to 255. */
int tsi_colour_autocontrast(struct tsi_canvas *c);

/* ImageOps.equalize: each channel's histogram. */
int tsi_colour_equalize(struct tsi_canvas *c);

#endif
