/* SPDX-License-Identifier: MIT */
/*
 * staging.h - the way to a GPU for a reader of a host ring: copies of its own.
 *
 * The slow path, for where the producer's memory on that GPU can't be opened.
 * Each batch gets memory of its own, which is kept with it for the next time,
 * and the ring is free again as soon as it was copied.  A shared reader's batch
 * is on the GPU, in the wanted dtype and layout, when it is handed out: this
 * waits for the copy.  A batch as stored (TSOCK_GPU_STORED) is in page-locked
 * memory, and goes to the GPU with tsock_batch_convert().
 */
#ifndef TSI_CONSUMER_GPU_STAGING_H
#define TSI_CONSUMER_GPU_STAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/gpu.h"

struct tsi_staging;

struct tsi_staging_parts {
	unsigned device;
	bool as_stored;
	unsigned nfields;
	uint64_t batch;
	const struct tsi_view_spec *make;
	const struct tsock_field *stored, *field;
};

/* Copies of batches that were given back and may still be in use. */
#define TSI_STAGING_IN_USE 4
/*
 * Those and one in the job's hands have their memory from the beginning:
 * allocating waits for all work on the GPU.
 */
#define TSI_STAGING_AHEAD (TSI_STAGING_IN_USE + 1)

/* A batch's own memory. */
struct tsi_staging_memory {
	void *pinned, *device;
};

int tsi_staging_create(const struct tsi_staging_parts *p,
		       struct tsi_staging **out);
void tsi_staging_destroy(struct tsi_staging *u);
void tsi_staging_free_memory(const struct tsi_staging *u,
			     struct tsi_staging_memory *own);

/*
 * Copy the fields of count samples, which are at data: then data is where the
 * copies are, NULL if they aren't on the GPU yet.
 */
int tsi_staging_copy(struct tsi_staging *u, struct tsi_staging_memory *own,
		     uint64_t count, void **data);

/* Queue field i of a batch as stored to dst, as it is wanted. */
int tsi_staging_write(const struct tsi_staging *u,
		      const struct tsi_staging_memory *own, uint64_t count,
		      unsigned i, void *dst, tsi_gpu_stream s);

#endif
