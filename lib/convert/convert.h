/* SPDX-License-Identifier: MIT */
/*
 * convert.h - one sample's image from u8 HWC to a view's dtype and layout.
 *
 * Pure functions on plain memory.  float32 values equal torchvision's
 * ToTensor and Normalize bit for bit: (v / 255 - mean) / std, each operation
 * rounded to float32.  float16 and bfloat16 values are those float32 values,
 * rounded to nearest even.
 */
#ifndef TSI_CONVERT_CONVERT_H
#define TSI_CONVERT_CONVERT_H

#include <stdint.h>

#include "view/spec.h"

struct tsi_convert; /* immutable after create: any thread may use it */

/* TSOCK_EARG where tsi_view_spec_check() gives it. */
int tsi_convert_create(const struct tsi_view_spec *spec,
		       struct tsi_convert **out);
void tsi_convert_destroy(struct tsi_convert *c);

/*
 * One image: src is u8 of this shape, [height, width, channels], and dst what
 * the spec makes of it.  There are 3 channels or 1, which has the first mean
 * and std.
 */
void tsi_convert_image(const struct tsi_convert *c, const uint64_t *shape,
		       const uint8_t *src, void *dst);

#endif
