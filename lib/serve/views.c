/*
 * views.c - derived views: the base ring's images in another dtype or layout.
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

static void convert(struct tsi_view *v, uint64_t first, unsigned count)
{
	const struct tsi_ring *from = &v->server->view[0].ring;

	for (uint64_t q = first; q < first + count; q++) {
		for (unsigned f = 0; f < from->shared->nfields; f++) {
			const struct tsi_ring_field *in =
				&from->shared->field[f];
			void *dst = tsi_ring_slot(&v->ring, f, q);
			const void *src = tsi_ring_slot(from, f, q);

			if (in->desc.flags & TSOCK_FIELD_IMAGE)
				tsi_convert_image(v->convert, src,
						  in->desc.shape[0],
						  in->desc.shape[1], dst);
			else
				memcpy(dst, src, in->sample_bytes);
		}
	}
	tsi_ring_mirror(&v->ring, first, count);
	/* Conversions may end in non-temporal stores. */
	atomic_thread_fence(memory_order_seq_cst);
}

/* With the lock held: samples to convert, after waiting for some. */
static unsigned stage_take(struct tsi_view *v, uint64_t *first)
{
	struct tsock_server *s = v->server;
	struct tsi_members *m = &s->members;

	while (v->phase == TSI_VIEW_READY) {
		const struct tsi_view_state *st = &m->view[v->id];
		unsigned n = 0;

		if (st->active)
			n = tsi_members_take(m, v->id, CHUNK, first);
		if (n) {
			v->blocked_ms = 0;
			return n;
		}
		/* Only with samples at hand is it the readers' turn. */
		if (st->active && m->view[0].head > st->claimed) {
			tsi_server_wait(s, v->id, &s->staged, INT64_MAX);
		} else {
			v->blocked_ms = 0;
			pthread_cond_wait(&s->staged, &s->lock);
		}
	}
	return 0;
}

static void stage_done(struct tsi_view *v, uint64_t head)
{
	struct tsock_server *s = v->server;

	pthread_cond_broadcast(&s->room);
	/* Its last reader may have left meanwhile, and the next one begun. */
	if (!s->members.view[v->id].active ||
	    s->members.view[v->id].claimed != head)
		return;
	tsi_members_head(&s->members, v->id, head);
	tsi_ring_publish(&v->ring, head);
	if (head == s->members.c.end)
		tsi_ring_finish(&v->ring, TSI_RING_ENDED, NULL);
}

static void stage_run(struct tsi_view *v)
{
	struct tsock_server *s = v->server;
	uint64_t first;
	unsigned n;

	while ((n = stage_take(v, &first)) > 0) {
		tsi_members_reading(&s->members, v->id, first);
		pthread_mutex_unlock(&s->lock);
		convert(v, first, n);
		pthread_mutex_lock(&s->lock);
		tsi_members_reading(&s->members, v->id, TSI_NEVER);
		stage_done(v, first + n);
	}
}

static int stage_make(struct tsi_view *v)
{
	const struct tsi_ring_shared *base = v->server->view[0].ring.shared;
	struct tsi_ring_ident id = { base->incarnation, base->generation,
				     base->epoch_len, base->end };
	int err = tsi_convert_create(&v->spec, &v->convert);

	return err ? err : tsi_ring_create(&v->geometry, &id, &v->ring);
}

