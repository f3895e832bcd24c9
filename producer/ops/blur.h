/* SPDX-License-Identifier: MIT */
/*
 * blur.h - Gaussian blurs: Pillow's and torchvision's, which are two different
 * things.
 *
 * Pillow's ImageFilter.GaussianBlur is three box blurs along each axis
 * (src/libImaging/BoxBlur.c), in whole numbers, each rounded to bytes; values at
 * the edge are repeated.  The bytes are those of Pillow 13.
 *
 * torchvision's GaussianBlur is a convolution in float with (2 * radius + 1)^2
 * taps, rounded, with the picture mirrored beyond its edges.  torch's own bits
 * depend on the library and the instructions that it finds.  Here it is done
 * along the rows and then along the columns, which is the same filter: some 20
 * of a million bytes differ, by 1.
 */
#ifndef TSI_OPS_BLUR_H
#define TSI_OPS_BLUR_H

#include <stdint.h>

#include "ops/canvas.h"

/*
 * GaussianBlur((radius_x, radius_y)): 0 <= radius, which is the standard
 * deviation.  Fails with TSOCK_ENOMEM.
 */
int tsi_blur_pillow(struct tsi_canvas *c, float radius_x, float radius_y);

/*
 * F.gaussian_blur(picture, (size_x, size_y), (sigma_x, sigma_y)): sizes are odd
 * and below 2 * TSI_WARP_REACH, and sigmas above 0.  torchvision refuses a size
 * of twice the picture's or more; here the picture is mirrored again and again.
 * Fails with TSOCK_ENOMEM.
 */
int tsi_blur_torchvision(struct tsi_canvas *c, uint32_t size_x, uint32_t size_y,
			 double sigma_x, double sigma_y);

#endif
