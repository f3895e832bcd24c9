/*
 * convert.h - one sample's image from u8 HWC to a view's dtype and layout.
 *
 * Pure functions on plain memory.  float32 values equal torchvision's
 * ToTensor and Normalize bit for bit: (v / 255 - mean) / std, each operation
 * rounded to float32; float16 and bfloat16 are that value, rounded to nearest
 * even.
 */
#ifndef TSI_CONVERT_CONVERT_H
#define TSI_CONVERT_CONVERT_H

#include <stdint.h>

#include "tsock/tsock.h"
#include "wire/msg.h"

struct tsi_convert; /* immutable after create: any thread may run it */

/* TSOCK_EARG, naming what is wrong, for a spec that makes no sense. */
int tsi_convert_check(const struct tsi_view_spec *spec);

/* The field that a field becomes in a view: another one only if an image. */
void tsi_convert_field(const struct tsi_view_spec *spec,
		       const struct tsock_field *in, struct tsock_field *out);

int tsi_convert_create(const struct tsi_view_spec *spec,
		       struct tsi_convert **out);
void tsi_convert_destroy(struct tsi_convert *c);

/* One image: src is u8 [height, width, 3]; dst as tsi_convert_field() says. */
void tsi_convert_image(const struct tsi_convert *c, const uint8_t *src,
		       uint64_t height, uint64_t width, void *dst);

#endif
