/*
 * queue.c - the batches of a reader in the order of their samples, and the
 * tail that follows them.
 *
 * Batches are given back in any order and by any thread, with no lock: each
 * says so in its entry, and one thread after another moves the tail over what
 * is done.
 */
#include "consumer/queue.h"

#include <unistd.h>

#include "base/futex.h"
#include "consumer/lease.h"

static struct tsi_queued *entry(const struct tsi_reader *r, uint64_t ticket)
{
	return &r->queue[ticket % r->queue_len];
}

bool tsi_queue_full(const struct tsi_reader *r)
{
	struct tsi_reader *w = (struct tsi_reader *)(uintptr_t)r;

	/* put is ours; got pairs with move_tail(). */
	return atomic_load_explicit(&w->put, memory_order_relaxed) -
		       atomic_load_explicit(&w->got, memory_order_acquire) >=
	       r->queue_len;
}

void tsi_queue_put(struct tsi_reader *r, struct tsock_batch *b)
{
	uint64_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
	struct tsi_queued *q = entry(r, put);

	b->ticket = put;
	q->first = b->first;
	q->batch = b;
	/* Both are published by the store below. */
	atomic_store_explicit(&q->done, false, memory_order_relaxed);
	/* Pairs with move_tail(). */
	atomic_store_explicit(&r->put, put + 1, memory_order_release);
}

struct tsi_queued *tsi_queue_oldest(struct tsi_reader *r, uint64_t *at)
{
	/* put is ours; got pairs with move_tail(). */
	uint64_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
	uint64_t got = atomic_load_explicit(&r->got, memory_order_acquire);

	if (*at < got)
		*at = got;
	for (; *at < put; ++*at)
		/* Only to choose: keep() looks again. */
		if (!atomic_load_explicit(&entry(r, *at)->done,
					  memory_order_relaxed))
			return entry(r, (*at)++);
	return NULL;
}

static void tell(struct tsi_reader *r, uint64_t tail)
{
	uint64_t old = r->told, one = 1;
	ssize_t n;

	if (tail <= old)
		return;
	r->told = tail;
	/* Pairs with the producer's acquire: our reads of the samples below
	 * come first. */
	atomic_store_explicit(&r->tail->tail, tail, memory_order_release);
	/* Pairs with the producer's fence between stating what it waits for
	 * and reading the tails. */
	atomic_thread_fence(memory_order_seq_cst);
	/* Pairs with room.c's fence: it sees the tail, or we see that it
	 * waits. */
	if (atomic_load_explicit(&r->awaited, memory_order_relaxed)) {
		atomic_fetch_add(&r->moved, 1);
		tsi_futex_wake(&r->moved);
	}
	if (!tsi_ring_notifies(r->shared, old, tail))
		return;
	/* A full counter wakes as well. */
	n = write(r->event, &one, sizeof(one));
	(void)n;
}

static void move_tail(struct tsi_reader *r)
{
	/* The position first: both pair with take()'s stores in the other
	 * order, so a batch that the position is beyond is seen queued. */
	uint64_t pos = atomic_load_explicit(&r->pos, memory_order_acquire);
	uint64_t put = atomic_load_explicit(&r->put, memory_order_acquire);
	/* Written by whose turn it is; turns are ordered by r->turn. */
	uint64_t got = atomic_load_explicit(&r->got, memory_order_relaxed);

	/* Pairs with the release of whoever gave it back: its last reads. */
	while (got < put &&
	       atomic_load_explicit(&entry(r, got)->done, memory_order_acquire))
		got++;
	if (got < put)
		pos = entry(r, got)->first;
	/* Pairs with take(), which may use the entries below again.  Before
	 * the producer may fill what they were for. */
	atomic_store_explicit(&r->got, got, memory_order_release);
	tell(r, pos);
}

/*
 * Whoever finds nobody at it moves the tail, and again for those who came in
 * the meantime.
 */
void tsi_queue_advance(struct tsi_reader *r)
{
	unsigned seen;

	if (atomic_fetch_add(&r->turn, 1))
		return;
	do {
		seen = atomic_load(&r->turn);
		move_tail(r);
	} while (!atomic_compare_exchange_strong(&r->turn, &seen, 0));
}

void tsi_queue_done(struct tsi_reader *r, uint64_t ticket)
{
	/* Pairs with move_tail(). */
	atomic_store_explicit(&entry(r, ticket)->done, true,
			      memory_order_release);
	tsi_queue_advance(r);
}
