/* SPDX-License-Identifier: MIT */
/*
 * pin.c - page-lock a ring in host memory, field by field.
 */
#include "ring/pin.h"

#include "base/err.h"
#include "base/log.h"

void tsi_ring_pin_init(struct tsi_ring_pin *p)
{
	*p = (struct tsi_ring_pin){ .pinned = false };
	pthread_mutex_init(&p->lock, NULL);
}

static void unpin_fields(const struct tsi_ring *r, unsigned nfields)
{
	for (unsigned i = 0; i < nfields; i++)
		tsi_gpu_unpin(tsi_ring_at(r, i, 0));
}

static void pin_fields(struct tsi_ring_pin *p, const struct tsi_ring *r)
{
	for (unsigned i = 0; i < tsi_ring_nfields(r); i++) {
		if (!tsi_gpu_pin(tsi_ring_at(r, i, 0),
				 tsi_ring_map_bytes(r, i)))
			continue;
		tsi_log(TSOCK_LOG_WARN,
			"the ring can't be page-locked: copies to GPUs are "
			"slower (%s)",
			tsock_errmsg());
		unpin_fields(r, i);
		p->failed = true;
		return;
	}
	p->pinned = true;
}

bool tsi_ring_pin(struct tsi_ring_pin *p, const struct tsi_ring *r)
{
	bool pinned;

	pthread_mutex_lock(&p->lock);
	if (!p->pinned && !p->failed)
		pin_fields(p, r);
	pinned = p->pinned;
	pthread_mutex_unlock(&p->lock);
	return pinned;
}

void tsi_ring_pin_fini(struct tsi_ring_pin *p, const struct tsi_ring *r)
{
	if (p->pinned)
		unpin_fields(r, tsi_ring_nfields(r));
	p->pinned = false;
	pthread_mutex_destroy(&p->lock);
}
