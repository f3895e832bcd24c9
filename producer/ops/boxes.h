/* SPDX-License-Identifier: MIT */
/*
 * boxes.h - what the geometry of a recipe makes of the bounding boxes of a
 * picture's objects.
 *
 * As torchvision.transforms.v2 does it to tv_tensors.BoundingBoxes of the
 * format XYXY, in single precision and step by step: a crop or a border moves a
 * box, and cuts it off at the picture's edges; a resize scales it; a warp moves
 * its four corners, and what encloses them is the box from then on, cut off
 * likewise.
 */
#ifndef TSI_OPS_BOXES_H
#define TSI_OPS_BOXES_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/framing.h"
#include "ops/pad.h"
#include "ops/warp_map.h"

/* Left, top, right and bottom, in pixels. */
typedef float tsi_boxes_edges[4];

struct tsi_boxes {
	tsi_boxes_edges *box; /* n, the caller's */
	uint32_t n;
	uint32_t width; /* of the picture so far */
	uint32_t height;
};

/* The framing of one operation, of a picture of this size. */
void tsi_boxes_frame(struct tsi_boxes *b, const struct tsi_framing *g);

void tsi_boxes_pad(struct tsi_boxes *b, const struct tsi_pad_border *p);

/* As tsi_mask_affine(), tsi_mask_rotate() and tsi_mask_perspective(). */
void tsi_boxes_affine(struct tsi_boxes *b, const struct tsi_warp_affinity *a,
		      const double *centre);
void tsi_boxes_rotate(struct tsi_boxes *b, double degrees,
		      const double *centre);
void tsi_boxes_perspective(struct tsi_boxes *b, const double map[8]);

/* v2's ClampBoundingBoxes. */
void tsi_boxes_clamp(struct tsi_boxes *b);

/*
 * Does v2's SanitizeBoundingBoxes keep this box: has it a width, a height and
 * an area of 1 at least, and does it lie in the picture?
 */
bool tsi_boxes_keeps(const struct tsi_boxes *b, const tsi_boxes_edges box);

#endif
