/* SPDX-License-Identifier: MIT */
/*
 * server.c - a stream being served: claims, commits, and what they move.
 *
 * Workers claim sequence numbers, write the slots with no lock held, and
 * commit in any order.  The head follows the finished prefix.  The worker that
 * completes a prefix moves the head itself, so publishing costs no hand-over to
 * another thread.
 */
#include "serve/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

/* ---- with the lock held ---- */

void tsi_server_refresh(struct tsock_server *s)
{
	int64_t now = tsi_now_ms();

	for (unsigned i = 0; tsi_membership_next(&s->membership, &i); i++)
		if (tsi_membership_tail(&s->membership, i,
					tsi_conn_tail(&s->conn[i]), now))
			tsi_server_drop(s, i, tsock_errmsg());
}

void tsi_server_changed(struct tsock_server *s)
{
	bool jumped = tsi_membership_apply_jump(&s->membership);

	for (unsigned i = 0; i < TSI_VIEWS && jumped; i++)
		if (tsi_membership_active(&s->membership, i) && s->ring[i])
			tsi_ring_publish(
				s->ring[i],
				tsi_membership_head(&s->membership, i));
	if (tsi_membership_complete(&s->membership, 0))
		tsi_ring_finish(s->ring[0], TSI_RING_ENDED, NULL);
	tsi_sync_wake_workers(&s->sync);
	tsi_sync_wake_stages(&s->sync);
}

/* Write what the writer of a view waits for into the headers. */
static void state_wants(struct tsock_server *s, unsigned view)
{
	const struct tsi_membership *m = &s->membership;
	uint64_t gate, front;

	tsi_membership_waits(m, view, &gate, &front);
	tsi_ring_want_gate(s->ring[view], gate);
	for (unsigned i = 0; i < TSI_VIEWS; i++) {
		if (!tsi_membership_active(m, i) || !s->ring[i])
			continue;
		/* The reader at the front may read any view.  If this writer
		 * doesn't wait for it, another writer may. */
		if (front != TSI_NEVER)
			tsi_ring_want_front(s->ring[i], front);
		if (tsi_membership_made_of(m, i, view))
			tsi_ring_want_start(s->ring[i],
					    tsi_membership_next_start(m, i));
	}
}

void tsi_server_wait(struct tsock_server *s, unsigned view, int64_t until_ns)
{
	state_wants(s, view);
	/* Pairs with the consumer's fence between its tail and its look at
	 * gate_want: either it sees what we want, or we see its tail. */
	atomic_thread_fence(memory_order_seq_cst);
	tsi_server_refresh(s);
	if (tsi_membership_may_claim(&s->membership, view))
		return;
	s->waiters[view]++;
	if (view)
		tsi_sync_wait_staged(&s->sync, until_ns);
	else
		tsi_sync_wait_room(&s->sync, until_ns);
	if (--s->waiters[view] == 0 && s->ring[view])
		tsi_ring_want_gate(s->ring[view], TSI_NEVER);
}

void tsi_server_drop(struct tsock_server *s, unsigned id, const char *why)
{
	struct tsi_conn *c = &s->conn[id];

	tsi_log(TSOCK_LOG_INFO, "consumer %u %s", c->pid, why);
	tsi_ring_detach(c->ring, id);
	tsi_membership_leave(&s->membership, id);
	tsi_conn_close(c);
	tsi_server_changed(s);
}

struct tsi_join tsi_server_rules(const struct tsi_msg_join *join, unsigned view)
{
	return (struct tsi_join){ .view = view,
				  .join = join->join,
				  .leaves =
					  join->between == TSOCK_BETWEEN_LEAVE,
				  .after = join->after };
}

bool tsi_server_over(struct tsock_server *s)
{
	if (s->over || !tsi_membership_ended(&s->membership))
		return s->over;
	/* A consumer that has an offer was told that it can join. */
	if (tsi_offers_count(&s->offers))
		return false;
	s->over = true;
	return true;
}

void tsi_server_fail(struct tsock_server *s, const char *why)
{
	if (!s->failed) {
		s->failed = true;
		snprintf(s->error, sizeof(s->error), "%s", why);
		for (unsigned i = 0; i < TSI_VIEWS; i++)
			if (s->ring[i])
				tsi_ring_finish(s->ring[i], TSI_RING_FAILED,
						why);
	}
	tsi_server_changed(s);
}

/* ---- workers ---- */

