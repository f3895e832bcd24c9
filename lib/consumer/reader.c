/* SPDX-License-Identifier: MIT */
/*
 * reader.c - one claim on a ring, and its batches; tail.c has their order.
 *
 * Acquiring takes no lock, allocates nothing and makes no system call as long
 * as a free batch and a window are at hand.
 */
#include "consumer/reader.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fork.h"
#include "consumer/forks.h"
#include "consumer/tail.h"

#define READY 4 /* free batches to begin with */

/* ---- pinned batches ---- */

/*
 * With the lock of forks.h.  A pinned batch stays where it is although it may
 * be released; false if it isn't held.
 */
static bool pin(struct tsock_batch *b)
{
	uint32_t state = TSI_BATCH_HELD;

	return atomic_compare_exchange_strong(&b->state, &state,
					      TSI_BATCH_PINNED);
}

/* False if it was released since: then finish() it, without the lock. */
static bool unpin(struct tsock_batch *b, enum tsi_batch_state to)
{
	uint32_t state = TSI_BATCH_PINNED;

	return atomic_compare_exchange_strong(&b->state, &state, to);
}

/* ---- the end of a batch ---- */

/* The thread that gave the batch back doesn't touch it any more after this. */
static void batch_put(struct tsi_reader *r, struct tsock_batch *b)
{
	struct tsock_batch *top;

	/* Only the handle's thread takes, and takes all: no ABA. */
	top = atomic_load_explicit(&r->returned, memory_order_relaxed);
	do
		b->next = top;
	while (!atomic_compare_exchange_weak_explicit(
		&r->returned, &top, b,
		memory_order_release /* pairs with batch_get() */,
		memory_order_relaxed));
}

static void drop_hold(struct tsi_reader *r)
{
	/* All tails that were moved come before the claim is over. */
	if (atomic_fetch_sub_explicit(&r->holds, 1, memory_order_acq_rel) == 1)
		r->claim_ended(r->context, &r->claim);
}

/* The last time that a batch, which held the tail or not, is looked at. */
static void finish_batch(struct tsock_batch *b, bool held)
{
	struct tsi_reader *r = b->reader;

	if (held)
		tsi_tail_release(&r->tail, b->ticket);
	tsi_backend_clear(r->backend, &b->placement);
	batch_put(r, b);
	if (held)
		drop_hold(r);
	tsi_reader_unref(r);
}

/* ---- forks ---- */

/* For each field of b that a forked child could read. */
static void each_pages(const struct tsock_batch *b,
		       void (*fn)(void *addr, size_t len, bool writable))
{
	struct tsi_backend *k = b->reader->backend;

	for (unsigned i = 0; i < b->reader->nfields; i++) {
		bool writable;
		void *addr;
		size_t len;

		if (tsi_backend_pages(k, &b->placement, i, &addr, &len,
				      &writable))
			fn(addr, len, writable);
	}
}

static void pin_all(struct tsi_fork_client *c)
{
	struct tsi_reader *r = tsi_member_of(c, struct tsi_reader, forks);
	struct tsock_batch *b;

	/* Pairs with batch_new(). */
	b = atomic_load_explicit(&r->all, memory_order_acquire);
	for (; b; b = b->all) {
		if (!pin(b))
			continue;
		tsi_forks_pin(&b->fork);
		each_pages(b, tsi_forks_save);
	}
}

static bool unpin_after_fork(struct tsi_fork_pin *p)
{
	struct tsock_batch *b = tsi_member_of(p, struct tsock_batch, fork);

	each_pages(b, tsi_forks_allow);
	return unpin(b, TSI_BATCH_HELD);
}

static void finish_after_fork(struct tsi_fork_pin *p)
{
	finish_batch(tsi_member_of(p, struct tsock_batch, fork), true);
}

/* ---- free batches ---- */

static void batch_free(struct tsock_batch *b)
{
	struct tsi_backend *k = b->reader->backend;

	tsi_backend_discard(k, &b->placement);
	tsi_name_free(b->name);
	free(b->exports);
	free(b);
}

static struct tsock_batch *batch_new(struct tsi_reader *r)
{
	struct tsock_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->reader = r;
	b->name = tsi_name_new(b);
	b->exports = calloc(r->nfields, sizeof(*b->exports));
	if (!b->name || !b->exports ||
	    tsi_backend_prepare(r->backend, &b->placement)) {
		batch_free(b);
		return NULL;
	}
	b->fork = (struct tsi_fork_pin){ .unpin = unpin_after_fork,
					 .finish = finish_after_fork };
	/* Not HELD: a fork would hold on to it. */
	atomic_init(&b->state, TSI_BATCH_RELEASED);
	b->all = atomic_load_explicit(&r->all, memory_order_relaxed);
	/* Pairs with pin_all(): what was set above. */
	atomic_store_explicit(&r->all, b, memory_order_release);
	return b;
}

