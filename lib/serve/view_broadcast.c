/* SPDX-License-Identifier: MIT */
/*
 * view_broadcast.c - rings on several GPUs that are filled together, by
 * broadcasts from the GPU that has the samples.
 *
 * Each view keeps its own thread.  Among the views that have advanced furthest,
 * the thread of the lowest-numbered one broadcasts to all of them; the other
 * threads sleep.  A view that began later, or was held up, copies its samples
 * by itself until it has caught up.  When NCCL fails, each view's thread copies
 * the samples of that broadcast, and from then on all samples, by itself.  When
 * NCCL hangs so that its work can't be ended either, it might write at any time:
 * the views that it was for fail, and their rings stay.
 */
#include "serve/view_broadcast.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "serve/membership.h"
#include "serve/sync.h"
#include "serve/view.h"
#include "serve/view_neighbour.h"
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
	return tsi_membership_claimed(tsi_view_membership(v), tsi_view_id(v));
}

static bool may_claim(const struct tsi_view *v)
{
	return tsi_membership_may_claim(tsi_view_membership(v), tsi_view_id(v));
}

static uint64_t limit_of(const struct tsi_view *v)
{
	return tsi_membership_limit(tsi_view_membership(v), tsi_view_id(v));
}

static bool is_busy(struct tsi_view *v)
{
	return tsi_view_sending(v)->busy;
}

/* A view that begins beyond its source's head isn't ahead: it waits. */
static bool takes_part(const struct tsi_view *v, const struct tsi_view *source)
{
	const struct tsi_membership *m = tsi_view_membership(v);

	return tsi_view_is_filled(v) &&
	       tsi_view_is_made_of(v, source, TSI_STAGE_BROADCAST) &&
	       tsi_membership_active(m, tsi_view_id(v)) &&
	       claimed_of(v) <= tsi_membership_head(m, tsi_view_id(source));
}

static void find_group(const struct tsi_view *me, struct group *g)
{
	const struct tsi_view *source = tsi_view_source(me);

	memset(g, 0, sizeof(*g));
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view *v = tsi_view_nth(me, i);

		if (takes_part(v, source) && claimed_of(v) > g->front)
			g->front = claimed_of(v);
	}
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *v = tsi_view_nth(me, i);

		if (!takes_part(v, source))
			continue;
		if (claimed_of(v) == g->front && !is_busy(v))
			g->level[g->n++] = v;
		else
			g->laggards |= is_busy(v) || may_claim(v);
	}
}

/* With the lock held: samples that go to a view begin, and end. */
static void begin_samples(struct tsi_view *v, unsigned n)
{
	struct tsi_membership *m = tsi_view_membership(v);
	struct tsi_view_sending *sending = tsi_view_sending(v);
	uint64_t first;

	(void)tsi_membership_claim(m, tsi_view_id(v), n, &first);
	tsi_membership_reading(m, tsi_view_id(v), first);
	sending->busy = true;
	sending->opening = tsi_membership_opening(m, tsi_view_id(v));
}

static void end_samples(struct tsi_view *v, uint64_t first, unsigned n,
			const char *why)
{
	struct tsi_view_sending *sending = tsi_view_sending(v);

	tsi_membership_reading(tsi_view_membership(v), tsi_view_id(v),
			       TSI_NEVER);
	sending->busy = false;
	if (*why)
		tsi_view_source_lost(v, why);
	else
		tsi_view_publish(v, sending->opening, first, first + n);
	tsi_sync_wake_stages(tsi_view_sync(v));
}

/* Without the lock: copy samples by the view's own stage; why: an error. */
static void copy_samples(struct tsi_view *v, uint64_t first, unsigned n,
			 char why[256])
{
	int err = tsi_stage_start(tsi_view_stage(v), 0, first, n);

	if (!err)
		err = tsi_stage_finish(tsi_view_stage(v), 0);
	*why = '\0';
	if (err)
		tsi_err_copy(why, 256);
}

/* With the lock held, which it gives up meanwhile: samples that have begun. */
static void copy_begun(struct tsi_view *v, uint64_t first, unsigned n)
{
	struct tsi_sync *sync = tsi_view_sync(v);
	char why[256];

	tsi_sync_unlock(sync);
	copy_samples(v, first, n, why);
	tsi_sync_lock(sync);
	end_samples(v, first, n, why);
}

static void catch_up(struct tsi_view *v, uint64_t front)
{
	uint64_t first = claimed_of(v), n = limit_of(v);
	unsigned most = tsi_stage_chunk(tsi_view_stage(v));

	n = (n < front ? n : front) - first;
	if (n > most)
		n = most;
	begin_samples(v, (unsigned)n);
	copy_begun(v, first, (unsigned)n);
}

/* ---- for all views at the front ---- */

