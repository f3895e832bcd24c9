/* SPDX-License-Identifier: MIT */
/*
 * epochs.c - the orders of the epochs that are being read.
 *
 * What can be evaluated at a place (order/places.h) is, by each thread for
 * itself.  A piece that is an array is kept whole, a few at a time.  One thread
 * at a time makes one, which holds up only those that want it, or one that has
 * to be made after it.  The others look theirs up with no lock: a slot has a
 * version, and what was read counts if the version was the same before and
 * after.
 *
 * Large arrays are made by a thread of their own, once half of the one before
 * has been asked for.  Only where nobody could know of a piece beforehand, as in
 * the first epoch, is it made by who asks for it.
 */
#include "data/epochs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/thread.h"
#include "order/places.h"

#define NONE UINT64_MAX /* no epoch has this number */
#define MIN_SLOTS 2     /* the current, the next */
#define MAX_SLOTS 256   /* short pieces: workers spread over many */
#define SLOTS_ITEMS (1u << 20)
#define TORCH_MARKS 64
#define SHORT 4096 /* made sooner than another thread wakes up */
#define RUN 256    /* positions that are found at once */

struct slot {
	_Atomic uint64_t version; /* odd while a piece is being written */
	_Atomic uint64_t epoch;   /* of which it has this segment */
	_Atomic uint32_t segment;
	_Atomic bool prepared; /* a thread is about to make its next one */
	_Atomic uint32_t *item;
};

/* torch's generator as it stands at the start of an epoch. */
struct mark {
	uint64_t epoch;
	struct tsi_mt19937 mt;
};

/* The thread that makes pieces ahead. */
struct maker {
	pthread_mutex_t lock;
	pthread_cond_t asked; /* or closing */
	struct tsi_order_piece piece;
	bool wanted, started, closing;
	pthread_t id;
};

struct tsi_epochs {
	struct tsi_order_opts order;
	struct tsi_places places; /* not of a sequential order */
	uint64_t longest;         /* array; 0: there are none */
	struct slot slot[MAX_SLOTS];
	unsigned nslots;
	pthread_mutex_t lock; /* of who makes a piece */
	/* Under the lock: a piece, to be copied.  NULL: pieces are so long that
	 * memory for that is claimed each time. */
	uint32_t *made;
	/* Likewise; torch, not sharded: epoch e in e % TORCH_MARKS. */
	struct mark *mark;
	struct maker maker;
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

static struct slot *slot_of(struct tsi_epochs *e,
			    const struct tsi_order_piece *at)
{
	return &e->slot[(at->epoch * e->order.segments + at->segment) %
			e->nslots];
}

/* With the lock. */
static void write_slot(struct slot *s, const struct tsi_order_piece *at,
		       const uint32_t *made)
{
	/* Relaxed: a thread that sees the piece or an item below sees it. */
	atomic_fetch_add_explicit(&s->version, 1, memory_order_relaxed);
	/* Release pairs with read_slot(): the version is odd by then. */
	atomic_store_explicit(&s->epoch, at->epoch, memory_order_release);
	atomic_store_explicit(&s->segment, at->segment, memory_order_release);
	for (uint64_t k = 0; k < at->len; k++)
		atomic_store_explicit(&s->item[k], made[k],
				      memory_order_release);
	/* Release pairs with read_slot(): all of it is there. */
	atomic_fetch_add_explicit(&s->version, 1, memory_order_release);
}

/* With the lock.  Fails with ENOMEM. */
static int make_piece(struct tsi_epochs *e, const struct tsi_order_piece *at)
{
	uint32_t *made = e->made ? e->made : malloc(at->len * sizeof(*made));

	if (!made)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to shuffle %llu samples",
			       (unsigned long long)at->len);
	if (e->order.kind == TSOCK_ORDER_TORCH)
		make_torch(e, at->epoch, made);
	else
		tsi_places_shuffle(&e->places, at, made);
	write_slot(slot_of(e, at), at, made);
	if (!e->made)
		free(made);
	return 0;
}

static void read_items(const struct slot *s, unsigned n, const uint64_t *number,
		       uint64_t *item)
{
	for (unsigned i = 0; i < n; i++)
		/* Acquire pairs with write_slot(), as in read_slot(). */
		item[i] = atomic_load_explicit(&s->item[number[i]],
					       memory_order_acquire);
}

/* Which piece it has: exact under the lock, a hint outside of it. */
static bool holds(const struct slot *s, const struct tsi_order_piece *at)
{
	/* Acquire pairs with the stores of write_slot(): if one of these or an
	 * item is newer than a version read before, that has become another. */
	return atomic_load_explicit(&s->epoch, memory_order_acquire) ==
		       at->epoch &&
	       atomic_load_explicit(&s->segment, memory_order_acquire) ==
		       at->segment;
}

