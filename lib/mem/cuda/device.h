/* SPDX-License-Identifier: MIT */
/*
 * device.h - what CUDA says about a device.
 */
#ifndef TSI_MEM_CUDA_DEVICE_H
#define TSI_MEM_CUDA_DEVICE_H

#include <stdbool.h>

/* attribute: an enum of the runtime or the driver, which number them alike. */
int tsi_cuda_attribute(unsigned device, int attribute, int *value);
int tsi_cuda_is_mig(unsigned device, bool *mig);

#endif
