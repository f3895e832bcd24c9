/* SPDX-License-Identifier: MIT */
/*
 * gate.c - the rings that consumers read, and how far their writers may go.
 */
#include "serve/gate.h"

#include <stdio.h>

#include "base/err.h"

void tsi_gate_init(struct tsi_gate *g, struct tsi_sync *sync,
		   struct tsi_membership *m)
{
	g->sync = sync;
	g->membership = m;
}

void tsi_gate_add_ring(struct tsi_gate *g, unsigned view, struct tsi_ring *r)
{
	g->ring[view] = r;
	/* All of it may have changed while the ring was made. */
	tsi_ring_set_end(r, tsi_membership_end(g->membership));
	tsi_ring_set_held(r, tsi_membership_held_from(g->membership));
	tsi_ring_set_warnings(r, g->warnings);
	if (g->failed)
		tsi_ring_finish(r,
				g->stopped ? TSI_RING_STOPPED : TSI_RING_FAILED,
				g->error);
}

void tsi_gate_remove_ring(struct tsi_gate *g, unsigned view)
{
	g->ring[view] = NULL;
	tsi_sync_wake_stages(g->sync);
}

struct tsi_ring *tsi_gate_ring(const struct tsi_gate *g, unsigned view)
{
	return g->ring[view];
}

unsigned tsi_gate_views_read(const struct tsi_gate *g)
{
	unsigned n = 0;

	for (unsigned i = 1; i < TSI_VIEWS; i++)
		n += g->ring[i] && tsi_membership_active(g->membership, i);
	return n;
}

/* The generation before the head, which may be beyond its first sample. */
static void publish(struct tsi_gate *g, unsigned view)
{
	tsi_gate_turned(g, view);
	tsi_ring_publish(g->ring[view],
			 tsi_membership_head(g->membership, view));
}

void tsi_gate_turned(struct tsi_gate *g, unsigned view)
{
	uint64_t since;
	uint32_t n = tsi_membership_generation(g->membership, view, &since);

	tsi_ring_set_generation(g->ring[view], n, since);
}

void tsi_gate_views_began(struct tsi_gate *g, unsigned views)
{
	/* A source that is lost opens too, until its view falls back. */
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (views & 1u << i && g->ring[i])
			publish(g, i);
}

/* The views that workers write, too, may have followed the base ring. */
static void publish_joint(struct tsi_gate *g)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		uint64_t head;

		if (!g->ring[i] ||
		    tsi_membership_joint(g->membership, i) == TSI_NEVER)
			continue;
		head = tsi_membership_head(g->membership, i);
		if (head != tsi_ring_head(g->ring[i]))
			tsi_ring_publish(g->ring[i], head);
	}
}

void tsi_gate_publish_base(struct tsi_gate *g, uint64_t head)
{
	tsi_membership_published(g->membership, 0, head);
	tsi_ring_publish(g->ring[0], head);
	publish_joint(g);
}

void tsi_gate_base_moved(struct tsi_gate *g)
{
	uint64_t head = tsi_membership_head(g->membership, 0);

	if (tsi_membership_jumping(g->membership) ||
	    tsi_membership_complete(g->membership, 0))
		tsi_gate_changed(g);
	else if (tsi_sync_stage_wants(g->sync, head))
		tsi_sync_wake_stages(g->sync);
}

/* Samples that may be claimed. */
static uint64_t room(const struct tsi_gate *g)
{
	return tsi_membership_limit(g->membership, 0) -
	       tsi_membership_claimed(g->membership, 0);
}

void tsi_gate_wake_workers(struct tsi_gate *g)
{
	if (tsi_sync_sleepers(g->sync))
		tsi_sync_wake_workers(g->sync, room(g));
}

/* Have workers published the last sample of the stream there? */
static bool is_complete(const struct tsi_gate *g, unsigned view)
{
	return g->ring[view] && tsi_membership_complete(g->membership, view) &&
	       (!view ||
		tsi_membership_joint(g->membership, view) != TSI_NEVER);
}

void tsi_gate_changed(struct tsi_gate *g)
{
	struct tsi_membership *m = g->membership;
	/* Consumers take all samples below the head of a closed ring, and all
	 * are dropped from it one by one: a jump to where the last ones waited
	 * would offer samples that were never made. */
	bool jumped = !g->closed && tsi_membership_apply_jump(m);

	for (unsigned i = 0; i < TSI_VIEWS && jumped; i++)
		if (tsi_membership_active(m, i) && g->ring[i])
			publish(g, i);
	for (unsigned i = 0; i < TSI_VIEWS; i++)
		if (is_complete(g, i))
			tsi_ring_finish(g->ring[i], TSI_RING_ENDED, NULL);
	tsi_gate_wake_workers(g);
	tsi_sync_wake_stages(g->sync);
}

