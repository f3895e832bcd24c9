/* SPDX-License-Identifier: MIT */
/*
 * gpu.h - images converted by the GPU that they are on.
 */
#ifndef TSI_CONVERT_GPU_H
#define TSI_CONVERT_GPU_H

#include <stdint.h>

#include "mem/gpu.h"
#include "view/spec.h"

/*
 * Queue the conversion of count images, which lie one after the other: from u8
 * of this shape, [height, width, channels], at src to the spec's dtype, layout
 * and normalisation at dst.  There are 3 channels or 1, which has the first
 * mean and std.  float32 values equal those of tsi_convert_image() bit for bit.
 * TSOCK_EARG for a spec or sizes without sense, else the errors of
 * tsi_gpu_event_record().
 */
int tsi_convert_gpu(unsigned device, tsi_gpu_stream s,
		    const struct tsi_view_spec *spec, const void *src,
		    uint64_t count, const uint64_t *shape, void *dst);

#endif
