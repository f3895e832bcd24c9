/* SPDX-License-Identifier: MIT */
/*
 * backend.h - batches on a GPU, as a backend of a reader.
 *
 * The ring is in the GPU's memory (import.h), or it is on the host and each
 * batch is copied (staging.h).  A batch that queued work still reads is given
 * back when that is done (completion.h).
 */
#ifndef TSI_CONSUMER_GPU_BACKEND_H
#define TSI_CONSUMER_GPU_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/backend.h"
#include "consumer/gpu/completion.h"
#include "consumer/gpu/import.h"
#include "consumer/gpu/staging.h"
#include "consumer/gpu/stream_events.h"
#include "consumer/mapping.h"

/* What it is made of. */
struct tsi_gpu_backend_parts {
	unsigned device;
	bool as_stored;                /* TSOCK_GPU_STORED */
	bool staged;                   /* the ring is on the host */
	struct tsi_import_source ring; /* else: how it is opened */
	struct tsi_view_spec make; /* what the consumer gets; dtype 0: all as
				      it is stored */
	struct tsock_field stored[TSOCK_MAX_FIELDS]; /* in the ring */
	struct tsock_field field[TSOCK_MAX_FIELDS];  /* as they are wanted */
};

struct tsi_gpu_backend {
	struct tsi_backend base;
	unsigned device;
	bool as_stored;
	struct tsi_view_spec make;
	struct tsock_field stored[TSOCK_MAX_FIELDS];
	struct tsock_field field[TSOCK_MAX_FIELDS];
	struct tsi_import *import;   /* NULL: the ring is on the host, ... */
	struct tsi_staging *staging; /* ... and batches are copied by this */
	struct tsi_mapping mapping;
	struct tsi_completion *completion;
};

/* Its part of a batch; tsi_placement.gpu. */
struct tsi_gpu_batch {
	struct tsi_gpu_backend *backend;
	struct tsi_placement *placement; /* that it is part of */
	struct tsi_stream_events events;
	struct tsi_staging_memory staged;
	struct tsi_deferred deferred;
};

/*
 * For batches of up to batch samples of a ring that was checked.  The
 * descriptors of its data (-1: none) become its own, also on failure.
 */
int tsi_gpu_backend_create(const struct tsi_gpu_backend_parts *parts,
			   const struct tsi_geometry *ring, uint64_t batch,
			   const int *fd, struct tsi_backend **out);

/* The slots use and convert of the backend. */
int tsi_gpu_batch_use(struct tsi_backend *k, struct tsi_placement *p,
		      void *stream);
int tsi_gpu_batch_convert(struct tsi_backend *k, struct tsi_placement *p,
			  unsigned i, void *dst, void *stream);

#endif
