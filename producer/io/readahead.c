/* SPDX-License-Identifier: MIT */
/*
 * readahead.c - which samples are read ahead, how far and in which order.
 *
 * The window is [tail, next): sequence numbers that were taken by a thread of
 * ours and not yet by a worker.  Each is charged with its bytes, first those
 * that are expected, then those that it has; the sum stays within the budget.
 */
#include "io/readahead.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/thread.h"

#define WINDOW 65536u   /* sequence numbers that may be ahead, at most */
#define BATCH 1024u     /* taken at once to be sorted */
#define EXPECTED 131072 /* bytes of a sample, before one was seen */
#define NEVER UINT64_MAX

struct item {
	struct tsi_read_request q;
	uint64_t seq;
	uint64_t bytes;
	struct tsi_readahead_place place;
	int fd;
};

struct tsi_readahead {
	struct tsi_readahead_opts o;
	unsigned most;         /* items that a thread takes at once */
	uint64_t window;       /* the longest */
	_Atomic uint64_t told; /* one more than the last that a worker took */
	/* The told at which a thread that waits is to be woken. */
	_Atomic uint64_t wake_at;
	_Atomic bool closing;
	pthread_mutex_t lock;
	pthread_cond_t more;
	/* Under the lock. */
	uint64_t tail, next;
	uint64_t ahead;         /* bytes of the window */
	uint64_t seen, samples; /* bytes of so many samples: what to expect */
	uint64_t charge[WINDOW];
	unsigned nthreads;
	pthread_t thread[TSI_READAHEAD_THREADS];
};

static uint64_t *charge_of(struct tsi_readahead *r, uint64_t seq)
{
	return &r->charge[seq % WINDOW];
}

/* Samples that workers have taken are in the window no more. */
static void drop_passed(struct tsi_readahead *r)
{
	uint64_t told = atomic_load(&r->told);

	while (r->tail < told && r->tail < r->next)
		r->ahead -= *charge_of(r, r->tail++);
	if (r->next < told)
		r->tail = r->next = told;
}

/* What the next sample will have, as far as can be said. */
static uint64_t expected(const struct tsi_readahead *r)
{
	return r->samples ? r->seen / r->samples : EXPECTED;
}

/* A thread that sorts waits until there is room for a batch. */
static uint64_t ahead_at_most(const struct tsi_readahead *r)
{
	uint64_t need = r->o.sorted ? r->o.budget / 2 : expected(r);

	return need < r->o.budget ? r->o.budget - need : 0;
}

static bool has_room(const struct tsi_readahead *r)
{
	return r->tail == r->next || (r->ahead <= ahead_at_most(r) &&
				      r->next - r->tail <= r->window / 2);
}

/* How far workers have to come until there is room. */
static uint64_t room_at(struct tsi_readahead *r)
{
	uint64_t ahead = r->ahead, at = r->tail;

	if (atomic_load(&r->told) == 0)
		return 1;
	if (r->next >= r->o.end)
		return NEVER;
	while (at < r->next &&
	       (ahead > ahead_at_most(r) || r->next - at > r->window / 2))
		ahead -= *charge_of(r, at++);
	return at;
}

/* With the lock: wait for room; false: it ends. */
static bool await_room(struct tsi_readahead *r)
{
	for (;;) {
		if (atomic_load(&r->closing))
			return false;
		drop_passed(r);
		if (atomic_load(&r->told) && r->next < r->o.end && has_room(r))
			return true;
		/*
		 * In this order, and in the other one in tell(): either told is
		 * seen here, or wake_at there.
		 */
		atomic_store(&r->wake_at, room_at(r));
		drop_passed(r);
		if (atomic_load(&r->told) >= atomic_load(&r->wake_at))
			continue;
		pthread_cond_wait(&r->more, &r->lock);
	}
}

/* Take sequence numbers, as many as may be; 0: it ends. */
static unsigned take_next(struct tsi_readahead *r, struct item *item)
{
	unsigned n = 0;

	pthread_mutex_lock(&r->lock);
	if (await_room(r))
		do {
			uint64_t bytes = expected(r);

			if (bytes > r->o.budget)
				bytes = r->o.budget;
			if (n && r->ahead + bytes > r->o.budget)
				break;
			*charge_of(r, r->next) = bytes;
			r->ahead += bytes;
			item[n++].seq = r->next++;
		} while (n < r->most && r->next < r->o.end &&
			 r->next - r->tail < r->window);
	pthread_mutex_unlock(&r->lock);
	return n;
}

/*
 * An item has so many bytes.  False: a worker is there already, or they don't
 * fit; nothing is charged for it then.
 */
