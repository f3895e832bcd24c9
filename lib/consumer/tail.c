/*
 * tail.c - the tail, which follows the batches of a reader as they are
 * released.
 *
 * Each batch has an entry, in the order of its samples.  Whoever releases a
 * batch marks its entry as done; then one thread after another moves the tail
 * over the entries that are done.
 */
#include "consumer/tail.h"

#include <unistd.h>

#include "base/futex.h"
#include "consumer/reader.h"

static struct tsi_tail_entry *entry(const struct tsi_reader *r, uint64_t ticket)
{
	return &r->entries[ticket % r->nentries];
}

bool tsi_tail_full(const struct tsi_reader *r)
{
	struct tsi_reader *w = (struct tsi_reader *)(uintptr_t)r;

	/* put is ours; got pairs with move_tail(). */
	return atomic_load_explicit(&w->appended, memory_order_relaxed) -
		       atomic_load_explicit(&w->passed, memory_order_acquire) >=
	       r->nentries;
}

void tsi_tail_append(struct tsi_reader *r, struct tsock_batch *b)
{
	uint64_t put = atomic_load_explicit(&r->appended, memory_order_relaxed);
	struct tsi_tail_entry *q = entry(r, put);

	b->ticket = put;
	q->first = b->first;
	q->batch = b;
	/* Both are published by the store below. */
	atomic_store_explicit(&q->done, false, memory_order_relaxed);
	/* Pairs with move_tail(). */
	atomic_store_explicit(&r->appended, put + 1, memory_order_release);
}

struct tsi_tail_entry *tsi_tail_oldest(struct tsi_reader *r, uint64_t *at)
{
	/* put is ours; got pairs with move_tail(). */
	uint64_t put = atomic_load_explicit(&r->appended, memory_order_relaxed);
	uint64_t got = atomic_load_explicit(&r->passed, memory_order_acquire);

	if (*at < got)
		*at = got;
	for (; *at < put; ++*at)
		/* Only to choose: make_private() looks again. */
		if (!atomic_load_explicit(&entry(r, *at)->done,
					  memory_order_relaxed))
			return entry(r, (*at)++);
	return NULL;
}

static void publish(struct tsi_reader *r, uint64_t tail)
{
	uint64_t old = r->published_tail, one = 1;
	ssize_t n;

	if (tail <= old)
		return;
	r->published_tail = tail;
	/* Pairs with the producer's acquire: our reads of the samples below
	 * come first. */
	atomic_store_explicit(&r->tail->tail, tail, memory_order_release);
	/* Pairs with the producer's fence between stating what it waits for
	 * and reading the tails. */
	atomic_thread_fence(memory_order_seq_cst);
	/* Pairs with the fence in await_release.c: that sees the tail, or this
	 * sees that it waits. */
	if (atomic_load_explicit(&r->awaited, memory_order_relaxed)) {
		atomic_fetch_add(&r->tail_moves, 1);
		tsi_futex_wake(&r->tail_moves);
	}
	if (!tsi_ring_notifies(r->shared, old, tail))
		return;
	/* A full counter wakes as well. */
	n = write(r->event, &one, sizeof(one));
	(void)n;
}

static void move_tail(struct tsi_reader *r)
{
	/* The position first: tsi_reader_acquire() stores both in the other
	 * order, so a batch that the position is beyond is seen here. */
	uint64_t pos = atomic_load_explicit(&r->pos, memory_order_acquire);
	uint64_t put = atomic_load_explicit(&r->appended, memory_order_acquire);
	/* Written by the advancing thread, in the order of r->advancing. */
	uint64_t got = atomic_load_explicit(&r->passed, memory_order_relaxed);

	/* Pairs with tsi_tail_release(): the last reads of the batch. */
	while (got < put &&
	       atomic_load_explicit(&entry(r, got)->done, memory_order_acquire))
		got++;
	if (got < put)
		pos = entry(r, got)->first;
	/* Pairs with tsi_tail_full(): the entries below may be used again.
	 * Before the producer may fill the slots that they were for. */
	atomic_store_explicit(&r->passed, got, memory_order_release);
	publish(r, pos);
}

/*
 * The thread that finds no other one advancing moves the tail, and moves it
 * again for those that came in the meantime.
 */
void tsi_tail_advance(struct tsi_reader *r)
{
	unsigned seen;

	if (atomic_fetch_add(&r->advancing, 1))
		return;
	do {
		seen = atomic_load(&r->advancing);
		move_tail(r);
	} while (!atomic_compare_exchange_strong(&r->advancing, &seen, 0));
}

void tsi_tail_release(struct tsi_reader *r, uint64_t ticket)
{
	/* Pairs with move_tail(). */
	atomic_store_explicit(&entry(r, ticket)->done, true,
			      memory_order_release);
	tsi_tail_advance(r);
}
