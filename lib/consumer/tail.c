/* SPDX-License-Identifier: MIT */
/*
 * tail.c - the tail, which follows the batches of a reader as they are
 * released.
 *
 * Each batch has an entry, in the order of its samples.  A thread that releases
 * a batch marks its entry as done; then one thread after another moves the tail
 * over the entries that are done.
 */
#include "consumer/tail.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "ring/futex.h"

int tsi_tail_init(struct tsi_tail *t, uint64_t nentries, uint64_t start)
{
	*t = (struct tsi_tail){ .event = -1 };
	t->entries = calloc(nentries, sizeof(*t->entries));
	if (!t->entries)
		return tsi_err(TSOCK_ENOMEM, "no memory to read a stream");
	t->nentries = nentries;
	atomic_init(&t->pos, start);
	t->published = start;
	return 0;
}

void tsi_tail_fini(struct tsi_tail *t)
{
	free(t->entries);
	t->entries = NULL;
}

void tsi_tail_share(struct tsi_tail *t, struct tsi_tail_page *page,
		    const struct tsi_ring_shared *ring, int event)
{
	t->page = page;
	t->ring = ring;
	t->event = event;
	tsi_tail_page_move(page, t->published);
}

static struct tsi_tail_entry *entry_of(const struct tsi_tail *t,
				       uint64_t ticket)
{
	return &t->entries[ticket % t->nentries];
}

bool tsi_tail_full(const struct tsi_tail *t)
{
	struct tsi_tail *w = (struct tsi_tail *)(uintptr_t)t;

	/* appended is this thread's; passed pairs with move_tail(). */
	return atomic_load_explicit(&w->appended, memory_order_relaxed) -
		       atomic_load_explicit(&w->passed, memory_order_acquire) >=
	       t->nentries;
}

uint64_t tsi_tail_append(struct tsi_tail *t, uint64_t first,
			 struct tsock_batch *b)
{
	uint64_t put = atomic_load_explicit(&t->appended, memory_order_relaxed);
	struct tsi_tail_entry *e = entry_of(t, put);

	e->first = first;
	e->batch = b;
	/* Both are published by the store below. */
	atomic_store_explicit(&e->done, false, memory_order_relaxed);
	/* Pairs with move_tail(). */
	atomic_store_explicit(&t->appended, put + 1, memory_order_release);
	return put;
}

struct tsock_batch *tsi_tail_oldest(struct tsi_tail *t, uint64_t *at)
{
	/* appended is this thread's; passed pairs with move_tail(). */
	uint64_t put = atomic_load_explicit(&t->appended, memory_order_relaxed);
	uint64_t got = atomic_load_explicit(&t->passed, memory_order_acquire);

	if (*at < got)
		*at = got;
	for (; *at < put; ++*at)
		/* Only to choose: make_private() looks again. */
		if (!atomic_load_explicit(&entry_of(t, *at)->done,
					  memory_order_relaxed))
			return entry_of(t, (*at)++)->batch;
	return NULL;
}

static void publish(struct tsi_tail *t, uint64_t tail)
{
	uint64_t old = t->published, one = 1;
	ssize_t n;

	if (tail <= old)
		return;
	t->published = tail;
	tsi_tail_page_move(t->page, tail);
	/* Pairs with the producer's fence between stating what it waits for
	 * and reading the tails. */
	atomic_thread_fence(memory_order_seq_cst);
	/* Pairs with tsi_tail_expect(): either the waiting thread sees the
	 * tail, or it is seen here that it waits. */
	if (atomic_load_explicit(&t->awaited, memory_order_relaxed)) {
		atomic_fetch_add(&t->moves, 1);
		tsi_futex_wake(&t->moves);
	}
	if (!tsi_header_notifies(t->ring, old, tail))
		return;
	/* A full counter wakes as well. */
	n = write(t->event, &one, sizeof(one));
	(void)n;
}

static void move_tail(struct tsi_tail *t)
{
	/* The position first: tsi_reader_acquire() stores both in the other
	 * order, so a batch that the position is beyond is seen here. */
	uint64_t pos = atomic_load_explicit(&t->pos, memory_order_acquire);
	uint64_t put = atomic_load_explicit(&t->appended, memory_order_acquire);
	/* Written by the advancing thread, in the order of t->advancing. */
	uint64_t got = atomic_load_explicit(&t->passed, memory_order_relaxed);

	/* Pairs with tsi_tail_release(): the last reads of the batch. */
	while (got < put && atomic_load_explicit(&entry_of(t, got)->done,
						 memory_order_acquire))
		got++;
	if (got < put)
		pos = entry_of(t, got)->first;
	/* Pairs with tsi_tail_full(): the entries below may be used again.
	 * Before the producer may fill the slots that they were for. */
	atomic_store_explicit(&t->passed, got, memory_order_release);
	publish(t, pos);
}

/*
 * The thread that finds no other one advancing moves the tail, and moves it
 * again for those that came in the meantime.
 */
void tsi_tail_advance(struct tsi_tail *t)
{
	unsigned seen;

	if (atomic_fetch_add(&t->advancing, 1))
		return;
	do {
		seen = atomic_load(&t->advancing);
		move_tail(t);
	} while (!atomic_compare_exchange_strong(&t->advancing, &seen, 0));
}

void tsi_tail_release(struct tsi_tail *t, uint64_t ticket)
{
	/* Pairs with move_tail(). */
	atomic_store_explicit(&entry_of(t, ticket)->done, true,
			      memory_order_release);
	tsi_tail_advance(t);
}

/* ---- waiting for it ---- */

void tsi_tail_expect(struct tsi_tail *t, bool expect)
{
	atomic_store(&t->awaited, expect);
	/* Pairs with publish(): either the tail is seen here, or the wait is
	 * seen there. */
	atomic_thread_fence(memory_order_seq_cst);
}

uint32_t tsi_tail_moves(struct tsi_tail *t)
{
	return atomic_load(&t->moves);
}

void tsi_tail_wait(struct tsi_tail *t, uint32_t seen, int timeout_ms)
{
	tsi_futex_wait(&t->moves, seen, timeout_ms);
}
