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
 * Copy samples into the rings of n stages (BROADCAST ones, on as many GPUs,
 * from this ring, as large as it is), and see it done.  NCCL's communicator is
 * made anew when the GPUs are not those of the last time, and what it delivers
 * first is compared with what was sent.  After an error nothing is known of the
 * target slots, and nothing is under way in them any more.
 */
int tsi_broadcast_run(struct tsi_broadcast *b, struct tsi_stage *const *to,
		      unsigned n, uint64_t first, unsigned count);

/* A GPU's ring is about to go; it has no part in what is under way. */
void tsi_broadcast_forget(struct tsi_broadcast *b, unsigned device);

/* Nothing is under way.  NULL is allowed. */
void tsi_broadcast_destroy(struct tsi_broadcast *b);

#endif
