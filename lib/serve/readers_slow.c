/* SPDX-License-Identifier: MIT */
/*
 * readers_slow.c - what is done with readers that hold others up.
 *
 * A reader is detached in this order: its row says so; its generation is read,
 * which it can't change any more; and only then the ring goes on in its other
 * half.  So the reader either has entered the generation that the producer has
 * seen, or it finds that it was detached before it looks at a sample.
 */
#include "serve/readers.h"

#include "base/err.h"
#include "base/log.h"

#define RETRY_MS 1000 /* between two tries to get memory */

void tsi_readers_set_slow(struct tsi_readers *r, uint32_t slow, int64_t slow_ms)
{
	r->slow = slow;
	r->slow_ms = slow_ms;
}

bool tsi_readers_detaches(const struct tsi_readers *r)
{
	return r->slow == TSOCK_SLOW_DETACH;
}

bool tsi_readers_blocks(const struct tsi_readers *r)
{
	return r->slow == TSOCK_SLOW_BLOCK;
}

void tsi_readers_read_pages(struct tsi_readers *r)
{
	for (unsigned i = 0; tsi_membership_next(r->membership, &i); i++) {
		tsi_membership_want(r->membership, i,
				    tsi_conn_want(&r->conn[i]));
		tsi_membership_entered(r->membership, i,
				       tsi_conn_generation(&r->conn[i]));
	}
}

static void detach(struct tsi_readers *r, const struct tsi_slow *slow,
		   unsigned view)
{
	struct tsi_membership *m = r->membership;
	struct tsi_conn *c = &r->conn[slow->id];
	enum tsi_detach how = tsi_membership_may_detach(m, slow->id);

	tsi_conn_set_aside(c, slow->id);
	tsi_membership_entered(m, slow->id, tsi_conn_generation(c));
	/* It may just have entered the newest generation. */
	if (tsi_membership_may_detach(m, slow->id) != how) {
		tsi_conn_undo_set_aside(c, slow->id);
		return;
	}
	tsi_conn_tell_detached(c, &r->conn[slow->waiter], slow->held_ms);
	tsi_membership_detach(m, slow->id);
	tsi_gate_turned(r->gate, view);
	tsi_record_drop(&r->record, tsi_conn_nonce(c));
	r->detached++;
}

/* Returns the view that needs memory for it; or -1. */
static int detach_one(struct tsi_readers *r, const struct tsi_slow *slow,
		      int64_t now_ms)
{
	unsigned view = tsi_membership_view(r->membership, slow->id);
	const struct tsi_ring *ring = tsi_gate_ring(r->gate, view);
	enum tsi_detach how =
		tsi_membership_may_detach(r->membership, slow->id);

	if (how == TSI_DETACH_NEVER)
		tsi_conn_tell_stays(
			&r->conn[slow->id], &r->conn[slow->waiter],
			slow->held_ms,
			"the ring's other half is still in use, by "
			"consumers that were detached or by others");
	else if (how == TSI_DETACH_FREE || tsi_ring_has_spare(ring))
		detach(r, slow, view);
	else if (now_ms >= r->retry_ms)
		return (int)view;
	return -1;
}

static int detach_slow(struct tsi_readers *r, int64_t now_ms)
{
	struct tsi_slow slow;
	int view = -1;

	for (unsigned i = 0;
	     tsi_membership_slow(r->membership, &i, r->slow_ms, &slow); i++) {
		int v = detach_one(r, &slow, now_ms);

		view = v >= 0 ? v : view;
	}
	tsi_gate_changed(r->gate);
	return view;
}

int tsi_readers_mind_slow(struct tsi_readers *r, int64_t now_ms)
{
	struct tsi_slow slow;
	unsigned first = 0;

	if (r->slow == TSOCK_SLOW_BLOCK)
		return -1;
	tsi_readers_read_pages(r);
	if (!tsi_membership_look(r->membership, now_ms))
		return -1;
	if (r->slow == TSOCK_SLOW_DETACH)
		return detach_slow(r, now_ms);
	if (tsi_membership_slow(r->membership, &first, r->slow_ms, &slow))
		tsi_conn_kill(&r->conn[slow.id], &r->conn[slow.waiter],
			      slow.held_ms);
	return -1;
}

void tsi_readers_no_memory(struct tsi_readers *r, int64_t now_ms)
{
	struct tsi_slow slow;

	r->retry_ms = now_ms + RETRY_MS;
	for (unsigned i = 0;
	     tsi_membership_slow(r->membership, &i, r->slow_ms, &slow); i++)
		tsi_conn_tell_stays(&r->conn[slow.id], &r->conn[slow.waiter],
				    slow.held_ms, tsock_errmsg());
}