static int send_to_group(struct tsi_view *source, const struct group *g,
			 unsigned n)
{
	struct tsi_broadcast **broadcast = &tsi_view_sending(source)->broadcast;
	struct tsi_stage *to[TSI_BROADCAST_MAX];
	int err = 0;

	for (unsigned i = 0; i < g->n; i++)
		to[i] = tsi_view_stage(g->level[i]);
	if (!*broadcast)
		err = tsi_broadcast_create(tsi_view_ring(source),
					   tsi_view_device(source), broadcast);
	return err ? err : tsi_broadcast_run(*broadcast, to, g->n, g->front, n);
}

/* What a failed broadcast leaves to a view's own thread. */
static void owe(struct tsi_view *v, uint64_t first, unsigned n)
{
	tsi_view_sending(v)->first = first;
	tsi_view_sending(v)->owed = n;
	tsi_sync_wake_stages(tsi_view_sync(v));
}

static void end_stuck(struct tsi_view *v, uint64_t first, unsigned n)
{
	char why[256];

	snprintf(
		why, sizeof(why),
		"NCCL hangs, and may still write to the ring on GPU %u: %.160s",
		tsi_view_device(v), tsock_errmsg());
	tsi_view_sending(v)->stuck = true;
	end_samples(v, first, n, why);
}

static void give_up_nccl(struct tsi_view *source, const struct group *g,
			 unsigned n)
{
	struct tsi_view_sending *sending = tsi_view_sending(source);

	tsi_log(TSOCK_LOG_WARN,
		"no broadcasts by NCCL from now on, but copies from GPU to "
		"GPU: %s",
		tsock_errmsg());
	tsi_view_copies(source)->no_nccl = true;
	sending->stuck = tsi_broadcast_is_stuck(sending->broadcast);
	for (unsigned i = 0; i < g->n; i++)
		if (sending->stuck)
			end_stuck(g->level[i], g->front, n);
		else
			owe(g->level[i], g->front, n);
}

static void broadcast(struct tsi_view *v, const struct group *g, unsigned n)
{
	struct tsi_sync *sync = tsi_view_sync(v);
	struct tsi_view *source = tsi_view_source(v);
	int err;

	for (unsigned i = 0; i < g->n; i++)
		begin_samples(g->level[i], n);
	tsi_view_sending(source)->sends = true;
	tsi_sync_unlock(sync);
	err = send_to_group(source, g, n);
	tsi_sync_lock(sync);
	tsi_view_sending(source)->sends = false;
	if (err)
		give_up_nccl(source, g, n);
	for (unsigned i = 0; i < g->n && !err; i++)
		end_samples(g->level[i], g->front, n, "");
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

static void broadcast_or_wait(struct tsi_view *v, const struct group *g)
{
	struct tsi_view *slow;
	unsigned n;

	slow = slowest(g, &n);
	if (n)
		broadcast(v, g, n);
	else
		tsi_view_wait(slow);
}

/* ---- for one view ---- */

static void view_step(struct tsi_view *v)
{
	struct tsi_sync *sync = tsi_view_sync(v);
	struct group g;

	find_group(v, &g);
	if (is_busy(v) || !takes_part(v, tsi_view_source(v))) {
		tsi_sync_wait_staged(sync, INT64_MAX);
	} else if (claimed_of(v) < g.front) {
		if (may_claim(v))
			catch_up(v, g.front);
		else
			tsi_view_wait(v);
	} else if (g.level[0] == v && !g.laggards &&
		   !tsi_view_sending(tsi_view_source(v))->sends) {
		broadcast_or_wait(v, &g);
	} else {
		tsi_sync_wait_staged(sync, INT64_MAX);
	}
}

/* The view's own copy of what a broadcast that failed was to bring. */
static void copy_owed(struct tsi_view *v)
{
	struct tsi_view_sending *sending = tsi_view_sending(v);
	unsigned n = sending->owed;

	sending->owed = 0;
	copy_begun(v, sending->first, n);
}

/* The view's GPU is taken out of NCCL's communicator. */
static void leave(struct tsi_view *v)
{
	struct tsi_sync *sync = tsi_view_sync(v);
	struct tsi_view *source = tsi_view_source(v);

	while (is_busy(v) || tsi_view_sending(source)->sends)
		if (tsi_view_sending(v)->owed)
			copy_owed(v);
		else
			tsi_sync_wait_staged(sync, INT64_MAX);
	tsi_view_sending(source)->sends = true;
	tsi_sync_unlock(sync);
	tsi_broadcast_forget(tsi_view_sending(source)->broadcast,
			     tsi_view_device(v));
	tsi_sync_lock(sync);
	tsi_view_sending(source)->sends = false;
	tsi_sync_wake_stages(sync);
}

void tsi_view_broadcast_serve(struct tsi_view *v)
{
	while (tsi_view_is_filled(v) && !tsi_view_copies(v)->no_nccl)
		view_step(v);
	leave(v);
}

bool tsi_view_broadcast_end(struct tsi_view *v)
{
	struct tsi_view_sending *sending = tsi_view_sending(v);

	tsi_broadcast_destroy(sending->broadcast);
	sending->broadcast = NULL;
	return !sending->stuck;
}
