/* SPDX-License-Identifier: MIT */
/*
 * epochs.c - the orders of the epochs that are being read.
 *
 * Shuffled epochs are kept whole, a few at a time, epoch e in slot e modulo
 * their number.  One thread at a time makes an epoch, which holds up only those
 * that want it, or one that has to be made after it.  The others look theirs up
 * with no lock: a slot has a version, and what was read counts if the version
 * was the same before and after.
 */
#include "data/epochs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"

#define NONE UINT64_MAX /* no epoch has this number */
#define MIN_SLOTS 3     /* one before, the current, the next */
#define MAX_SLOTS 256   /* short epochs: workers spread over many */
#define SLOTS_ITEMS (1u << 20)
#define TORCH_MARKS 64

struct slot {
	_Atomic uint64_t version; /* odd while an epoch is being written */
	_Atomic uint64_t epoch;
	_Atomic bool prepared; /* a thread is about to make its next one */
	_Atomic uint32_t *item;
};

/* torch's generator as it stands at the start of an epoch. */
struct mark {
	uint64_t epoch;
	struct tsi_mt19937 mt;
};

struct tsi_epochs {
	struct tsi_order_opts order;
	uint32_t *dealt; /* philox with segments: items by segment */
	struct slot slot[MAX_SLOTS];
	unsigned nslots;      /* 0: sequential */
	pthread_mutex_t lock; /* of who makes an epoch */
	uint32_t *made;       /* under the lock: an epoch, to be copied */
	struct mark *
		mark; /* likewise; torch, not sharded: epoch e in e % TORCH_MARKS */
};

/* The generator at the start of an epoch, from the nearest mark before it. */
static void torch_at(struct tsi_epochs *e, uint64_t epoch,
		     struct tsi_mt19937 *mt)
{
	uint64_t at = tsi_order_torch_start(&e->order, epoch, mt);
	struct mark *m;

	for (unsigned i = 0; i < TORCH_MARKS; i++) {
		m = &e->mark[i];
		if (m->epoch != NONE && m->epoch <= epoch && m->epoch > at) {
			at = m->epoch;
			*mt = m->mt;
		}
	}
	for (; at < epoch; at++)
		tsi_order_torch_pass(&e->order, mt);
	m = &e->mark[epoch % TORCH_MARKS];
	m->epoch = epoch;
	m->mt = *mt;
}

static void make_torch(struct tsi_epochs *e, uint64_t epoch, uint32_t *item)
{
	struct tsi_mt19937 mt;

	if (e->mark)
		torch_at(e, epoch, &mt);
	else
		tsi_order_torch_start(&e->order, epoch, &mt);
	tsi_order_torch(&e->order, &mt, item);
}

/* With the lock. */
static void write_slot(struct tsi_epochs *e, struct slot *s, uint64_t epoch)
{
	uint64_t items = tsi_order_items(&e->order);

	/* Relaxed: a thread that sees the epoch or an item below sees it. */
	atomic_fetch_add_explicit(&s->version, 1, memory_order_relaxed);
	/* Release pairs with read_slot(): the version is odd by then. */
	atomic_store_explicit(&s->epoch, epoch, memory_order_release);
	for (uint64_t k = 0; k < items; k++)
		atomic_store_explicit(&s->item[k], e->made[k],
				      memory_order_release);
	/* Release pairs with read_slot(): all of it is there. */
	atomic_fetch_add_explicit(&s->version, 1, memory_order_release);
}

static void make_epoch(struct tsi_epochs *e, struct slot *s, uint64_t epoch)
{
	if (e->order.kind == TSOCK_ORDER_TORCH)
		make_torch(e, epoch, e->made);
	else
		tsi_order_philox(&e->order, e->dealt, epoch, e->made);
	write_slot(e, s, epoch);
}

/* Positions of an epoch, and their indexes: first the number of each one's item
 * in a slot, then the item. */
struct run {
	uint64_t position;
	unsigned n;
	uint64_t *index;
};

static void read_items(const struct tsi_epochs *e, const struct slot *s,
		       const struct run *r)
{
	tsi_order_run(&e->order, r->position, r->n, r->index);
	for (unsigned i = 0; i < r->n; i++)
		/* Acquire pairs with write_slot(), as in read_slot(). */
		r->index[i] = atomic_load_explicit(&s->item[r->index[i]],
						   memory_order_acquire);
}

/* Without the lock; false: the slot has another epoch, or gets one. */
static bool read_slot(const struct tsi_epochs *e, const struct slot *s,
		      uint64_t epoch, const struct run *r)
{
	/* Acquire pairs with the end of write_slot(). */
	uint64_t version =
		atomic_load_explicit(&s->version, memory_order_acquire);

	/* Acquire pairs with the stores of write_slot(): if the epoch or an item
	 * is newer than the version, the version is another one below. */
	if (version & 1 ||
	    atomic_load_explicit(&s->epoch, memory_order_acquire) != epoch)
		return false;
	read_items(e, s, r);
	/* Relaxed: the loads before it order it. */
	return atomic_load_explicit(&s->version, memory_order_relaxed) ==
	       version;
}

static bool holds(const struct slot *s, uint64_t epoch)
{
	/* Relaxed: exact under the lock, a hint outside of it. */
	return atomic_load_explicit(&s->epoch, memory_order_relaxed) == epoch;
}

