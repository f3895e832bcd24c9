/*
 * backend.h - what a reader has besides when its batches are for a GPU.
 */
#ifndef TSI_CONSUMER_GPU_BACKEND_H
#define TSI_CONSUMER_GPU_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/gpu/completion.h"
#include "consumer/gpu/staging.h"
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
	unsigned device;
	bool as_stored;
	struct tsi_view_spec make;
	struct tsock_field stored[TSOCK_MAX_FIELDS];
	struct tsock_field field[TSOCK_MAX_FIELDS];
	struct tsi_staging *staging; /* NULL: the ring is on the GPU */
	struct tsi_completion *completion;
};

int tsi_gpu_backend_create(const struct tsi_gpu_backend_parts *p,
			   unsigned nfields, uint64_t batch,
			   struct tsi_gpu_backend **out);
void tsi_gpu_backend_destroy(struct tsi_gpu_backend *g);

/* Is field i stored in another way than it is wanted? */
bool tsi_gpu_backend_converts(const struct tsi_gpu_backend *g, unsigned i);

struct tsi_reader;

/*
 * See to it that n more samples after the position can be taken: wait for work
 * on the GPU that holds batches which were given back.  *timeout_ms becomes
 * what is left of it.  TSOCK_EHELD when it is the caller who holds them,
 * TSOCK_EAGAIN, or the error that the GPU reported.
 */
int tsi_reader_await_room(struct tsi_reader *r, uint64_t n, int *timeout_ms);

#endif
