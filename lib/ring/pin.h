/* SPDX-License-Identifier: MIT */
/*
 * pin.h - page-lock a ring in host memory, which makes copies to GPUs fast.
 */
#ifndef TSI_RING_PIN_H
#define TSI_RING_PIN_H

#include <pthread.h>
#include <stdbool.h>

#include "ring/ring.h"

enum tsi_ring_pin_state {
	TSI_RING_UNPINNED,
	TSI_RING_PINNING,
	TSI_RING_PINNED,
	TSI_RING_PIN_FAILED,
};

struct tsi_ring_pin {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	enum tsi_ring_pin_state state;
	unsigned device; /* by way of which it is pinned */
	bool given_up;   /* it takes so long that nobody waits any more */
};

void tsi_ring_pin_init(struct tsi_ring_pin *p);

/*
 * Page-lock all of the ring, at the first call, by way of the GPU that asks;
 * true if it is page-locked.  A failure is logged, and not tried again: copies
 * are slower, nothing more.  Threads may call this at once: they wait for the
 * first of them, but not for ever, since its GPU may hang.
 */
bool tsi_ring_pin(struct tsi_ring_pin *p, struct tsi_ring *r, unsigned device);

/* For tests: how long they wait. */
void tsi_ring_pin_limit(unsigned ms);

/* Undo it.  No thread uses p, and no copy from the ring is under way. */
void tsi_ring_pin_fini(struct tsi_ring_pin *p, const struct tsi_ring *r);

#endif