static struct tsock_batch *batch_get(struct tsi_reader *r)
{
	struct tsock_batch *b;

	/* Pairs with batch_put(). */
	if (!r->free)
		r->free = atomic_exchange_explicit(&r->returned, NULL,
						   memory_order_acquire);
	b = r->free;
	if (!b)
		return batch_new(r);
	r->free = b->next;
	return b;
}

/* ---- life ---- */

/*
 * Entries that are not done lie within one capacity: whole batches, and a
 * short one at the end of each epoch.
 */
static uint64_t tail_entries(const struct tsi_reader_parts *p)
{
	uint64_t c = p->ring->capacity;
	uint64_t n = c / p->batch + c / p->ident.epoch_len + 4;

	return n < c + 2 ? n : c + 2;
}

static void take_parts(struct tsi_reader *r, const struct tsi_reader_parts *p)
{
	r->generation = tsi_fork_generation();
	r->capacity = p->ring->capacity;
	r->join_window = p->ring->join_window;
	r->epoch_len = p->ident.epoch_len;
	r->nfields = p->ring->nfields;
	for (unsigned i = 0; i < r->nfields; i++)
		r->field[i] = *tsi_backend_field(
			p->backend, i, tsi_geometry_field(p->ring, i));
	r->backend = p->backend;
	r->claim_ended = p->claim_ended;
	r->free_context = p->free_context;
	r->context = p->context;
	atomic_init(&r->refs, 1);
	atomic_init(&r->holds, 1);
	r->claim = tsi_claim_none();
}

static void destroy_reader(struct tsi_reader *r)
{
	struct tsock_batch *b, *next;

	if (tsi_backend_forks(r->backend))
		tsi_forks_forget(&r->forks);
	for (b = atomic_load(&r->all); b; b = next) {
		next = b->all;
		batch_free(b);
	}
	tsi_backend_destroy(r->backend);
	tsi_claim_close(&r->claim);
	tsi_tail_fini(&r->tail);
	free(r);
}

static int make_batches(struct tsi_reader *r)
{
	for (unsigned i = 0; i < READY; i++) {
		struct tsock_batch *b = batch_new(r);

		if (!b)
			return tsi_err(TSOCK_ENOMEM, "no memory for batches");
		b->next = r->free;
		r->free = b;
	}
	return 0;
}

int tsi_reader_create(const struct tsi_reader_parts *p, struct tsi_reader **out)
{
	struct tsi_reader *r = calloc(1, sizeof(*r));
	int err;

	if (!r || tsi_tail_init(&r->tail, tail_entries(p), p->start)) {
		tsi_backend_destroy(p->backend);
		free(r);
		return tsi_err(TSOCK_ENOMEM, "no memory to read a stream");
	}
	take_parts(r, p);
	err = make_batches(r);
	if (err) {
		destroy_reader(r);
		return err;
	}
	r->claim = p->claim;
	tsi_claim_share_tail(&r->claim, &r->tail);
	r->forks.pin_all = pin_all;
	/* A child can't use a GPU's memory, whatever is done. */
	if (tsi_backend_forks(r->backend))
		tsi_forks_watch(&r->forks);
	*out = r;
	return 0;
}

