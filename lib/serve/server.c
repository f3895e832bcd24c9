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

#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/err.h"

/* ---- workers ---- */

static int closed_or_over(struct tsock_server *s)
{
	const char *why = tsi_gate_failure(&s->gate);

	if (why)
		return tsi_err(TSOCK_ESTREAM, "%s", why);
	if (s->stop)
		return tsi_err(TSOCK_EENDED, "the server is closing");
	if (tsi_readers_over(&s->readers) ||
	    tsi_membership_all_claimed(&s->membership))
		return tsi_err(TSOCK_EENDED, "the last epoch is made");
	return 0;
}

static unsigned take(struct tsock_server *s, unsigned want, uint64_t *first)
{
	unsigned n = tsi_membership_claim(&s->membership, 0, want, first);

	if (!n) {
		tsi_readers_refresh(&s->readers);
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
		tsi_readers_wait(&s->readers, 0, until);
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
	return tsi_ring_slot(tsi_gate_ring(&s->gate, 0), f, seq);
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
	tsi_gate_publish_base(&s->gate, head);
}

void tsock_serve_commit(tsock_server *s, uint64_t first, unsigned count)
{
	if (!s)
		return;
	tsi_ring_mirror(tsi_gate_ring(&s->gate, 0), first, count);
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
	tsi_gate_fail(&s->gate, why ? why : "no reason was given");
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
	tsi_readers_refresh(&s->readers);
	over = tsi_readers_over(&s->readers);
	tsi_sync_unlock(&s->sync);
	return over;
}

void tsock_serve_stop(tsock_server *s)
{
	if (!s)
		return;
	tsi_sync_lock(&s->sync);
	s->stop = true;
	tsi_gate_changed(&s->gate);
	tsi_sync_unlock(&s->sync);
	eventfd_write(s->event, 1);
}
