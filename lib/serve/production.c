/* SPDX-License-Identifier: MIT */
/*
 * production.c - what the workers have written into the base ring.
 *
 * The worker that completes a prefix moves the head itself, so publishing costs
 * no hand-over to another thread.  One thread at a time has the turn to do so:
 * a worker that finds the turn taken leaves word that there is more, and the
 * thread that has it looks again before it gives the turn up.  The holder of
 * the server's lock has the turn, too.
 */
#include "serve/production.h"

#include <stdlib.h>

#include "base/err.h"
#include "ring/futex.h"

/* Bits of the turn.  HELD: the lock's holder has it, or waits for it.  BUSY: a
 * worker has it.  MORE: samples were written that it may not have seen. */
#define HELD 1u
#define BUSY 2u
#define MORE 4u

#define WAIT_MS 100 /* of each sleep; wake-ups don't get lost */

/* ---- the turn ---- */

/* Take the turn; false: the worker that has it looks again. */
static bool take_turn(struct tsi_production *p)
{
	uint32_t old = atomic_load_explicit(&p->turn, memory_order_relaxed);
	uint32_t bit;

	do
		bit = old & (HELD | BUSY) ? MORE : BUSY;
	/* Acquire pairs with the release of the worker that had the turn
	 * before: the head, and all that the lock protects.  Release pairs with
	 * look_again(): that thread sees what is done. */
	while (!atomic_compare_exchange_weak_explicit(&p->turn, &old, old | bit,
						      memory_order_acq_rel,
						      memory_order_relaxed));
	return bit == BUSY;
}

/* There is more, which is seen after this. */
static void look_again(struct tsi_production *p)
{
	/* Acquire pairs with take_turn(). */
	atomic_fetch_and_explicit(&p->turn, ~MORE, memory_order_acquire);
}

/* Give it up; false: there is more to be published. */
static bool give_turn(struct tsi_production *p)
{
	uint32_t old = atomic_load_explicit(&p->turn, memory_order_relaxed);

	do {
		if (old & MORE) {
			look_again(p);
			return false;
		}
		/* Release pairs with take_turn() and stop(). */
	} while (!atomic_compare_exchange_weak_explicit(
		&p->turn, &old, old & ~BUSY, memory_order_release,
		memory_order_relaxed));
	if (old & HELD)
		tsi_futex_wake(&p->turn);
	return true;
}

/* ---- the head ---- */

/* The slot behind this one. */
static uint64_t next_slot(const struct tsi_production *p, uint64_t slot)
{
	return slot + 1 < p->capacity ? slot + 1 : 0;
}

/* With the turn. */
static bool is_done(const struct tsi_production *p, uint64_t slot)
{
	/* Acquire pairs with tsi_production_commit(): the sample's bytes. */
	return atomic_load_explicit(&p->done[slot], memory_order_acquire);
}

/* With the turn: publish what is complete; false: nothing is. */
static bool publish_head(struct tsi_production *p)
{
	uint64_t old = tsi_membership_head(p->membership, 0), head = old;
	uint64_t claimed = tsi_grant_claimed(&p->grant);
	uint64_t slot = old % p->capacity;

	while (head < claimed && is_done(p, slot)) {
		/* Relaxed: the worker that writes it next has claimed the slot
		 * anew, and the lock was held in between. */
		atomic_store_explicit(&p->done[slot], 0, memory_order_relaxed);
		slot = next_slot(p, slot);
		head++;
	}
	if (head == old)
		return false;
	p->produced += head - old;
	tsi_gate_publish_base(p->gate, head);
	return true;
}

/* With a worker's turn: does somebody have to be told? */
static bool needs_lock(const struct tsi_production *p)
{
	uint64_t head = tsi_membership_head(p->membership, 0);

	return head >= p->lock_at || tsi_sync_stage_wants(p->sync, head);
}

/* ---- around the lock ---- */

/* The lock was taken: from now on nothing is claimed or published. */
static void stop(void *arg)
{
	struct tsi_production *p = arg;
	/* Acquire pairs with give_turn(): the head. */
	uint32_t turn = HELD | atomic_fetch_or_explicit(&p->turn, HELD,
							memory_order_acquire);

	while (turn & BUSY) {
		tsi_futex_wait(&p->turn, turn, WAIT_MS);
		/* Likewise. */
		turn = atomic_load_explicit(&p->turn, memory_order_acquire);
	}
	tsi_membership_claimed_to(p->membership, tsi_grant_close(&p->grant));
}

/*
 * Say which views workers write.  A worker that has claimed a sample sees what
 * was said before, since the grant is opened, or the lock given up, after this.
 * A worker may also see what is said later: that it need not write the sample.
 */
static void state_views(struct tsi_production *p)
{
	uint32_t views = 0;

	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		uint64_t joint = tsi_membership_joint(p->membership, i);

		if (joint != TSI_NEVER)
			views |= 1u << i;
		/* Relaxed: the holder of the lock alone writes it. */
		if (joint !=
		    atomic_load_explicit(&p->joint[i], memory_order_relaxed))
			atomic_store_explicit(&p->joint[i], joint,
					      memory_order_relaxed);
	}
	/* Release pairs with tsi_production_views(): a worker that sees that a
	 * view has begun again sees where it begins now. */
	atomic_store_explicit(&p->views, views, memory_order_release);
}