void tsi_reader_unref(struct tsi_reader *r)
{
	/* Everybody's last use comes before the last one's freeing. */
	if (atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (r->free_context)
		r->free_context(r->context);
	destroy_reader(r);
}

/* ---- acquiring ---- */

uint64_t tsi_reader_pos(const struct tsi_reader *r)
{
	/* Written by the caller's thread. */
	return atomic_load_explicit(
		&((struct tsi_reader *)(uintptr_t)r)->tail.pos,
		memory_order_relaxed);
}

uint64_t tsi_reader_tail(const struct tsi_reader *r)
{
	return tsi_tail_shared(&r->tail);
}

int tsi_reader_acquire(struct tsi_reader *r, uint64_t n, tsock_batch **out)
{
	struct tsi_backend *k = r->backend;
	uint64_t pos = tsi_reader_pos(r);
	struct tsock_batch *b;
	int err;

	if (tsi_tail_full(&r->tail))
		return tsi_err(
			TSOCK_EPROTO,
			"the producer published more than fits its ring");
	b = batch_get(r);
	if (!b)
		return tsi_err(TSOCK_ENOMEM, "no memory for one more batch");
	err = tsi_backend_place(k, pos, n, &b->placement);
	if (err) {
		batch_put(r, b);
		return err;
	}
	tsi_reader_used_here(r);
	b->first = pos;
	b->count = n;
	/* No other thread knows it yet. */
	atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&b->pending, false, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
	if (!b->placement.own) {
		/* The handle has a hold, so it doesn't come from 0. */
		atomic_fetch_add_explicit(&r->holds, 1, memory_order_relaxed);
		b->ticket = tsi_tail_append(&r->tail, pos, b);
	}
	/* Pairs with pin(): what was set above. */
	atomic_store(&b->state,
		     b->placement.own ? TSI_BATCH_PRIVATE : TSI_BATCH_HELD);
	/* After it was appended. */
	tsi_tail_move_position(&r->tail, pos + n);
	if (b->placement.own)
		tsi_tail_advance(&r->tail);
	/* A fork that began before it was held hasn't seen it. */
	if (tsi_forks_going_on())
		tsi_forks_await();
	*out = tsi_name_of(b->name);
	return 0;
}

void tsi_reader_enter(struct tsi_reader *r, uint64_t need)
{
	unsigned half;
	uint64_t since;

	if (tsi_claim_enter(&r->claim, need, &half, &since))
		tsi_backend_turn(r->backend, half, since);
}

void tsi_reader_skip(struct tsi_reader *r, uint64_t to)
{
	tsi_tail_move_position(&r->tail, to);
	tsi_tail_advance(&r->tail);
}

/* ---- releasing ---- */

void tsi_reader_batch_ref(struct tsock_batch *b)
{
	/* The caller has one. */
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

/* The last reference is gone, and no work uses it any more. */
static void give_back(struct tsock_batch *b)
{
	uint32_t state = atomic_load(&b->state);

	while (state != TSI_BATCH_PRIVATE) {
		uint32_t next = state == TSI_BATCH_HELD ? TSI_BATCH_RELEASED
							: TSI_BATCH_DROPPED;

		if (!atomic_compare_exchange_weak(&b->state, &state, next))
			continue;
		/* make_private() sees it, and finishes. */
		if (next == TSI_BATCH_DROPPED)
			return;
		break;
	}
	finish_batch(b, state == TSI_BATCH_HELD);
}

/* Is it another thread than the one that takes? */
static void note_releaser(struct tsi_reader *r)
{
	/* A hint for threads that wait. */
	if (!atomic_load_explicit(&r->released_elsewhere,
				  memory_order_relaxed) &&
	    atomic_load_explicit(&r->user_thread, memory_order_relaxed) !=
		    tsi_reader_this_thread())
		atomic_store_explicit(&r->released_elsewhere, true,
				      memory_order_relaxed);
}

void tsi_reader_batch_done(struct tsi_placement *p)
{
	give_back(tsi_member_of(p, struct tsock_batch, placement));
}

void tsi_reader_batch_unref(struct tsock_batch *b)
{
	struct tsi_backend *k = b->reader->backend;

	note_releaser(b->reader);
	/* Every thread's last use comes before the reuse.  Where this is the
	 * only reference, reading the count will do: nobody can add one. */
	if (atomic_load_explicit(&b->refs, memory_order_acquire) != 1 &&
	    atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (tsi_backend_in_use(k, &b->placement)) {
		/* Pairs with tsi_reader_batch_pending(); only a hint. */
		atomic_store_explicit(&b->pending, true, memory_order_relaxed);
		tsi_backend_defer(k, &b->placement);
		return;
	}
	give_back(b);
}

bool tsi_reader_batch_pending(const struct tsock_batch *b)
{
	/* Pairs with tsi_reader_batch_unref(); nothing hangs on it. */
	return atomic_load_explicit(
		&((struct tsock_batch *)(uintptr_t)b)->pending,
		memory_order_relaxed);
}

uint64_t tsi_reader_batch_first(const struct tsock_batch *b)
{
	return b->first;
}

/* ---- making private ---- */

int tsi_reader_make_private(struct tsi_reader *r, struct tsock_batch *b)
{
	uint64_t ticket = b->ticket;
	int err = 0;
	bool held;

	tsi_forks_lock();
	held = pin(b);
	if (!held) {
		/* It is being given back. */
		tsi_forks_unlock();
		return 0;
	}
	err = tsi_backend_make_private(r->backend, &b->placement);
	held = unpin(b, err ? TSI_BATCH_HELD : TSI_BATCH_PRIVATE);
	tsi_forks_unlock();
	if (!held) {
		finish_batch(b, true);
		return 0;
	}
	if (err)
		return err;
	/* It may be given back by now: b isn't ours. */
	tsi_tail_release(&r->tail, ticket);
	drop_hold(r);
	return 0;
}

/* ---- leaving ---- */

int tsi_reader_trouble(struct tsi_reader *r)
{
	return tsi_backend_trouble(r->backend);
}

bool tsi_reader_retire(struct tsi_reader *r)
{
	tsi_backend_retire(r->backend);
	return atomic_fetch_sub_explicit(&r->holds, 1, memory_order_acq_rel) ==
	       1;
}

bool tsi_reader_claim_ended(const struct tsi_reader *r)
{
	/* Pairs with drop_hold(). */
	return !atomic_load_explicit(
		&((struct tsi_reader *)(uintptr_t)r)->holds,
		memory_order_acquire);
}
