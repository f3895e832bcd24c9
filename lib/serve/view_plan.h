/* SPDX-License-Identifier: MIT */
/*
 * view_plan.h - what a view will be: its GPU, transport, source and ring.
 *
 * Pure functions of what a consumer asks for and what is known of the GPU.
 */
#ifndef TSI_SERVE_VIEW_PLAN_H
#define TSI_SERVE_VIEW_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"
#include "serve/gpu_table.h"
#include "stage/stage.h"
#include "view/spec.h"

struct tsi_view_plan {
	struct tsi_view_spec spec; /* with the transport that was chosen */
	unsigned device;
	uint64_t granularity; /* of the ring's memory */
	enum tsi_stage_kind kind;
	bool has_source; /* false: it is made of the base ring */
	struct tsi_view_spec source;
};

/*
 * gpu is the GPU of asked, NULL for a view in host memory.  transport is the
 * only one that the producer offers, or TSOCK_TRANSPORT_AUTO.  TSOCK_ENOTSUP
 * when the GPU's memory can't be shared like that.
 */
int tsi_view_plan_make(const struct tsi_view_spec *asked,
		       const struct tsi_gpu_entry *gpu, uint32_t transport,
		       struct tsi_view_plan *out);

/* The view's ring, beside this base ring.  EARG, or EREFUSED without images. */
int tsi_view_plan_geometry(const struct tsi_view_plan *p,
			   const struct tsi_geometry *base,
			   struct tsi_geometry *out);

#endif
