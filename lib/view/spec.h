/* SPDX-License-Identifier: MIT */
/*
 * spec.h - what a view is: the dtype, layout and normalisation of its images,
 * and the GPU that it is on.
 *
 * Pure functions: no ring, no message, no GPU.
 */
#ifndef TSI_VIEW_SPEC_H
#define TSI_VIEW_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "tsock/tsock.h"

#define TSI_UUID 16 /* bytes of a GPU's UUID */

/*
 * Also a view's identity: equal views have equal bytes.  All zero: the base
 * view, samples as they are stored in host memory.  gpu 1: on the GPU of that
 * UUID, opened by that transport (enum tsock_transport: VMM or LEGACY in an
 * identity; AUTO in a question lets the producer choose).
 */
struct tsi_view_spec {
	uint32_t dtype, layout, normalize;
	float mean[3], std[3];
	uint32_t gpu, transport;
	uint8_t uuid[TSI_UUID];
};

/*
 * What a user asks for, as the one spec of such views in host memory: the base
 * view's for images as they are stored.  dtype 0 is u8.  TSOCK_EARG as
 * tsi_view_spec_check() has it.
 */
int tsi_view_spec_make(uint32_t dtype, uint32_t layout, uint32_t normalize,
		       const float mean[3], const float std[3],
		       struct tsi_view_spec *out);

/* TSOCK_EARG, naming what is wrong, for a spec that images can't have. */
int tsi_view_spec_check(const struct tsi_view_spec *spec);

/*
 * TSOCK_EARG for a field that can't become this: an image of one channel, with
 * numbers that differ from channel to channel.
 */
int tsi_view_spec_check_field(const struct tsi_view_spec *spec,
			      const struct tsock_field *f);

bool tsi_view_spec_equal(const struct tsi_view_spec *a,
			 const struct tsi_view_spec *b);
bool tsi_view_spec_is_base(const struct tsi_view_spec *spec);

/* Do images stay as they are stored: u8, height by width by channel? */
bool tsi_view_spec_is_stored(const struct tsi_view_spec *spec);

/* The field that a stored field becomes: another one only if an image. */
void tsi_view_spec_field(const struct tsi_view_spec *spec,
			 const struct tsock_field *in, struct tsock_field *out);

#endif