static int closed_or_over(struct tsock_server *s)
{
	if (s->failed)
		return tsi_err(TSOCK_ESTREAM, "%s", s->error);
	if (s->stop)
		return tsi_err(TSOCK_EENDED, "the server is closing");
	if (tsi_server_over(s) || tsi_membership_all_claimed(&s->membership))
		return tsi_err(TSOCK_EENDED, "the last epoch is made");
	return 0;
}

static unsigned take(struct tsock_server *s, unsigned want, uint64_t *first)
{
	unsigned n = tsi_membership_claim(&s->membership, 0, want, first);

	if (!n) {
		tsi_server_refresh(s);
		n = tsi_membership_claim(&s->membership, 0, want, first);
	}
	return n;
}

int tsock_serve_claim(tsock_server *s, unsigned want, int timeout_ms,
		      uint64_t *first)
{
	int64_t until = timeout_ms < 0
				? INT64_MAX
				: tsi_now_ns() + (int64_t)timeout_ms * 1000000;
	int n;

	if (!s || !first)
		return tsi_err(TSOCK_EARG, "tsock_serve_claim: %s is NULL",
			       s ? "first" : "s");
	if (want > INT32_MAX)
		want = INT32_MAX;
	tsi_sync_lock(&s->sync);
	for (;;) {
		n = closed_or_over(s);
		if (n)
			break;
		n = (int)take(s, want, first);
		if (n)
			break;
		if (tsi_now_ns() >= until) {
			n = TSOCK_EAGAIN;
			break;
		}
		tsi_server_wait(s, 0, until);
	}
	tsi_sync_unlock(&s->sync);
	return n;
}

void *tsock_serve_slot(tsock_server *s, unsigned f, uint64_t seq)
{
	if (!s || f >= s->stream.nfields) {
		tsi_err(TSOCK_EARG, "tsock_serve_slot: %s",
			s ? "there is no such field" : "s is NULL");
		return NULL;
	}
	return tsi_ring_slot(s->ring[0], f, seq);
}

static void advance(struct tsock_server *s)
{
	struct tsi_membership *m = &s->membership;
	uint64_t old = tsi_membership_head(m, 0), head = old;
	uint64_t claimed = tsi_membership_claimed(m, 0);
	uint32_t capacity = s->stream.capacity;

	while (head < claimed && s->done[head % capacity]) {
		s->done[head % capacity] = 0;
		head++;
	}
	if (head == old)
		return;
	s->produced += head - old;
	tsi_membership_published(m, 0, head);
	tsi_ring_publish(s->ring[0], head);
	if (tsi_membership_jumping(m) || tsi_membership_complete(m, 0))
		tsi_server_changed(s);
	else
		tsi_sync_wake_stages(&s->sync);
}

void tsock_serve_commit(tsock_server *s, uint64_t first, unsigned count)
{
	if (!s)
		return;
	tsi_ring_mirror(s->ring[0], first, count);
	/* Non-temporal stores aren't ordered by the lock alone. */
	atomic_thread_fence(memory_order_seq_cst);
	tsi_sync_lock(&s->sync);
	for (uint64_t q = first; q < first + count; q++)
		s->done[q % s->stream.capacity] = 1;
	if (first == tsi_membership_head(&s->membership, 0))
		advance(s);
	tsi_sync_unlock(&s->sync);
}

void tsock_serve_fail(tsock_server *s, const char *why)
{
	if (!s)
		return;
	tsi_sync_lock(&s->sync);
	tsi_server_fail(s, why ? why : "no reason was given");
	tsi_sync_unlock(&s->sync);
}

void tsock_serve_count(tsock_server *s, uint64_t read_bytes,
		       uint64_t bad_samples)
{
	if (!s)
		return;
	/* Counters: no other memory hangs on them. */
	atomic_fetch_add_explicit(&s->read_bytes, read_bytes,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&s->bad_samples, bad_samples,
				  memory_order_relaxed);
}

/* ---- the end ---- */

int tsock_serve_drained(tsock_server *s)
{
	bool over;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_drained: s is NULL");
	tsi_sync_lock(&s->sync);
	tsi_server_refresh(s);
	over = tsi_server_over(s);
	tsi_sync_unlock(&s->sync);
	return over;
}

void tsock_serve_stop(tsock_server *s)
{
	if (!s)
		return;
	tsi_sync_lock(&s->sync);
	s->stop = true;
	tsi_server_changed(s);
	tsi_sync_unlock(&s->sync);
	eventfd_write(s->event, 1);
}
