/*
 * views.c - derived views: another dtype or layout, or a GPU's memory.
 *
 * A view is made when the first consumer asks for it and freed when nobody has
 * read it for a while.  Its stage is one thread that makes the ring (taking
 * memory can take a second, and nobody else should wait for it), then reads
 * the base ring and writes its own, each sample once for all its readers.
 */
#include "serve/server.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "stage/stage_fan.h"

#define IDLE_MS 5000 /* kept so long after its last reader */
#define CHUNK 16     /* samples converted between two looks at the lock */

int tsi_thread_start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(t, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? tsi_err(TSOCK_ESYS, "can't start a thread: %s",
			    strerror(rc))
		  : 0;
}

/* ---- the stage ---- */

/* Runs of samples under way, oldest first. */
struct runs {
	unsigned count, next; /* next: the lane of the next one */
	struct {
		uint64_t first;
		unsigned count;
	} run[TSI_STAGE_LANES];
};

/*
 * With the lock held: samples to begin with.  Waits for some unless others are
 * under way; 0: none, or the view is ending.
 */
static unsigned stage_take(struct tsi_view *v, uint64_t *first, bool wait)
{
	struct tsock_server *s = v->server;
	struct tsi_members *m = &s->members;

	while (v->phase == TSI_VIEW_READY) {
		const struct tsi_view_state *st = &m->view[v->id];
		unsigned n = 0;

		if (st->active)
			n = tsi_members_take(m, v->id,
					     tsi_stage_chunk(v->stage), first);
		if (n || !wait) {
			v->blocked_ms = 0;
			return n;
		}
		/* Only with samples at hand is it the readers' turn. */
		if (st->active && m->view[v->source].head > st->claimed) {
			tsi_server_wait(s, v->id, &s->staged, INT64_MAX);
		} else {
			v->blocked_ms = 0;
			pthread_cond_wait(&s->staged, &s->lock);
		}
	}
	return 0;
}

void tsi_view_done(struct tsi_view *v, uint64_t first, uint64_t head)
{
	struct tsock_server *s = v->server;
	struct tsi_view_state *st = &s->members.view[v->id];

	pthread_cond_broadcast(&s->room);
	/* Its last reader may have left meanwhile, and the next one begun. */
	if (!st->active || st->head != first || st->claimed < head)
		return;
	tsi_members_head(&s->members, v->id, head);
	tsi_ring_publish(&v->ring, head);
	if (head == s->members.c.end)
		tsi_ring_finish(&v->ring, TSI_RING_ENDED, NULL);
	pthread_cond_broadcast(&s->staged);
}

/* With the lock held, which it gives up while it works. */
static int stage_begin(struct tsi_view *v, struct runs *r, uint64_t first,
		       unsigned n)
{
	struct tsock_server *s = v->server;
	unsigned lane = r->next;
	int err;

	if (!r->count)
		tsi_members_reading(&s->members, v->id, first);
	r->run[lane].first = first;
	r->run[lane].count = n;
	r->next = (lane + 1) % tsi_stage_lanes(v->stage);
	r->count++;
	pthread_mutex_unlock(&s->lock);
	err = tsi_stage_start(v->stage, lane, first, n);
	pthread_mutex_lock(&s->lock);
	return err;
}

/* The same: the oldest run's end. */
static int stage_end(struct tsi_view *v, struct runs *r)
{
	struct tsock_server *s = v->server;
	unsigned lanes = tsi_stage_lanes(v->stage);
	unsigned lane = (r->next + lanes - r->count) % lanes;
	uint64_t first = r->run[lane].first;
	int err;

	pthread_mutex_unlock(&s->lock);
	err = tsi_stage_finish(v->stage, lane);
	pthread_mutex_lock(&s->lock);
	r->count--;
	lane = (lane + 1) % lanes;
	tsi_members_reading(&s->members, v->id,
			    r->count ? r->run[lane].first : TSI_NEVER);
	if (!err)
		tsi_view_done(v, first,
			      first + r->run[(lane + lanes - 1) % lanes].count);
	return err;
}

