/* SPDX-License-Identifier: MIT */
/*
 * flip.h - a picture mirrored, turned by right angles, or cut: pixels that
 * change their places and nothing else.
 */
#ifndef TSI_OPS_FLIP_H
#define TSI_OPS_FLIP_H

#include <stdint.h>

#include "ops/canvas.h"

/* Left and right change sides; in place. */
void tsi_flip_x(struct tsi_canvas *c);

/* Top and bottom change sides; in place. */
void tsi_flip_y(struct tsi_canvas *c);

/*
 * Turned counter-clockwise by so many right angles, as by Image.transpose of
 * ROTATE_90, ROTATE_180 and ROTATE_270.  Fails with TSOCK_ENOMEM.
 */
int tsi_flip_turn(struct tsi_canvas *c, unsigned quarters);

/* The part that lies inside of the picture, and isn't empty; in place. */
void tsi_flip_crop(struct tsi_canvas *c, uint32_t left, uint32_t top,
		   uint32_t width, uint32_t height);

#endif
