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

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "serve/server.h"
#include "stage/measure.h"

/* The time limit for another GPU's ring to be made; a GPU may hang. */
#define NEIGHBOUR_NS INT64_C(5000000000)

/* NCCL needs each GPU once and rings of one size; otherwise copies it is. */
static enum tsi_stage_kind kind_from(const struct tsi_view *v, unsigned source)
{
	const struct tsock_server *s = v->server;

	if (s->copies.fanout != TSOCK_FANOUT_NCCL || s->copies.no_nccl ||
	    v->geometry.capacity != s->views.view[source].geometry.capacity)
		return TSI_STAGE_PEER;
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (s->views.view[i].phase != TSI_VIEW_EMPTY &&
		    s->views.view[i].kind == TSI_STAGE_BROADCAST &&
		    s->views.view[i].source == source &&
		    s->views.view[i].device == v->device)
			return TSI_STAGE_PEER;
	return TSI_STAGE_BROADCAST;
}

/* Were copies from one GPU to another seen to arrive with other bytes? */
static bool spoilt(const struct tsock_server *s, unsigned to, unsigned from)
{
	return s->copies.spoilt[to % 64] >> from % 64 & 1;
}

/*
 * Another GPU's view of the samples as stored, filled from the host; 0: none.
 * Of two such views that are made at once, the younger waits for the older.
 */
static unsigned candidate(const struct tsi_view *v, uint32_t tried)
{
	const struct tsock_server *s = v->server;

	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view *o = &s->views.view[i];

		if (!(tried & UINT32_C(1) << i) && o->spec.gpu &&
		    tsi_view_spec_is_stored(&o->spec) &&
		    o->device != v->device &&
		    !spoilt(s, v->device, o->device) &&
		    o->kind == TSI_STAGE_UPLOAD &&
		    (o->phase == TSI_VIEW_READY ||
		     (o->phase == TSI_VIEW_MAKING && o->age < v->age)))
			return i;
	}
	return 0;
}

/* Wait until the other view is ready; false if it is no source after all. */
static bool wait_for(const struct tsi_view *v, const struct tsi_view *o,
		     int64_t until_ns)
{
	struct tsock_server *s = v->server;
	uint64_t age = o->age;

	while (v->phase == TSI_VIEW_MAKING && o->phase == TSI_VIEW_MAKING &&
	       o->age == age && tsi_now_ns() < until_ns)
		tsi_sync_wait_staged(&s->sync, until_ns);
	return v->phase == TSI_VIEW_MAKING && o->phase == TSI_VIEW_READY &&
	       o->age == age && o->kind == TSI_STAGE_UPLOAD;
}

/* Are copies from host memory faster than from that GPU? */
static bool host_is_faster(struct tsi_view *v, unsigned from)
{
	struct tsock_server *s = v->server;
	int64_t host, peer;
	bool locked = tsi_ring_pin(&s->pin, &s->views.view[0].ring);

	if (tsi_stage_measure(&v->ring, v->device, from, locked, &host,
			      &peer)) {
		tsi_log(TSOCK_LOG_INFO,
			"GPU %u is filled from GPU %u, unmeasured: %s",
			v->device, from, tsock_errmsg());
		return false;
	}
	tsi_log(TSOCK_LOG_INFO,
		"GPU %u is filled from %s %u: a copy takes %lld us from host "
		"memory, %lld us from GPU %u",
		v->device, host < peer ? "host memory, not GPU" : "GPU", from,
		(long long)(host / 1000), (long long)(peer / 1000), from);
	return host < peer;
}

/* Do copies from the other GPU's ring arrive as they were sent? */
static bool arrives(struct tsi_view *v, unsigned source)
{
	struct tsock_server *s = v->server;
	const struct tsi_view *from = &s->views.view[source];
	int err = tsi_stage_verify(&v->ring, v->device, &from->ring,
				   from->device);

	if (!err)
		return true;
	tsi_log(TSOCK_LOG_WARN,
		"GPU %u is filled from host memory, not from GPU %u: %s",
		v->device, from->device, tsock_errmsg());
	tsi_sync_lock(&s->sync);
	s->copies.spoilt[v->device % 64] |= UINT64_C(1) << from->device % 64;
	tsi_sync_unlock(&s->sync);
	return false;
}

/*
 * With the lock held, which it gives up meanwhile.  0: that view is the source
 * now; 1: its GPU can't be read; -1: it could, but host memory is faster.
 */
static int try_source(struct tsi_view *v, unsigned source)
{
	struct tsock_server *s = v->server;
	unsigned from = s->views.view[source].device;
	int no;

	/* A view that is a source isn't freed. */
	tsi_view_set_source(v, source, kind_from(v, source));
	tsi_sync_unlock(&s->sync);
	no = !tsi_gpu_peer(v->device, from) || !arrives(v, source);
	if (!no && s->copies.fanout == TSOCK_FANOUT_AUTO &&
	    host_is_faster(v, from))
		no = -1;
	tsi_sync_lock(&s->sync);
	if (no)
		tsi_view_set_source(v, 0, TSI_STAGE_UPLOAD);
	return no;
}

void tsi_view_neighbour_find(struct tsi_view *v)
{
	int64_t until = tsi_now_ns() + NEIGHBOUR_NS;
	struct tsock_server *s = v->server;
	uint32_t tried = 1;
	unsigned i;

	if (v->kind != TSI_STAGE_UPLOAD ||
	    s->copies.fanout == TSOCK_FANOUT_HOST)
		return;
	tsi_sync_lock(&s->sync);
	while ((i = candidate(v, tried))) {
		tried |= UINT32_C(1) << i;
		if (wait_for(v, &s->views.view[i], until) &&
		    try_source(v, i) <= 0)
			break;
	}
	tsi_sync_unlock(&s->sync);
}
