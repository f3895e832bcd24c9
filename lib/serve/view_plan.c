/*
 * view_plan.c - which GPU a view is on, how it is reached, what it is made of.
 *
 * On each GPU that has consumers there is one ring as decoded; all other views
 * of that GPU are made of it.  It is filled from the host ring, or from the
 * ring of another GPU that this one can read directly.
 *
 * With the lock held nothing here calls a GPU: that is for gpu_table.c, and for
 * the thread of a view.
 */
#include "serve/server.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "stage/measure.h"

/* That another GPU's ring is waited for; a GPU may hang. */
#define NEIGHBOUR_NS INT64_C(5000000000)

static int choose_transport(const struct tsock_server *s, uint32_t asked,
			    struct tsi_gpu_entry *e, uint32_t *transport)
{
	uint32_t only = s->gpu_transport ? s->gpu_transport : asked;
	const char *lacks;

	if (s->gpu_transport && asked && asked != s->gpu_transport)
		return tsi_err(TSOCK_ENOTSUP, "the producer offers another "
					      "transport to its GPU memory");
	if (only == TSOCK_TRANSPORT_STAGED)
		return tsi_err(TSOCK_ENOTSUP,
			       "the producer keeps no rings on GPUs");
	if (!only)
		return tsi_gpu_table_choose(e, transport);
	lacks = tsi_gpu_table_lacks(e, only);
	if (lacks)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s can't share its memory between processes "
			       "that way: %s",
			       e->info.name, lacks);
	*transport = only;
	return 0;
}

int tsi_view_plan_resolve(struct tsock_server *s, struct tsi_view_spec *spec,
			  unsigned *device, uint64_t *granularity)
{
	struct tsi_gpu_entry *e;
	int err = tsi_gpu_table_find(s, spec->uuid, &e);

	if (!err)
		err = choose_transport(s, spec->transport, e, &spec->transport);
	if (err)
		return err;
	*device = e->device;
	*granularity = spec->transport == TSOCK_TRANSPORT_VMM
			       ? e->info.granularity
			       : 0;
	return 0;
}

int tsi_view_plan_source(struct tsock_server *s,
			 const struct tsi_view_spec *spec, unsigned *source,
			 enum tsi_stage_kind *kind)
{
	struct tsi_view_spec raw = { .dtype = TSOCK_U8,
				     .layout = TSOCK_HWC,
				     .gpu = 1,
				     .transport = spec->transport };

	*source = 0;
	*kind = TSI_STAGE_UPLOAD; /* its thread may find a better one */
	if (tsi_view_spec_is_stored(spec))
		return 0;
	memcpy(raw.uuid, spec->uuid, TSI_UUID);
	*kind = TSI_STAGE_GPU_CONVERT;
	return tsi_view_table_find(s, &raw, source);
}

/* ---- by the view's own thread, which alone waits for the GPUs ---- */

/* With the lock held. */
static void fill_from(struct tsi_view *v, unsigned source,
		      enum tsi_stage_kind kind)
{
	v->source = source;
	v->kind = kind;
	tsi_membership_source(&v->server->membership, v->id, source,
			      v->geometry.capacity, tsi_view_can_fall_back(v));
	/* Its source may wait for those that are made of it. */
	pthread_cond_broadcast(&v->server->staged);
}

/* NCCL takes each GPU once, and the same slots on all; else one copies. */
static enum tsi_stage_kind from_gpu(const struct tsi_view *v, unsigned source)
{
	const struct tsock_server *s = v->server;

	if (s->fanout != TSOCK_FANOUT_NCCL || s->no_nccl ||
	    v->geometry.capacity != s->view[source].geometry.capacity)
		return TSI_STAGE_PEER;
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (s->view[i].phase != TSI_VIEW_EMPTY &&
		    s->view[i].kind == TSI_STAGE_BROADCAST &&
		    s->view[i].source == source &&
		    s->view[i].device == v->device)
			return TSI_STAGE_PEER;
	return TSI_STAGE_BROADCAST;
}

/* Copies from one GPU to another arrive with other bytes. */
static bool spoilt(const struct tsock_server *s, unsigned to, unsigned from)
{
	return s->spoilt[to % 64] >> from % 64 & 1;
}

/*
 * Another GPU's ring as decoded, filled from the host; 0: none.  Of two that
 * are made at once the younger waits for the older.
 */