/* Samples that may be claimed without the lock.  Also says from which head on
 * it is needed: the end of the stream, or the last one before a jump. */
static uint64_t to_grant(struct tsi_production *p)
{
	const struct tsi_membership *m = p->membership;
	uint64_t claimed = tsi_membership_claimed(m, 0);

	p->lock_at =
		tsi_membership_jumping(m) ? claimed : tsi_membership_end(m);
	tsi_grant_move(&p->grant, claimed);
	if (p->stopped || tsi_gate_failure(p->gate))
		return 0;
	return tsi_membership_limit(m, 0) - claimed;
}

/* The lock is given up; false: samples were published first. */
static bool give_up_lock(void *arg)
{
	struct tsi_production *p = arg;
	bool as_it_was = true;

	state_views(p);
	for (;;) {
		uint64_t n = to_grant(p);
		uint32_t turn = HELD;

		/* Release pairs with take_turn(). */
		if (atomic_compare_exchange_strong_explicit(
			    &p->turn, &turn, 0, memory_order_release,
			    memory_order_relaxed)) {
			tsi_grant_open(&p->grant, n);
			return as_it_was;
		}
		look_again(p);
		if (publish_head(p)) {
			tsi_gate_base_moved(p->gate);
			state_views(p);
			as_it_was = false;
		}
	}
}

static const struct tsi_sync_ops around = { .stop = stop,
					    .go_on = give_up_lock };

int tsi_production_init(struct tsi_production *p, uint64_t capacity,
			struct tsi_sync *sync, struct tsi_membership *m,
			struct tsi_gate *gate)
{
	p->sync = sync;
	p->membership = m;
	p->gate = gate;
	p->capacity = capacity;
	p->lock_at = TSI_NEVER;
	tsi_grant_init(&p->grant, tsi_membership_claimed(m, 0));
	for (unsigned i = 0; i < TSI_VIEWS; i++)
		atomic_init(&p->joint[i], TSI_NEVER);
	p->done = calloc(capacity, sizeof(*p->done));
	if (!p->done)
		return tsi_err(TSOCK_ENOMEM, "no memory for a ring of %llu",
			       (unsigned long long)capacity);
	tsi_sync_set_ops(sync, &around, p);
	return 0;
}

void tsi_production_fini(struct tsi_production *p)
{
	free((void *)p->done);
}

/* ---- workers ---- */

unsigned tsi_production_claim(struct tsi_production *p, unsigned want,
			      uint64_t *first)
{
	unsigned n = tsi_grant_take(&p->grant, want, first);

	/* Relaxed: a hint.  The thread that has the lock opens a grant at the
	 * end; to take the lock then would close that for the others. */
	if (n || !(atomic_load_explicit(&p->turn, memory_order_relaxed) & HELD))
		return n;
	tsi_sync_pass(p->sync);
	return tsi_grant_take(&p->grant, want, first);
}

uint32_t tsi_production_views(const struct tsi_production *p, uint64_t s)
{
	/* Acquire pairs with state_views(). */
	uint32_t all = atomic_load_explicit(&p->views, memory_order_acquire);
	uint32_t views = 0;

	for (unsigned i = 1; all >> i; i++)
		/* Relaxed: ordered by the claim, or as above. */
		if (all >> i & 1 &&
		    s >= atomic_load_explicit(&p->joint[i],
					      memory_order_relaxed))
			views |= 1u << i;
	return views;
}

void tsi_production_commit(struct tsi_production *p, uint64_t first,
			   unsigned count)
{
	uint64_t slot = first % p->capacity;
	bool tell = false;

	for (unsigned k = 0; k < count; k++) {
		/* Release pairs with is_done(). */
		atomic_store_explicit(&p->done[slot], 1, memory_order_release);
		slot = next_slot(p, slot);
	}
	if (!take_turn(p))
		return;
	do
		tell |= publish_head(p) && needs_lock(p);
	while (!give_turn(p));
	if (!tell)
		return;
	tsi_sync_lock(p->sync);
	tsi_gate_base_moved(p->gate);
	tsi_sync_unlock(p->sync);
}

void tsi_production_set_bad_files(struct tsi_production *p, uint64_t bad_files)
{
	atomic_store(&p->bad_files, bad_files);
}

void tsi_production_count(struct tsi_production *p, uint64_t read_bytes,
			  uint64_t bad_samples)
{
	/* Counters: no other memory hangs on them. */
	atomic_fetch_add_explicit(&p->read_bytes, read_bytes,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&p->bad_samples, bad_samples,
				  memory_order_relaxed);
}

/* ---- with the lock ---- */

void tsi_production_stop(struct tsi_production *p)
{
	p->stopped = true;
}

void tsi_production_stats(const struct tsi_production *p,
			  struct tsock_stats *st)
{
	st->produced = p->produced;
	st->read_bytes = atomic_load(&p->read_bytes);
	st->bad_samples = atomic_load(&p->bad_samples);
	st->bad_files = atomic_load(&p->bad_files);
}