static void *stage_main(void *arg)
{
	struct tsi_view *v = arg;
	struct tsock_server *s = v->server;
	int err = stage_make(v);

	pthread_mutex_lock(&s->lock);
	if (err) {
		v->code = err;
		snprintf(v->error, sizeof(v->error), "%s", tsock_errmsg());
		v->phase = TSI_VIEW_BROKEN;
	} else if (v->phase == TSI_VIEW_MAKING) {
		v->phase = TSI_VIEW_READY;
		v->idle_ms = tsi_now_ms();
		if (s->failed)
			tsi_ring_finish(&v->ring, TSI_RING_FAILED, s->error);
		stage_run(v);
	}
	pthread_mutex_unlock(&s->lock);
	/* Giving back gigabytes takes a while: not with the lock held. */
	tsi_ring_destroy(&v->ring);
	tsi_convert_destroy(v->convert);
	pthread_mutex_lock(&s->lock);
	v->convert = NULL;
	v->thread_done = true;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- finding, making, freeing; with the lock held ---- */

static bool idle(const struct tsock_server *s, const struct tsi_view *v)
{
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

		if (all && v->has_thread && v->phase != TSI_VIEW_BROKEN)
			end_view(s, v);
		else if (!all && idle(s, v) && now_ms - v->idle_ms > IDLE_MS)
			end_view(s, v);
		if (v->phase == TSI_VIEW_ENDING || all)
			reap(s, v, all);
	}
}

static uint64_t memory_used(const struct tsock_server *s)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < TSI_VIEWS; i++)
		if (s->view[i].phase != TSI_VIEW_EMPTY)
			bytes += s->view[i].geometry.bytes;
	return bytes;
}

static int lay_out(const struct tsock_server *s,
		   const struct tsi_view_spec *spec, struct tsi_geometry *g)
{
	const struct tsi_geometry *base = &s->view[0].geometry;
	struct tsock_field field[TSOCK_MAX_FIELDS];
	bool any = false;
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
	return tsi_geometry_make(field, base->nfields, base->capacity,
				 base->join_window, base->max_batch, g);
}

static int budget(const struct tsock_server *s, const struct tsi_geometry *g)
{
	uint64_t used = memory_used(s);

	if (!s->memory || used + g->bytes <= s->memory)
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "this dtype, layout and normalisation need a ring of "
		       "%llu MiB; %llu MiB of the %llu MiB that the producer "
		       "may use (--memory) are taken",
		       (unsigned long long)(g->bytes >> 20),
		       (unsigned long long)(used >> 20),
		       (unsigned long long)(s->memory >> 20));
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

static int make_view(struct tsi_view *v, const struct tsi_view_spec *spec,
		     const struct tsi_geometry *g)
{
	int err;

	v->spec = *spec;
	v->geometry = *g;
	v->phase = TSI_VIEW_MAKING;
	v->thread_done = false;
	err = tsi_thread_start(&v->thread, stage_main, v);
	if (err) {
		v->phase = TSI_VIEW_EMPTY;
		return err;
	}
	v->has_thread = true;
	return 0;
}

static int broken(struct tsock_server *s, struct tsi_view *v)
{
	int code = tsi_err(v->code, "%s", v->error);

	reap(s, v, true);
	return code;
}

int tsi_views_find(struct tsock_server *s, const struct tsi_view_spec *spec,
		   unsigned *view)
{
	static const struct tsi_view_spec base;
	struct tsi_view *free_view = NULL;
	struct tsi_geometry g;
	int err;

	*view = 0;
	if (!memcmp(spec, &base, sizeof(base)))
		return 0;
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *v = &s->view[i];

		if (v->phase == TSI_VIEW_EMPTY && !free_view)
			free_view = v;
		if (v->phase == TSI_VIEW_EMPTY || v->phase == TSI_VIEW_ENDING ||
		    memcmp(spec, &v->spec, sizeof(*spec)))
			continue;
		*view = i;
		if (v->phase == TSI_VIEW_BROKEN)
			return broken(s, v);
		return v->phase == TSI_VIEW_READY ? 0 : TSOCK_EAGAIN;
	}
	err = lay_out(s, spec, &g);
	if (err)
		return err;
	err = free_view ? budget(s, &g)
			: tsi_err(TSOCK_EREFUSED,
				  "the stream has %d different views in use "
				  "already; share a dtype, layout and "
				  "normalisation with another consumer",
				  TSI_VIEWS - 1);
	if (err)
		return end_idle(s) ? TSOCK_EAGAIN : err;
	err = make_view(free_view, spec, &g);
	return err ? err : TSOCK_EAGAIN;
}
