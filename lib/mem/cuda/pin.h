/* SPDX-License-Identifier: MIT */
/*
 * pin.h - where page-locked host memory ends for one copy.
 */
#ifndef TSI_MEM_CUDA_PIN_H
#define TSI_MEM_CUDA_PIN_H

#include <stdint.h>

/*
 * How many of the bytes from p on one copy may name, at least one: up to the
 * end of the chunk that p is in, where tsi_gpu_pin() has page-locked it.
 */
uint64_t tsi_cuda_pin_run(const void *p, uint64_t bytes);

#endif