/* Without the lock; false: the slot has another piece, or gets one. */
static bool read_slot(const struct slot *s, const struct tsi_order_piece *at,
		      unsigned n, const uint64_t *number, uint64_t *item)
{
	/* Acquire pairs with the end of write_slot(). */
	uint64_t version =
		atomic_load_explicit(&s->version, memory_order_acquire);

	if (version & 1 || !holds(s, at))
		return false;
	read_items(s, n, number, item);
	/* Relaxed: the loads before it order it. */
	return atomic_load_explicit(&s->version, memory_order_relaxed) ==
	       version;
}

/* number and item may be the same only without other threads. */
static int look_up(struct tsi_epochs *e, const struct tsi_order_piece *at,
		   unsigned n, const uint64_t *number, uint64_t *item)
{
	struct slot *s = slot_of(e, at);
	int err = 0;

	if (read_slot(s, at, n, number, item))
		return 0;
	pthread_mutex_lock(&e->lock);
	if (!holds(s, at))
		err = make_piece(e, at);
	/* Nobody writes it without the lock. */
	if (!err)
		read_items(s, n, number, item);
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* ------------------------------------------------------------------------
 * Ahead
 */

/* Where there is no memory, it is who asks for the piece that says so. */
static void make_ahead(struct tsi_epochs *e, const struct tsi_order_piece *at)
{
	struct slot *s = slot_of(e, at);

	pthread_mutex_lock(&e->lock);
	if (!holds(s, at))
		(void)make_piece(e, at);
	pthread_mutex_unlock(&e->lock);
	/* Relaxed: no memory hangs on it. */
	atomic_store_explicit(&s->prepared, false, memory_order_relaxed);
}

/* Wait for a piece; false: it ends. */
static bool take_piece(struct maker *m, struct tsi_order_piece *at)
{
	bool wanted;

	pthread_mutex_lock(&m->lock);
	while (!m->wanted && !m->closing)
		pthread_cond_wait(&m->asked, &m->lock);
	wanted = m->wanted && !m->closing;
	*at = m->piece;
	m->wanted = false;
	pthread_mutex_unlock(&m->lock);
	return wanted;
}

static void *make_pieces(void *arg)
{
	struct tsi_epochs *e = arg;
	struct tsi_order_piece at;

	tsi_thread_name("tsock-order");
	while (take_piece(&e->maker, &at))
		make_ahead(e, &at);
	return NULL;
}

/* Leave a piece to the thread that makes them; false: there is none. */
static bool hand_over(struct tsi_epochs *e, const struct tsi_order_piece *at)
{
	struct maker *m = &e->maker;
	bool started;

	pthread_mutex_lock(&m->lock);
	if (!m->started)
		m->started = !tsi_thread_try(&m->id, make_pieces, e);
	started = m->started;
	/* One that it hasn't come to yet has been left behind by now. */
	if (started && m->wanted)
		atomic_store_explicit(&slot_of(e, &m->piece)->prepared, false,
				      memory_order_relaxed);
	if (started) {
		m->piece = *at;
		m->wanted = true;
		pthread_cond_signal(&m->asked);
	}
	pthread_mutex_unlock(&m->lock);
	return started;
}

static void stop_maker(struct maker *m)
{
	pthread_mutex_lock(&m->lock);
	m->closing = true;
	pthread_cond_signal(&m->asked);
	pthread_mutex_unlock(&m->lock);
	if (m->started)
		pthread_join(m->id, NULL);
	pthread_cond_destroy(&m->asked);
	pthread_mutex_destroy(&m->lock);
}

/* What is read after this piece; false: nothing, or nothing that is made. */
static bool next_piece(const struct tsi_epochs *e,
		       const struct tsi_order_piece *at,
		       struct tsi_order_piece *next)
{
	bool same = tsi_order_is_dealt(&e->order) &&
		    at->segment + 1 < e->order.segments;
	uint64_t epoch = at->epoch + !same;

	if (epoch == NONE)
		return false;
	*next = tsi_places_piece(&e->places, epoch,
				 same ? at->from + at->len : 0);
	return tsi_places_is_array(&e->places, next);
}

/* Have the next piece made before all threads need it at once. */
static void prepare_next(struct tsi_epochs *e, const struct tsi_order_piece *at)
{
	struct tsi_order_piece next;
	struct slot *s;

	if (!next_piece(e, at, &next))
		return;
	s = slot_of(e, &next);
	/* Relaxed: no memory hangs on it. */
	if (holds(s, &next) ||
	    atomic_exchange_explicit(&s->prepared, true, memory_order_relaxed))
		return;
	if (next.len <= SHORT || !hand_over(e, &next))
		make_ahead(e, &next);
}

/* In the second half of an epoch's positions, or of a dealt piece's? */
static bool is_late(const struct tsi_epochs *e,
		    const struct tsi_order_piece *at, uint64_t position)
{
	if (tsi_order_is_dealt(&e->order))
		return position - at->from >= at->len / 2;
	return position >= tsi_order_len(&e->order) / 2;
}

/* ------------------------------------------------------------------------
 * Once
 */

static int make_slots(struct tsi_epochs *e)
{
	uint64_t n = SLOTS_ITEMS / e->longest;
	bool all = true;

	if (e->longest < TSI_PERMUTATION_MIN) {
		e->made = malloc(e->longest * sizeof(*e->made));
		all = e->made != NULL;
	}
	n = n < MIN_SLOTS ? MIN_SLOTS : n > MAX_SLOTS ? MAX_SLOTS : n;
	for (; all && e->nslots < n; e->nslots++) {
		struct slot *s = &e->slot[e->nslots];

		s->item = malloc(e->longest * sizeof(*s->item));
		all = s->item != NULL;
		atomic_init(&s->epoch, NONE);
	}
	return all ? 0
		   : tsi_err(TSOCK_ENOMEM,
			     "no memory for the order of %llu samples: %llu "
			     "bytes are needed",
			     (unsigned long long)e->longest,
			     (unsigned long long)(e->longest * (n + 1) * 4));
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
	pthread_mutex_init(&e->maker.lock, NULL);
	pthread_cond_init(&e->maker.asked, NULL);
	if (order.kind != TSOCK_ORDER_SEQUENTIAL) {
		err = tsi_places_init(&e->places, &order);
		e->longest = tsi_places_longest(&e->places);
	}
	if (!err && e->longest)
		err = make_slots(e);
	if (!err && order.kind == TSOCK_ORDER_TORCH && !order.part.world)
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
	stop_maker(&e->maker);
	for (unsigned i = 0; i < e->nslots; i++)
		free((void *)e->slot[i].item);
	free(e->made);
	pthread_mutex_destroy(&e->lock);
	free(e->mark);
	tsi_places_fini(&e->places);
	free(e);
}

uint64_t tsi_epochs_len(const struct tsi_epochs *e)
{
	return tsi_order_len(&e->order);
}

uint64_t tsi_epochs_time(const struct tsi_epochs *e, uint64_t epoch,
			 uint64_t position)
{
	return tsi_order_time(&e->order, epoch, position);
}

void tsi_epochs_bounds(const struct tsi_epochs *e, uint64_t *bounds)
{
	for (uint32_t s = 0; s <= e->order.segments; s++)
		bounds[s] = tsi_order_bound(&e->order, s);
}

/* Of an array; number and index are apart, since a look-up may begin anew. */
static int find_kept(struct tsi_epochs *e, const struct tsi_order_piece *at,
		     const struct tsi_positions *run, unsigned n,
		     uint64_t *index)
{
	uint64_t number[RUN];

	tsi_places_numbers(&e->places, at, run, n, number);
	if (is_late(e, at, run->first))
		prepare_next(e, at);
	return look_up(e, at, n, number, index);
}

/* Up to RUN of them, *n; *n becomes how many. */
static int find_some(struct tsi_epochs *e, uint64_t epoch,
		     const struct tsi_positions *run, unsigned *n,
		     uint64_t *index)
{
	struct tsi_order_piece at =
		tsi_places_piece(&e->places, epoch, run->first);
	int err = 0;

	*n = tsi_places_numbers(&e->places, &at, run, *n, index);
	if (tsi_places_is_array(&e->places, &at))
		err = find_kept(e, &at, run, *n, index);
	else
		tsi_places_evaluate(&e->places, &at, index, *n);
	if (!err)
		tsi_places_indices(&e->places, &at, index, *n);
	return err;
}

int tsi_epochs_run(struct tsi_epochs *e, uint64_t epoch, uint64_t position,
		   unsigned n, uint64_t *index)
{
	struct tsi_positions run = { position, 1 };
	uint64_t len = tsi_order_len(&e->order);
	int err = 0;

	if (position >= len || n > len - position)
		return tsi_err(TSOCK_EARG,
			       "position %llu is outside an epoch of "
			       "%llu samples",
			       (unsigned long long)(position + n - 1),
			       (unsigned long long)len);
	if (e->order.kind == TSOCK_ORDER_SEQUENTIAL) {
		tsi_order_run(&e->order, epoch, &run, n, index);
		return 0;
	}
	while (n && !err) {
		unsigned some = n < RUN ? n : RUN;

		err = find_some(e, epoch, &run, &some, index);
		run.first += some;
		index += some;
		n -= some;
	}
	return err;
}

int tsi_epochs_at(struct tsi_epochs *e, uint64_t epoch, uint64_t position,
		  uint64_t *index)
{
	return tsi_epochs_run(e, epoch, position, 1, index);
}
