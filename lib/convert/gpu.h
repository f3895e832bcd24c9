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
 * [height, width, 3] at src to the spec's dtype, layout and normalisation at
 * dst.  float32 values equal those of tsi_convert_image() bit for bit.
 * TSOCK_EARG for a spec or sizes without sense, else the errors of
 * tsi_gpu_event_record().
 */
int tsi_convert_gpu(unsigned device, tsi_gpu_stream s,
		    const struct tsi_view_spec *spec, const void *src,
		    uint64_t count, uint64_t height, uint64_t width, void *dst);

#endif
