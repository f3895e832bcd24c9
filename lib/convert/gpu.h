/*
 * gpu.h - images converted by the GPU that they are on.
 */
#ifndef TSI_CONVERT_GPU_H
#define TSI_CONVERT_GPU_H

#include <stdint.h>

#include "mem/gpu.h"
#include "view/spec.h"

/*
 * count images, one after the other: u8 [height, width, 3] at src to a view's
 * dtype, layout and normalisation at dst.  float32 equals tsi_convert_image()
 * bit for bit.
 */
int tsi_convert_gpu(unsigned device, tsi_gpu_stream s,
		    const struct tsi_view_spec *spec, const void *src,
		    uint64_t count, uint64_t height, uint64_t width, void *dst);

#endif
