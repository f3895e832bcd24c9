/* SPDX-License-Identifier: MIT */
/*
 * view_neighbour.c - another GPU's ring as the source of a view.
 *
 * The first view of a GPU is planned to be filled from the host ring.  Where
 * this GPU can read the ring of another GPU directly, that may be faster; so
 * the view's thread, which alone may wait for GPUs, tries the other rings
 * before the first sample: do copies arrive as they were sent, and faster?
 */
#include "serve/view_neighbour.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "mem/gpu.h"
#include "serve/membership.h"
#include "serve/sync.h"
#include "serve/view.h"
#include "stage/measure.h"

/* The time limit for another GPU's ring to be made; a GPU may hang. */
static _Atomic unsigned limit_ms = 5000;

void tsi_view_neighbour_limit(unsigned ms)
{
	limit_ms = ms;
}

/* NCCL needs each GPU once and rings of one size; otherwise copies it is. */
static enum tsi_stage_kind kind_from(struct tsi_view *v,
				     struct tsi_view *source)
{
	const struct tsi_gpu_copies *copies = tsi_view_copies(v);

	if (copies->fanout != TSOCK_FANOUT_NCCL || copies->no_nccl ||
	    tsi_ring_capacity(tsi_view_ring(v)) !=
		    tsi_ring_capacity(tsi_view_ring(source)))
		return TSI_STAGE_PEER;
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view *o = tsi_view_nth(v, i);

		if (tsi_view_is_made_of(o, source, TSI_STAGE_BROADCAST) &&
		    tsi_view_device(o) == tsi_view_device(v))
			return TSI_STAGE_PEER;
	}
	return TSI_STAGE_BROADCAST;
}

/* Were copies from one GPU to another seen to arrive with other bytes? */
static bool spoilt(const struct tsi_gpu_copies *c, unsigned to, unsigned from)
{
	return c->spoilt[to % 64] >> from % 64 & 1;
}

/* Another GPU's view that this one could be filled from; 0: none. */
static unsigned candidate(const struct tsi_view *v, uint32_t tried)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view *o = tsi_view_nth(v, i);

		if (!(tried & UINT32_C(1) << i) && tsi_view_may_feed(o, v) &&
		    !spoilt(tsi_view_copies(v), tsi_view_device(v),
			    tsi_view_device(o)))
			return i;
	}
	return 0;
}

/* Are copies from host memory faster than from that GPU? */
static bool host_is_faster(struct tsi_view *v, unsigned from)
{
	unsigned device = tsi_view_device(v);
	bool locked = tsi_view_pin_base(v);
	int64_t host, peer;

	if (tsi_stage_measure(tsi_view_ring(v), device, from, locked, &host,
			      &peer)) {
		tsi_log(TSOCK_LOG_INFO,
			"GPU %u is filled from GPU %u, unmeasured: %s", device,
			from, tsock_errmsg());
		return false;
	}
	tsi_log(TSOCK_LOG_INFO,
		"GPU %u is filled from %s %u: a copy takes %lld us from host "
		"memory, %lld us from GPU %u",
		device, host < peer ? "host memory, not GPU" : "GPU", from,
		(long long)(host / 1000), (long long)(peer / 1000), from);
	return host < peer;
}

/* Do copies from the other GPU's ring arrive as they were sent? */
static bool arrives(struct tsi_view *v, struct tsi_view *source)
{
	unsigned to = tsi_view_device(v), from = tsi_view_device(source);
	int err = tsi_stage_verify(tsi_view_ring(v), to, tsi_view_ring(source),
				   from);

	if (!err)
		return true;
	tsi_log(TSOCK_LOG_WARN,
		"GPU %u is filled from host memory, not from GPU %u: %s", to,
		from, tsock_errmsg());
	tsi_sync_lock(tsi_view_sync(v));
	tsi_view_copies(v)->spoilt[to % 64] |= UINT64_C(1) << from % 64;
	tsi_sync_unlock(tsi_view_sync(v));
	return false;
}

/* Without the lock: let each of the two GPUs use the other one's ring. */
static bool granted(struct tsi_view *v, struct tsi_view *source)
{
	unsigned to = tsi_view_device(v), from = tsi_view_device(source);
	int err = 0;

	if (!tsi_gpu_peer(to, from))
		return false;
	err = tsi_ring_grant(tsi_view_ring(source), to);
	if (!err)
		err = tsi_ring_grant(tsi_view_ring(v), from);
	if (err)
		tsi_log(TSOCK_LOG_WARN,
			"GPU %u is filled from host memory, not from GPU %u: "
			"it can't be given access to its ring: %s",
			to, from, tsock_errmsg());
	else
		tsi_log(TSOCK_LOG_DEBUG,
			"GPUs %u and %u have access to each other's rings", to,
			from);
	return !err;
}

/*
 * With the lock held, which it gives up meanwhile.  0: that view is the source
 * now; 1: its GPU can't be read; -1: it could, but host memory is faster.
 */
static int try_source(struct tsi_view *v, struct tsi_view *source)
{
	unsigned from = tsi_view_device(source);
	int no;

	/* A view that is a source isn't freed. */
	tsi_view_set_source(v, tsi_view_id(source), kind_from(v, source));
	tsi_sync_unlock(tsi_view_sync(v));
	no = !granted(v, source) || !arrives(v, source);
	if (!no && tsi_view_copies(v)->fanout == TSOCK_FANOUT_AUTO &&
	    host_is_faster(v, from))
		no = -1;
	tsi_sync_lock(tsi_view_sync(v));
	if (no)
		tsi_view_set_source(v, 0, TSI_STAGE_UPLOAD);
	return no;
}

void tsi_view_neighbour_find(struct tsi_view *v)
{
	int64_t until = tsi_now_ns() + limit_ms * INT64_C(1000000);
	uint32_t tried = 1;
	unsigned i;

	/* All parts of one job are one pass of the stream. */
	if (tsi_view_copies(v)->fanout == TSOCK_FANOUT_HOST ||
	    tsi_view_is_part(v))
		return;
	tsi_sync_lock(tsi_view_sync(v));
	while (tsi_view_is_made_of(v, tsi_view_nth(v, 0), TSI_STAGE_UPLOAD) &&
	       (i = candidate(v, tried))) {
		struct tsi_view *o = tsi_view_nth(v, i);

		tried |= UINT32_C(1) << i;
		if (tsi_view_await(v, o, until) && try_source(v, o) <= 0)
			break;
	}
	tsi_sync_unlock(tsi_view_sync(v));
}