void tsi_gate_end_changed(struct tsi_gate *g)
{
	uint64_t end = tsi_membership_end(g->membership);

	for (unsigned i = 0; i < TSI_VIEWS; i++) {
		if (!g->ring[i])
			continue;
		tsi_ring_set_end(g->ring[i], end);
		if (i && tsi_membership_complete(g->membership, i))
			tsi_ring_finish(g->ring[i], TSI_RING_ENDED, NULL);
	}
	tsi_gate_changed(g);
}

void tsi_gate_state_held(struct tsi_gate *g)
{
	uint64_t from = tsi_membership_held_from(g->membership);

	for (unsigned i = 0; i < TSI_VIEWS; i++)
		if (g->ring[i])
			tsi_ring_set_held(g->ring[i], from);
}

void tsi_gate_state_warnings(struct tsi_gate *g, uint32_t n)
{
	g->warnings = n;
	for (unsigned i = 0; i < TSI_VIEWS; i++)
		if (g->ring[i])
			tsi_ring_set_warnings(g->ring[i], n);
}

/* What a view's readers hold up: its own writer, or the base ring's. */
static uint64_t state_gate(struct tsi_gate *g, unsigned view)
{
	uint64_t gate, front;

	tsi_membership_waits(g->membership, view, &gate, &front);
	tsi_ring_want_gate(g->ring[view], gate);
	return front;
}

void tsi_gate_state_wants(struct tsi_gate *g, unsigned view)
{
	const struct tsi_membership *m = g->membership;
	uint64_t front = state_gate(g, view);

	for (unsigned i = 1; i < TSI_VIEWS && !view; i++)
		if (g->ring[i] && tsi_membership_holds_base(m, i))
			front = min64(front, state_gate(g, i));
	for (unsigned i = 0; i < TSI_VIEWS; i++) {
		if (!tsi_membership_active(m, i) || !g->ring[i])
			continue;
		/* The reader at the front may read any view.  If this writer
		 * doesn't wait for it, another writer may. */
		if (front != TSI_NEVER)
			tsi_ring_want_front(g->ring[i], front);
		if (tsi_membership_made_of(m, i, view))
			tsi_ring_want_start(g->ring[i],
					    tsi_membership_next_start(m, i));
	}
}

void tsi_gate_sleep(struct tsi_gate *g, unsigned view, int64_t until_ns)
{
	if (tsi_membership_may_claim(g->membership, view))
		return;
	g->waiters[view]++;
	if (view)
		tsi_sync_wait_head(g->sync, TSI_NEVER, until_ns);
	else
		tsi_sync_wait_room(g->sync, until_ns);
	g->waiters[view]--;
	/* The base ring's writers may have stated what views wait for. */
	for (unsigned i = 0; i < TSI_VIEWS; i++)
		if (g->ring[i] && !g->waiters[i] && !g->waiters[0])
			tsi_ring_want_gate(g->ring[i], TSI_NEVER);
}

static void finish_rings(struct tsi_gate *g, enum tsi_ring_state state,
			 const char *why)
{
	for (unsigned i = 0; i < TSI_VIEWS; i++)
		if (g->ring[i])
			tsi_ring_finish(g->ring[i], state, why);
}

void tsi_gate_fail(struct tsi_gate *g, const char *why)
{
	if (!g->failed) {
		g->failed = true;
		snprintf(g->error, sizeof(g->error), "%s", why);
		finish_rings(g, TSI_RING_FAILED, why);
	}
	tsi_gate_changed(g);
}

void tsi_gate_stop(struct tsi_gate *g, const char *who)
{
	if (!g->failed) {
		g->failed = g->stopped = true;
		snprintf(g->error, sizeof(g->error), "%s", who);
		finish_rings(g, TSI_RING_STOPPED, who);
	}
	tsi_gate_changed(g);
}

bool tsi_gate_stopped(const struct tsi_gate *g)
{
	return g->stopped;
}

int tsi_gate_err(const struct tsi_gate *g)
{
	if (!g->failed)
		return 0;
	return g->stopped ? tsi_err(TSOCK_EENDED,
				    "the stream was stopped by %s", g->error)
			  : tsi_err(TSOCK_ESTREAM, "%s", g->error);
}

const char *tsi_gate_failure(const struct tsi_gate *g)
{
	return g->failed ? g->error : NULL;
}

void tsi_gate_close(struct tsi_gate *g)
{
	g->closed = true;
	finish_rings(g, TSI_RING_CLOSED, NULL);
}
