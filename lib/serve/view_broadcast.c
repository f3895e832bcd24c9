/* SPDX-License-Identifier: MIT */
/*
 * view_broadcast.c - rings on several GPUs that are filled together, by
 * broadcasts from the GPU that has the samples.
 *
 * Each view keeps its own thread.  Among the views that have advanced furthest,
 * the thread of the lowest-numbered one broadcasts to all of them; the other
 * threads sleep.  A view that began later, or was held up, copies its samples
 * by itself until it has caught up.  When NCCL fails, the samples of that
 * broadcast are copied instead, and from then on each view copies by itself.
 */
#include "serve/view_broadcast.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "serve/server.h"
#include "stage/broadcast.h"

#define CHUNK 128 /* samples of one broadcast */

struct group {
	uint64_t front; /* claimed by the view that has advanced furthest */
	unsigned n;
	struct tsi_view *level[TSI_BROADCAST_MAX]; /* views at the front */
	bool laggards; /* other views can catch up right now */
};

static uint64_t claimed_of(const struct tsi_view *v)
{
	return tsi_membership_claimed(&v->server->membership, v->id);
}

static bool may_claim(const struct tsi_view *v)
{
	return tsi_membership_may_claim(&v->server->membership, v->id);
}

static struct tsi_view *source_of(const struct tsi_view *v)
{
	return &v->server->views.view[v->source];
}

static uint64_t limit_of(const struct tsi_view *v)
{
	return tsi_membership_limit(&v->server->membership, v->id);
}

/* A view that begins beyond its source's head isn't ahead: it waits. */
static bool takes_part(const struct tsi_view *v, unsigned source)
{
	const struct tsi_membership *m = &v->server->membership;

	return v->phase == TSI_VIEW_READY && !v->source_lost &&
	       v->kind == TSI_STAGE_BROADCAST && v->source == source &&
	       tsi_membership_active(m, v->id) &&
	       claimed_of(v) <= tsi_membership_head(m, source);
}

static void find_group(const struct tsi_view *me, struct group *g)
{
	struct tsock_server *s = me->server;

	memset(g, 0, sizeof(*g));
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (takes_part(&s->views.view[i], me->source) &&
		    claimed_of(&s->views.view[i]) > g->front)
			g->front = claimed_of(&s->views.view[i]);
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *v = &s->views.view[i];

		if (!takes_part(v, me->source))
			continue;
		if (claimed_of(v) == g->front && !v->busy)
			g->level[g->n++] = v;
		else
			g->laggards |= v->busy || may_claim(v);
	}
}

/* With the lock held: samples that go to a view begin, and end. */
static void begin_samples(struct tsi_view *v, unsigned n)
{
	struct tsi_membership *m = &v->server->membership;
	uint64_t first;

	(void)tsi_membership_claim(m, v->id, n, &first);
	tsi_membership_reading(m, v->id, first);
	v->busy = true;
	v->opening = tsi_membership_opening(m, v->id);
}

static void end_samples(struct tsi_view *v, uint64_t first, unsigned n,
			const char *why)
{
	struct tsock_server *s = v->server;

	tsi_membership_reading(&s->membership, v->id, TSI_NEVER);
	v->busy = false;
	if (*why)
		tsi_view_source_lost(v, why);
	else
		tsi_view_publish(v, v->opening, first, first + n);
	tsi_sync_wake_stages(&s->sync);
}

/* Without the lock: copy samples by the view's own stage; why: an error. */
static void copy_samples(struct tsi_view *v, uint64_t first, unsigned n,
			 char why[256])
{
	int err = tsi_stage_start(v->stage, 0, first, n);

	if (!err)
		err = tsi_stage_finish(v->stage, 0);
	*why = '\0';
	if (err)
		tsi_err_copy(why, 256);
}

static void catch_up(struct tsi_view *v, uint64_t front)
{
	struct tsock_server *s = v->server;
	uint64_t first = claimed_of(v), n = limit_of(v);
	unsigned most = tsi_stage_chunk(v->stage);
	char why[256];

	n = (n < front ? n : front) - first;
	if (n > most)
		n = most;
	begin_samples(v, (unsigned)n);
	tsi_sync_unlock(&s->sync);
	copy_samples(v, first, (unsigned)n, why);
	tsi_sync_lock(&s->sync);
	end_samples(v, first, (unsigned)n, why);
}