/* Make the next epoch before all threads need it at once. */
static void prepare_epoch(struct tsi_epochs *e, uint64_t epoch)
{
	struct slot *s = &e->slot[epoch % e->nslots];

	/* Relaxed: no memory hangs on it. */
	if (holds(s, epoch) ||
	    atomic_exchange_explicit(&s->prepared, true, memory_order_relaxed))
		return;
	pthread_mutex_lock(&e->lock);
	if (!holds(s, epoch))
		make_epoch(e, s, epoch);
	pthread_mutex_unlock(&e->lock);
	atomic_store_explicit(&s->prepared, false, memory_order_relaxed);
}

static void look_up(struct tsi_epochs *e, uint64_t epoch, const struct run *r)
{
	struct slot *s = &e->slot[epoch % e->nslots];

	if (read_slot(e, s, epoch, r))
		return;
	pthread_mutex_lock(&e->lock);
	if (!holds(s, epoch))
		make_epoch(e, s, epoch);
	/* Nobody writes it without the lock. */
	read_items(e, s, r);
	pthread_mutex_unlock(&e->lock);
}

static int deal(struct tsi_epochs *e)
{
	uint64_t items = tsi_order_items(&e->order);

	e->dealt = malloc(items * sizeof(*e->dealt));
	if (!e->dealt)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to deal %llu samples into segments",
			       (unsigned long long)items);
	return tsi_order_deal(&e->order, e->dealt);
}

static int make_slots(struct tsi_epochs *e)
{
	uint64_t items = tsi_order_items(&e->order), n = SLOTS_ITEMS / items;

	bool all;

	n = n < MIN_SLOTS ? MIN_SLOTS : n > MAX_SLOTS ? MAX_SLOTS : n;
	e->made = malloc(items * sizeof(*e->made));
	all = e->made != NULL;
	for (; all && e->nslots < n; e->nslots++) {
		struct slot *s = &e->slot[e->nslots];

		s->item = malloc(items * sizeof(*s->item));
		all = s->item != NULL;
		atomic_init(&s->epoch, NONE);
	}
	return all ? 0
		   : tsi_err(TSOCK_ENOMEM,
			     "no memory for the order of %llu samples: %llu "
			     "bytes are needed",
			     (unsigned long long)items,
			     (unsigned long long)(items * (n + 1) * 4));
}

static int make_marks(struct tsi_epochs *e)
{
	e->mark = malloc(TORCH_MARKS * sizeof(*e->mark));
	if (!e->mark)
		return tsi_err(TSOCK_ENOMEM, "no memory for an order");
	for (unsigned i = 0; i < TORCH_MARKS; i++)
		e->mark[i].epoch = NONE;
	return 0;
}

int tsi_epochs_create(const struct tsi_order_opts *opts,
		      struct tsi_epochs **out)
{
	struct tsi_order_opts order = *opts;
	struct tsi_epochs *e;
	int err = tsi_order_check(&order);

	if (err)
		return err;
	e = calloc(1, sizeof(*e));
	if (!e)
		return tsi_err(TSOCK_ENOMEM, "no memory for an order");
	e->order = order;
	pthread_mutex_init(&e->lock, NULL);
	if (tsi_order_is_dealt(&order))
		err = deal(e);
	if (!err && order.kind != TSOCK_ORDER_SEQUENTIAL)
		err = make_slots(e);
	if (!err && order.kind == TSOCK_ORDER_TORCH && !order.sharded)
		err = make_marks(e);
	if (err) {
		tsi_epochs_destroy(e);
		return err;
	}
	*out = e;
	return 0;
}

void tsi_epochs_destroy(struct tsi_epochs *e)
{
	if (!e)
		return;
	for (unsigned i = 0; i < e->nslots; i++)
		free((void *)e->slot[i].item);
	free(e->made);
	pthread_mutex_destroy(&e->lock);
	free(e->mark);
	free(e->dealt);
	free(e);
}

uint64_t tsi_epochs_len(const struct tsi_epochs *e)
{
	return tsi_order_len(&e->order);
}

uint64_t tsi_epochs_time(const struct tsi_epochs *e, uint64_t position)
{
	return tsi_order_time(&e->order, position);
}

void tsi_epochs_bounds(const struct tsi_epochs *e, uint64_t *bounds)
{
	for (uint32_t s = 0; s <= e->order.segments; s++)
		bounds[s] = tsi_order_bound(&e->order, s);
}

int tsi_epochs_run(struct tsi_epochs *e, uint64_t epoch, uint64_t position,
		   unsigned n, uint64_t *index)
{
	const struct run r = { position, n, index };
	uint64_t len = tsi_order_len(&e->order);

	if (position >= len || n > len - position)
		return tsi_err(TSOCK_EARG,
			       "position %llu is outside an epoch of "
			       "%llu samples",
			       (unsigned long long)(position + n - 1),
			       (unsigned long long)len);
	if (e->nslots == 0) {
		tsi_order_run(&e->order, position, n, index);
		return 0;
	}
	if (position >= len / 2 && epoch + 1 != NONE)
		prepare_epoch(e, epoch + 1);
	look_up(e, epoch, &r);
	return 0;
}

int tsi_epochs_at(struct tsi_epochs *e, uint64_t epoch, uint64_t position,
		  uint64_t *index)
{
	return tsi_epochs_run(e, epoch, position, 1, index);
}
