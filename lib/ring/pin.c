/* SPDX-License-Identifier: MIT */
/*
 * pin.c - page-lock a ring in host memory, field by field.
 *
 * Copies may begin while this is under way, or after it failed half-way.  So
 * nothing is undone before the ring goes.
 */
#include "ring/pin.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"

/* Gigabytes take a second; a GPU that hangs takes for ever. */
static _Atomic unsigned limit_ms = 5000;

void tsi_ring_pin_limit(unsigned ms)
{
	limit_ms = ms;
}

void tsi_ring_pin_init(struct tsi_ring_pin *p)
{
	*p = (struct tsi_ring_pin){ .state = TSI_RING_UNPINNED };
	pthread_mutex_init(&p->lock, NULL);
	tsi_thread_cond_init(&p->ended);
}

/* Without the lock. */
static enum tsi_ring_pin_state pin_fields(struct tsi_ring *r, unsigned device)
{
	int err = tsi_ring_make_room(r, 0, tsi_ring_capacity(r));

	for (unsigned i = 0; i < tsi_ring_nfields(r); i++) {
		if (!err && !tsi_gpu_pin(device, tsi_ring_at(r, i, 0),
					 tsi_ring_map_bytes(r, i)))
			continue;
		tsi_log(TSOCK_LOG_WARN,
			"the ring can't be page-locked: copies to GPUs are "
			"slower (%s)",
			tsock_errmsg());
		return TSI_RING_PIN_FAILED;
	}
	return TSI_RING_PINNED;
}

/* These two with the lock held. */
static void pin(struct tsi_ring_pin *p, struct tsi_ring *r, unsigned device)
{
	enum tsi_ring_pin_state state;

	p->state = TSI_RING_PINNING;
	p->device = device;
	pthread_mutex_unlock(&p->lock);
	state = pin_fields(r, device);
	pthread_mutex_lock(&p->lock);
	p->state = state;
	pthread_cond_broadcast(&p->ended);
}

/* False: it took too long, and this is the first to say so. */
static bool wait_for_pin(struct tsi_ring_pin *p)
{
	int64_t until = tsi_now_ns() + limit_ms * INT64_C(1000000);

	while (p->state == TSI_RING_PINNING && !p->given_up &&
	       tsi_now_ns() < until)
		tsi_thread_wait(&p->ended, &p->lock, until);
	if (p->state != TSI_RING_PINNING || p->given_up)
		return true;
	p->given_up = true;
	pthread_cond_broadcast(&p->ended);
	return false;
}

bool tsi_ring_pin(struct tsi_ring_pin *p, struct tsi_ring *r, unsigned device)
{
	bool pinned, waited = true;

	pthread_mutex_lock(&p->lock);
	if (p->state == TSI_RING_UNPINNED)
		pin(p, r, device);
	else if (p->state == TSI_RING_PINNING)
		waited = wait_for_pin(p);
	pinned = p->state == TSI_RING_PINNED;
	pthread_mutex_unlock(&p->lock);
	if (!waited)
		tsi_log(TSOCK_LOG_WARN,
			"GPU %u has not page-locked the ring within %.3g s: "
			"GPU "
			"%u does not wait for it, and copies more slowly until "
			"that is done",
			p->device, limit_ms / 1e3, device);
	return pinned;
}

void tsi_ring_pin_fini(struct tsi_ring_pin *p, const struct tsi_ring *r)
{
	if (p->state != TSI_RING_UNPINNED)
		for (unsigned i = 0; i < tsi_ring_nfields(r); i++)
			tsi_gpu_unpin(tsi_ring_at(r, i, 0));
	p->state = TSI_RING_UNPINNED;
	pthread_cond_destroy(&p->ended);
	pthread_mutex_destroy(&p->lock);
}