static int stage_run(struct tsi_view *v)
{
	struct runs r = { .count = 0 };
	uint64_t first;
	unsigned n;
	int err = 0;

	while (!err) {
		n = 0;
		if (r.count < tsi_stage_lanes(v->stage))
			n = stage_take(v, &first, !r.count);
		if (n)
			err = stage_begin(v, &r, first, n);
		else if (r.count)
			err = stage_end(v, &r);
		else
			return 0;
	}
	tsi_members_reading(&v->server->members, v->id, TSI_NEVER);
	return err;
}

static int stage_make(struct tsi_view *v)
{
	const struct tsi_ring_shared *base = v->server->view[0].ring.shared;
	struct tsi_ring_ident id = { base->incarnation, base->generation,
				     base->epoch_len, base->end };
	struct tsi_stage_parts p = { .to = &v->ring,
				     .spec = v->spec,
				     .to_device = v->device };
	const struct tsi_view *from;
	int err;

	if (v->spec.gpu)
		err = tsi_ring_create_gpu(&v->geometry, &id, v->device,
					  v->spec.path, &v->ring);
	else
		err = tsi_ring_create(&v->geometry, &id, &v->ring);
	if (err)
		return err;
	if (v->kind == TSI_STAGE_PEER && v->server->fanout == TSOCK_FANOUT_AUTO)
		tsi_gpuviews_choose(v);
	if (v->kind == TSI_STAGE_UPLOAD)
		tsi_gpuviews_pin(v->server);
	from = &v->server->view[v->source];
	p.kind = v->kind;
	p.from = &from->ring;
	p.from_device = from->device;
	return tsi_stage_create(&p, &v->stage);
}

void tsi_view_failed(struct tsi_view *v, const char *why)
{
	struct tsock_server *s = v->server;

	tsi_log(TSOCK_LOG_ERROR, "a view has failed: %s", why);
	if (v->phase == TSI_VIEW_READY)
		v->phase = TSI_VIEW_ENDING;
	tsi_ring_finish(&v->ring, TSI_RING_FAILED, why);
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (s->view[i].source == v->id && s->view[i].stage)
			tsi_view_failed(&s->view[i], why);
	for (unsigned i = 0; i < s->members.rows; i++)
		if (s->members.member[i].used &&
		    s->members.member[i].view == v->id)
			tsi_server_drop(s, i, "lost its view");
	pthread_cond_broadcast(&s->staged);
}

static void stage_live(struct tsi_view *v)
{
	struct tsock_server *s = v->server;
	char why[256];

	v->phase = TSI_VIEW_READY;
	v->idle_ms = tsi_now_ms();
	if (s->failed)
		tsi_ring_finish(&v->ring, TSI_RING_FAILED, s->error);
	if (v->kind == TSI_STAGE_BROADCAST)
		tsi_fan_serve(v);
	if (!stage_run(v))
		return;
	snprintf(why, sizeof(why), "%s", tsock_errmsg());
	tsi_view_failed(v, why);
}

/* Does a thread of another view still use this one's ring? */
static bool has_heirs(const struct tsi_view *v)
{
	const struct tsock_server *s = v->server;

	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (s->view[i].source == v->id && s->view[i].has_thread &&
		    !s->view[i].thread_done)
			return true;
	return false;
}