static unsigned candidate(const struct tsi_view *v, uint32_t tried)
{
	const struct tsock_server *s = v->server;

	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view *o = &s->view[i];

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

/* Wait until it is ready, and still what it was to be. */
static bool wait_for(const struct tsi_view *v, const struct tsi_view *o,
		     int64_t until_ns)
{
	struct timespec ts = { until_ns / 1000000000, until_ns % 1000000000 };
	struct tsock_server *s = v->server;
	uint64_t age = o->age;

	while (v->phase == TSI_VIEW_MAKING && o->phase == TSI_VIEW_MAKING &&
	       o->age == age && tsi_now_ns() < until_ns)
		pthread_cond_timedwait(&s->staged, &s->lock, &ts);
	return v->phase == TSI_VIEW_MAKING && o->phase == TSI_VIEW_READY &&
	       o->age == age && o->kind == TSI_STAGE_UPLOAD;
}

/* Is host memory faster? */
static bool host_is_faster(struct tsi_view *v, unsigned from)
{
	struct tsock_server *s = v->server;
	int64_t host, peer;
	bool locked;

	tsi_view_plan_pin(s);
	pthread_mutex_lock(&s->pin_lock);
	locked = s->pinned;
	pthread_mutex_unlock(&s->pin_lock);
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

/* A GPU that can be copied from: does it arrive as it was sent? */
static bool arrives(struct tsi_view *v, unsigned source)
{
	struct tsock_server *s = v->server;
	const struct tsi_view *from = &s->view[source];
	int err = tsi_stage_verify(&v->ring, v->device, &from->ring,
				   from->device);

	if (!err)
		return true;
	tsi_log(TSOCK_LOG_WARN,
		"GPU %u is filled from host memory, not from GPU %u: %s",
		v->device, from->device, tsock_errmsg());
	pthread_mutex_lock(&s->lock);
	s->spoilt[v->device % 64] |= UINT64_C(1) << from->device % 64;
	pthread_mutex_unlock(&s->lock);
	return false;
}

/* With the lock held, which it gives up meanwhile.  0: yes; 1: that one can't
 * be read; -1: it could, but host memory is better. */
static int try_source(struct tsi_view *v, unsigned source)
{
	struct tsock_server *s = v->server;
	unsigned from = s->view[source].device;
	int no;

	/* From now on it stays. */
	fill_from(v, source, from_gpu(v, source));
	pthread_mutex_unlock(&s->lock);
	no = !tsi_gpu_peer(v->device, from) || !arrives(v, source);
	if (!no && s->fanout == TSOCK_FANOUT_AUTO && host_is_faster(v, from))
		no = -1;
	pthread_mutex_lock(&s->lock);
	if (no)
		fill_from(v, 0, TSI_STAGE_UPLOAD);
	return no;
}

void tsi_view_plan_neighbour(struct tsi_view *v)
{
	int64_t until = tsi_now_ns() + NEIGHBOUR_NS;
	struct tsock_server *s = v->server;
	uint32_t tried = 1;
	unsigned i;

	if (v->kind != TSI_STAGE_UPLOAD || s->fanout == TSOCK_FANOUT_HOST)
		return;
	pthread_mutex_lock(&s->lock);
	while ((i = candidate(v, tried))) {
		tried |= UINT32_C(1) << i;
		if (wait_for(v, &s->view[i], until) && try_source(v, i) <= 0)
			break;
	}
	pthread_mutex_unlock(&s->lock);
}

void tsi_view_plan_pin(struct tsock_server *s)
{
	const struct tsi_ring *r = &s->view[0].ring;
	int err = 0;

	pthread_mutex_lock(&s->pin_lock);
	if (!s->pinned && !s->pin_failed) {
		unsigned i = 0;

		for (; i < r->shared->nfields && !err; i++)
			err = tsi_gpu_pin(r->data[i].base, r->data[i].len);
		s->pinned = !err;
		s->pin_failed = err != 0;
		if (err)
			tsi_log(TSOCK_LOG_WARN,
				"the ring can't be page-locked: copies to "
				"GPUs are slower (%s)",
				tsock_errmsg());
		while (err && --i > 0)
			tsi_gpu_unpin(r->data[i - 1].base, r->data[i - 1].len);
	}
	pthread_mutex_unlock(&s->pin_lock);
}

void tsi_view_plan_unpin(struct tsock_server *s)
{
	const struct tsi_ring *r = &s->view[0].ring;

	for (unsigned i = 0; s->pinned && i < r->shared->nfields; i++)
		tsi_gpu_unpin(r->data[i].base, r->data[i].len);
	s->pinned = false;
}
