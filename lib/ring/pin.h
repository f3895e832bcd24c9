/* SPDX-License-Identifier: MIT */
/*
 * pin.h - page-lock a ring in host memory, which makes copies to GPUs fast.
 */
#ifndef TSI_RING_PIN_H
#define TSI_RING_PIN_H

#include <pthread.h>
#include <stdbool.h>

#include "ring/ring.h"

struct tsi_ring_pin {
	pthread_mutex_t lock;
	bool pinned, failed;
};

void tsi_ring_pin_init(struct tsi_ring_pin *p);

/*
 * Page-lock the ring, at the first call; true if it is page-locked.  A failure
 * is logged, and not tried again: copies are slower, nothing more.  Threads may
 * call this at once.
 */
bool tsi_ring_pin(struct tsi_ring_pin *p, const struct tsi_ring *r);

/* Undo it.  No thread uses p, and no copy from the ring is under way. */
void tsi_ring_pin_fini(struct tsi_ring_pin *p, const struct tsi_ring *r);

#endif