static void *stage_main(void *arg)
{
	struct tsi_view *v = arg;
	struct tsock_server *s = v->server;
	int err = stage_make(v);

	pthread_mutex_lock(&s->lock);
	if (!err && v->phase == TSI_VIEW_MAKING &&
	    s->view[v->source].phase != TSI_VIEW_READY)
		err = tsi_err(TSOCK_ESTREAM, "what it is made of has failed");
	if (err) {
		v->code = err;
		snprintf(v->error, sizeof(v->error), "%s", tsock_errmsg());
		v->phase = TSI_VIEW_BROKEN;
	} else if (v->phase == TSI_VIEW_MAKING) {
		stage_live(v);
	}
	/* First whoever is made of it. */
	while (has_heirs(v))
		pthread_cond_wait(&s->staged, &s->lock);
	pthread_mutex_unlock(&s->lock);
	/* Giving back gigabytes takes a while: not with the lock held. */
	tsi_fan_destroy(v->fan);
	tsi_stage_destroy(v->stage);
	tsi_ring_destroy(&v->ring);
	pthread_mutex_lock(&s->lock);
	v->stage = NULL;
	v->fan = NULL;
	v->thread_done = true;
	pthread_cond_broadcast(&s->staged);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- finding, making, freeing; with the lock held ---- */

static bool idle(const struct tsock_server *s, const struct tsi_view *v)
{
	/* Another view's stage may be reading it. */
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (s->view[i].phase != TSI_VIEW_EMPTY &&
		    s->view[i].source == v->id)
			return false;
	return v->phase == TSI_VIEW_READY && !v->offers &&
	       !s->members.view[v->id].active;
}

static void end_view(struct tsock_server *s, struct tsi_view *v)
{
	v->phase = TSI_VIEW_ENDING;
	pthread_cond_broadcast(&s->staged);
}

static void reap(struct tsock_server *s, struct tsi_view *v, bool wait)
{
	if (!v->has_thread || (!v->thread_done && !wait))
		return;
	pthread_mutex_unlock(&s->lock);
	pthread_join(v->thread, NULL);
	pthread_mutex_lock(&s->lock);
	v->has_thread = v->thread_done = false;
	v->phase = TSI_VIEW_EMPTY;
}

void tsi_views_sweep(struct tsock_server *s, int64_t now_ms)
{
	bool all = now_ms == INT64_MAX;

	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *v = &s->view[i];

		if (v->phase == TSI_VIEW_BROKEN)
			continue;
		if (all ? v->has_thread
			: idle(s, v) && now_ms - v->idle_ms > IDLE_MS)
			end_view(s, v);
	}
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *v = &s->view[i];

		/* Who asked for a broken one may never ask again. */
		if (all || v->phase == TSI_VIEW_ENDING ||
		    (v->phase == TSI_VIEW_BROKEN &&
		     now_ms - v->idle_ms > IDLE_MS))
			reap(s, v, all);
	}
}

/* Bytes in rings on the host, or on one GPU. */
static uint64_t memory_used(const struct tsock_server *s, bool gpu,
			    unsigned device)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < TSI_VIEWS; i++) {
		const struct tsi_view *v = &s->view[i];

		if (v->phase != TSI_VIEW_EMPTY && (v->spec.gpu != 0) == gpu &&
		    (!gpu || v->device == device))
			bytes += v->geometry.bytes;
	}
	return bytes;
}

static int lay_out(const struct tsock_server *s,
		   const struct tsi_view_spec *spec, uint64_t granularity,
		   struct tsi_geometry *g)
{
	const struct tsi_geometry *base = &s->view[0].geometry;
	struct tsock_field field[TSOCK_MAX_FIELDS];
	bool any = spec->gpu && spec->dtype == TSOCK_U8 &&
		   spec->layout == TSOCK_HWC;
	int err = tsi_convert_check(spec);

	if (err)
		return err;
	for (unsigned i = 0; i < base->nfields; i++) {
		any |= base->field[i].desc.flags & TSOCK_FIELD_IMAGE;
		tsi_convert_field(spec, &base->field[i].desc, &field[i]);
	}
	if (!any)
		return tsi_err(TSOCK_EREFUSED,
			       "the stream has no image field: ask for its "
			       "fields as they are");
	return tsi_geometry_for(field, base->nfields, base->capacity,
				base->join_window, base->max_batch, granularity,
				g);
}

static int budget(const struct tsock_server *s,
		  const struct tsi_view_spec *spec, unsigned device,
		  const struct tsi_geometry *g)
{
	uint64_t used = memory_used(s, spec->gpu, device);
	uint64_t most = spec->gpu ? s->gpu_memory : s->memory;

	if (!most || used + g->bytes <= most)
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "this dtype, layout and normalisation need a ring of "
		       "%llu MiB; %llu MiB of the %llu MiB that the producer "
		       "may use (%s) are taken",
		       (unsigned long long)(g->bytes >> 20),
		       (unsigned long long)(used >> 20),
		       (unsigned long long)(most >> 20),
		       spec->gpu ? "--gpu-memory" : "--memory");
}