static bool admit(struct tsi_readahead *r, const struct item *i)
{
	bool fits = false;
	uint64_t *charge;

	pthread_mutex_lock(&r->lock);
	if (i->bytes) {
		r->seen += i->bytes;
		r->samples++;
	}
	drop_passed(r);
	charge = charge_of(r, i->seq);
	if (i->seq >= r->tail && i->seq < r->next) {
		r->ahead -= *charge;
		fits = i->bytes && r->ahead + i->bytes <= r->o.budget;
		*charge = fits ? i->bytes : 0;
		r->ahead += *charge;
	}
	pthread_mutex_unlock(&r->lock);
	return fits;
}

/* In the order of their files' numbers: folder by folder. */
static int by_file(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return (x->q.tag > y->q.tag) - (x->q.tag < y->q.tag);
}

static int by_place(const void *a, const void *b)
{
	const struct tsi_readahead_place *x = &((const struct item *)a)->place;
	const struct tsi_readahead_place *y = &((const struct item *)b)->place;

	if (x->major != y->major)
		return x->major < y->major ? -1 : 1;
	return (x->minor > y->minor) - (x->minor < y->minor);
}

static bool is_passed(struct tsi_readahead *r, uint64_t seq)
{
	return atomic_load(&r->closing) || seq < atomic_load(&r->told);
}

static void look_at(struct tsi_readahead *r, struct item *i)
{
	i->bytes = 0;
	i->fd = -1;
	if (i->q.path && !is_passed(r, i->seq) &&
	    !r->o.ops->look(&i->q, &i->bytes, r->o.sorted ? &i->place : NULL,
			    &i->fd))
		i->bytes = 0;
}

static void ask_for(struct tsi_readahead *r, struct item *item, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!r->o.locate(r->o.arg, item[i].seq, &item[i].q))
			item[i].q.path = NULL;
	if (r->o.sorted)
		qsort(item, n, sizeof(*item), by_file);
	for (unsigned i = 0; i < n; i++)
		look_at(r, &item[i]);
	if (r->o.sorted)
		qsort(item, n, sizeof(*item), by_place);
	for (unsigned i = 0; i < n; i++)
		if (admit(r, &item[i]) && !is_passed(r, item[i].seq))
			r->o.ops->advise(&item[i].q, item[i].fd);
	for (unsigned i = 0; i < n; i++)
		if (item[i].fd >= 0)
			close(item[i].fd);
}

static void *read_ahead(void *arg)
{
	struct tsi_readahead *r = arg;
	struct item *item = calloc(r->most, sizeof(*item));
	unsigned n;

	tsi_thread_name("tsock-ahead");
	while (item && (n = take_next(r, item)) > 0)
		ask_for(r, item, n);
	free(item);
	return NULL;
}

int tsi_readahead_create(const struct tsi_readahead_opts *opts,
			 struct tsi_readahead **out)
{
	struct tsi_readahead *r = calloc(1, sizeof(*r));
	int err = 0;

	if (!r)
		return tsi_err(TSOCK_ENOMEM, "no memory to read ahead");
	r->o = *opts;
	r->most = opts->sorted ? BATCH : 1;
	r->window = opts->samples < WINDOW ? opts->samples : WINDOW;
	atomic_init(&r->wake_at, NEVER);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->more, NULL);
	while (r->nthreads < opts->threads && !err) {
		err = tsi_thread_start(&r->thread[r->nthreads], read_ahead, r);
		r->nthreads += !err;
	}
	if (err) {
		tsi_readahead_destroy(r);
		return err;
	}
	*out = r;
	return 0;
}

void tsi_readahead_tell(struct tsi_readahead *r, uint64_t seq)
{
	uint64_t told;

	if (!r)
		return;
	told = atomic_load(&r->told);
	while (told <= seq &&
	       !atomic_compare_exchange_weak(&r->told, &told, seq + 1))
		;
	if (seq + 1 < atomic_load(&r->wake_at))
		return;
	pthread_mutex_lock(&r->lock);
	atomic_store(&r->wake_at, NEVER);
	pthread_cond_broadcast(&r->more);
	pthread_mutex_unlock(&r->lock);
}

void tsi_readahead_stop(struct tsi_readahead *r)
{
	pthread_mutex_lock(&r->lock);
	atomic_store(&r->closing, true);
	pthread_cond_broadcast(&r->more);
	pthread_mutex_unlock(&r->lock);
}

void tsi_readahead_destroy(struct tsi_readahead *r)
{
	if (!r)
		return;
	tsi_readahead_stop(r);
	for (unsigned i = 0; i < r->nthreads; i++)
		pthread_join(r->thread[i], NULL);
	pthread_cond_destroy(&r->more);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
