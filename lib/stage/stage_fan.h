/*
 * stage_fan.h - the same samples to the rings of several GPUs at once.
 */
#ifndef TSI_STAGE_STAGE_FAN_H
#define TSI_STAGE_STAGE_FAN_H

#include "stage/stage.h"

#define TSI_FAN 32 /* GPUs, the one that sends included */

struct tsi_fan; /* broadcasts from one ring; one thread at a time */

int tsi_fan_create(const struct tsi_ring *from, unsigned device,
		   struct tsi_fan **out);

/*
 * Copy samples into the rings of n stages (BROADCAST ones, on as many GPUs,
 * from this ring, as large as it is), and see it done.  NCCL's communicator is
 * made when the GPUs are others than the last time, and what it delivers first
 * is compared with what was sent.  After an error nothing
 * is known of the target slots, and nothing is under way in them any more.
 */
int tsi_fan_run(struct tsi_fan *f, struct tsi_stage *const *to, unsigned n,
		uint64_t first, unsigned count);

/* A GPU's ring is about to go; it has no part in what is under way. */
void tsi_fan_forget(struct tsi_fan *f, unsigned device);

/* Nothing is under way.  NULL is allowed. */
void tsi_fan_destroy(struct tsi_fan *f);

/*
 * Time copies of a few MiB into a ring that is still unused: from host memory
 * (page-locked or not) and from another GPU's.  Nanoseconds for each.
 */
int tsi_fan_measure(const struct tsi_ring *to, unsigned to_device,
		    unsigned from_device, bool locked, int64_t *host_ns,
		    int64_t *peer_ns);

/*
 * Copy into a ring that is still unused from another GPU, and compare by way of
 * the host.  0: what arrives is what was sent; ESYS, naming a byte: it isn't.
 */
int tsi_fan_verify(const struct tsi_ring *to, unsigned to_device,
		   const struct tsi_ring *from, unsigned from_device);

#endif
