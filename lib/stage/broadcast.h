/* SPDX-License-Identifier: MIT */
/*
 * broadcast.h - the same samples to the rings of several GPUs at once.
 */
#ifndef TSI_STAGE_BROADCAST_H
#define TSI_STAGE_BROADCAST_H

#include "stage/stage.h"

#define TSI_BROADCAST_MAX 32 /* GPUs, the one that sends included */

struct tsi_broadcast; /* broadcasts from one ring; one thread at a time */

int tsi_broadcast_create(const struct tsi_ring *from, unsigned device,
			 struct tsi_broadcast **out);

/*
 * Copy samples into the rings of n stages, and wait until they are there.  The
 * stages are BROADCAST ones from this ring, on n different GPUs, with rings of
 * the same capacity.  NCCL's communicator is made anew when the GPUs are not
 * those of the last call, and what it delivers first is compared with what was
 * sent.  After an error the target slots hold anything, and no work writes into
 * them any more, unless it is stuck.
 */
int tsi_broadcast_run(struct tsi_broadcast *b, struct tsi_stage *const *to,
		      unsigned n, uint64_t first, unsigned count);

/*
 * Has NCCL hung, and then failed to abort?  What was to be broadcast may still
 * be written, at any time: all rings and stages of that broadcast, and the ring
 * that it was from, have to stay as long as the process.
 */
bool tsi_broadcast_is_stuck(const struct tsi_broadcast *b);

/*
 * For tests, in milliseconds: how long NCCL may take to start, and for one
 * broadcast, to end one that has failed, or to end altogether.
 */
void tsi_broadcast_limits(unsigned start_ms, unsigned run_ms);

/* A GPU's ring is about to go.  No broadcast to it is under way. */
void tsi_broadcast_forget(struct tsi_broadcast *b, unsigned device);

/* Nothing is under way.  NULL is allowed. */
void tsi_broadcast_destroy(struct tsi_broadcast *b);

#endif