/* Make room by ending what nobody reads: true if there is something. */
static bool end_idle(struct tsock_server *s)
{
	bool any = false;

	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		if (idle(s, &s->view[i]))
			end_view(s, &s->view[i]);
		any |= s->view[i].phase == TSI_VIEW_ENDING;
	}
	return any;
}

/* What a view is to be, before there is one. */
struct plan {
	struct tsi_view_spec spec;
	struct tsi_geometry geometry;
	unsigned source, device;
	enum tsi_stage_kind kind;
};

static int make_view(struct tsi_view *v, const struct plan *p)
{
	int err;

	v->spec = p->spec;
	v->geometry = p->geometry;
	v->source = p->source;
	v->device = p->device;
	v->kind = p->kind;
	v->phase = TSI_VIEW_MAKING;
	v->thread_done = false;
	v->idle_ms = tsi_now_ms();
	err = tsi_thread_start(&v->thread, stage_main, v);
	if (err) {
		v->phase = TSI_VIEW_EMPTY;
		return err;
	}
	v->has_thread = true;
	tsi_members_source(&v->server->members, v->id, v->source,
			   v->geometry.capacity);
	return 0;
}

static int broken(struct tsock_server *s, struct tsi_view *v)
{
	int code = tsi_err(v->code, "%s", v->error);

	reap(s, v, true);
	return code;
}

static struct tsi_view *same_view(struct tsock_server *s,
				  const struct tsi_view_spec *spec)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *v = &s->view[i];

		if (v->phase != TSI_VIEW_EMPTY && v->phase != TSI_VIEW_ENDING &&
		    !memcmp(spec, &v->spec, sizeof(*spec)))
			return v;
	}
	return NULL;
}

static struct tsi_view *free_view(struct tsock_server *s)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (s->view[i].phase == TSI_VIEW_EMPTY)
			return &s->view[i];
	return NULL;
}

/* A view that isn't there yet: EAGAIN while it, or its source, is made. */
static int begin_view(struct tsock_server *s, struct plan *p,
		      uint64_t granularity)
{
	struct tsi_view *v;
	int err = 0;

	if (p->spec.gpu)
		err = tsi_gpuviews_source(s, &p->spec, p->device, &p->source,
					  &p->kind);
	if (!err)
		err = lay_out(s, &p->spec, granularity, &p->geometry);
	if (err)
		return err;
	/* What is broadcast goes to the same slots everywhere. */
	if (p->kind == TSI_STAGE_BROADCAST &&
	    p->geometry.capacity != s->view[p->source].geometry.capacity)
		p->kind = TSI_STAGE_PEER;
	v = free_view(s);
	err = v ? budget(s, &p->spec, p->device, &p->geometry)
		: tsi_err(TSOCK_EREFUSED,
			  "the stream has %d different views in use already; "
			  "share a dtype, layout and normalisation with "
			  "another consumer",
			  TSI_VIEWS - 1);
	if (err)
		return end_idle(s) ? TSOCK_EAGAIN : err;
	err = make_view(v, p);
	return err ? err : TSOCK_EAGAIN;
}

int tsi_views_find(struct tsock_server *s, const struct tsi_view_spec *spec,
		   unsigned *view)
{
	static const struct tsi_view_spec base;
	struct plan p = { .spec = *spec, .kind = TSI_STAGE_CONVERT };
	uint64_t granularity = 4096;
	struct tsi_view *v;
	int err = 0;

	*view = 0;
	if (!memcmp(spec, &base, sizeof(base)))
		return 0;
	if (spec->gpu)
		err = tsi_gpuviews_resolve(s, &p.spec, &p.device, &granularity);
	if (err)
		return err;
	v = same_view(s, &p.spec);
	if (!v)
		return begin_view(s, &p, granularity);
	*view = v->id;
	if (v->phase == TSI_VIEW_BROKEN)
		return broken(s, v);
	return v->phase == TSI_VIEW_READY ? 0 : TSOCK_EAGAIN;
}