/* ---- for all views at the front ---- */

static int send_to_group(struct tsi_view *source, const struct group *g,
			 unsigned n)
{
	struct tsi_stage *to[TSI_BROADCAST_MAX];
	int err = 0;

	for (unsigned i = 0; i < g->n; i++)
		to[i] = g->level[i]->stage;
	if (!source->broadcast)
		err = tsi_broadcast_create(&source->ring, source->device,
					   &source->broadcast);
	return err ? err
		   : tsi_broadcast_run(source->broadcast, to, g->n, g->front,
				       n);
}

static void broadcast(struct tsi_view *v, const struct group *g, unsigned n)
{
	struct tsock_server *s = v->server;
	struct tsi_view *source = source_of(v);
	char why[TSI_BROADCAST_MAX][256];
	int err;

	for (unsigned i = 0; i < g->n; i++)
		begin_samples(g->level[i], n);
	source->sending = true;
	tsi_sync_unlock(&s->sync);
	memset(why, 0, sizeof(why));
	err = send_to_group(source, g, n);
	if (err)
		tsi_log(TSOCK_LOG_WARN,
			"no broadcasts by NCCL from now on, but copies from "
			"GPU to GPU: %s",
			tsock_errmsg());
	for (unsigned i = 0; i < g->n && err; i++)
		copy_samples(g->level[i], g->front, n, why[i]);
	tsi_sync_lock(&s->sync);
	source->sending = false;
	s->copies.no_nccl |= err != 0;
	for (unsigned i = 0; i < g->n; i++)
		end_samples(g->level[i], g->front, n, why[i]);
}

/* How many samples all can take; and the view that sets this limit. */
static struct tsi_view *slowest(const struct group *g, unsigned *n)
{
	struct tsi_view *slow = NULL;
	uint64_t least = g->front + CHUNK;

	for (unsigned i = 0; i < g->n; i++) {
		uint64_t limit = limit_of(g->level[i]);

		if (limit < least) {
			least = limit;
			slow = g->level[i];
		}
	}
	*n = (unsigned)(least - g->front);
	return slow;
}

static void wait_for(struct tsi_view *v)
{
	struct tsock_server *s = v->server;

	/* Readers hold the view up only if the source has more. */
	if (tsi_membership_has_input(&s->membership, v->id))
		tsi_readers_wait(&s->readers, v->id, INT64_MAX);
	else
		tsi_sync_wait_staged(&s->sync, INT64_MAX);
}

static void broadcast_or_wait(struct tsi_view *v, const struct group *g)
{
	struct tsi_view *slow;
	unsigned n;

	slow = slowest(g, &n);
	if (n)
		broadcast(v, g, n);
	else
		wait_for(slow);
}

/* ---- for one view ---- */

static void view_step(struct tsi_view *v)
{
	struct tsock_server *s = v->server;
	struct group g;

	find_group(v, &g);
	if (v->busy || !takes_part(v, v->source)) {
		tsi_sync_wait_staged(&s->sync, INT64_MAX);
	} else if (claimed_of(v) < g.front) {
		if (may_claim(v))
			catch_up(v, g.front);
		else
			wait_for(v);
	} else if (g.level[0] == v && !g.laggards && !source_of(v)->sending) {
		broadcast_or_wait(v, &g);
	} else {
		tsi_sync_wait_staged(&s->sync, INT64_MAX);
	}
}

/* The view's GPU is taken out of NCCL's communicator. */
static void leave(struct tsi_view *v)
{
	struct tsock_server *s = v->server;
	struct tsi_view *source = source_of(v);

	while (v->busy || source->sending)
		tsi_sync_wait_staged(&s->sync, INT64_MAX);
	source->sending = true;
	tsi_sync_unlock(&s->sync);
	tsi_broadcast_forget(source->broadcast, v->device);
	tsi_sync_lock(&s->sync);
	source->sending = false;
	tsi_sync_wake_stages(&s->sync);
}

void tsi_view_broadcast_serve(struct tsi_view *v)
{
	while (v->phase == TSI_VIEW_READY && !v->source_lost &&
	       !v->server->copies.no_nccl)
		view_step(v);
	leave(v);
}

void tsi_view_broadcast_end(struct tsi_view *v)
{
	tsi_broadcast_destroy(v->broadcast);
	v->broadcast = NULL;
}
