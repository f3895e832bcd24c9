/* SPDX-License-Identifier: MIT */
/*
 * dlpack.h - lending a batch's field as a DLPack tensor.
 *
 * The structures are those of DLPack 1.1 (https://github.com/dmlc/dlpack), as
 * far as memory of the host and of CUDA needs them; their layout is what
 * Python libraries expect.
 */
#ifndef TSI_CONSUMER_DLPACK_H
#define TSI_CONSUMER_DLPACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tsock/tsock.h"

enum { TSI_DL_CPU = 1, TSI_DL_CUDA = 2 };
enum {
	TSI_DL_INT = 0,
	TSI_DL_UINT = 1,
	TSI_DL_FLOAT = 2,
	TSI_DL_BFLOAT = 4,
	TSI_DL_BOOL = 6,
};
#define TSI_DL_READ_ONLY UINT64_C(1)

struct tsi_dl_tensor {
	void *data;
	struct {
		int32_t type, id;
	} device;
	int32_t ndim;
	struct {
		uint8_t code, bits;
		uint16_t lanes;
	} dtype;
	int64_t *shape, *strides; /* in elements */
	uint64_t byte_offset;
};

struct tsi_dl_managed {
	struct tsi_dl_tensor tensor;
	void *context;
	void (*deleter)(struct tsi_dl_managed *self);
};

struct tsi_dl_versioned {
	struct {
		uint32_t major, minor;
	} version;
	void *context;
	void (*deleter)(struct tsi_dl_versioned *self);
	uint64_t flags;
	struct tsi_dl_tensor tensor;
};

/* A tensor that is on loan. */
struct tsi_export {
	union {
		struct tsi_dl_managed plain;
		struct tsi_dl_versioned versioned;
	} u;
	int64_t shape[TSOCK_MAX_DIMS + 1], strides[TSOCK_MAX_DIMS + 1];
	struct tsock_batch *batch;
	_Atomic bool used;
	bool heap; /* made for this loan alone */
};

#endif
