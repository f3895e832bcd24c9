/* SPDX-License-Identifier: MIT */
/*
 * pool.c - the worker threads: claim, read ahead, decode into the slot,
 * commit.
 */
#include "run/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/thread.h"
#include "pixel/budget.h"
#include "io/files.h"
#include "run/row.h"
#include "run/worker.h"

#define DEPTH_MAX 8
#define LOOK_MS 1000 /* after so long a path may lead to another file */

/* Samples without an image that are claimed at once, and their bytes. */
#define RUN_BYTES (256 << 10)

/* Workers that decode as much as the thread of a float32 view converts: 690 us
 * an image of 224 pixels, or 285 us from the cache, against 25 to 54 us. */
#define ONE_VIEW_FEEDS 16

struct thread {
	struct tsi_pool *pool;
	unsigned number; /* works while it is below the pool's limit */
	struct tsi_worker *worker; /* NULL: samples have no image */
	unsigned enough; /* in progress: so many are asked for no more */
	pthread_t id;
	bool started;
	/* Statistics: relaxed, they order nothing. */
	_Atomic uint64_t io_ns, decode_ns;
};

struct tsi_pool {
	tsock_server *server;
	struct tsi_budget *budget;
	struct tsi_image_cache *cache; /* NULL: there is none */
	struct tsi_io_files *files;
	struct tsi_ahead *ahead; /* NULL: nothing is read ahead */
	unsigned threads, depth;
	_Atomic unsigned limit; /* threads that may claim; written under lock */
	const struct tsi_schema *schema;
	struct tsi_sampler *sampler;
	uint64_t capacity; /* of the ring */
	pthread_mutex_t lock;
	pthread_cond_t raised; /* the limit, or the pool is closing */
	unsigned parked;       /* threads that wait for that */
	bool closing;
	_Atomic bool failed;
	char error[512];
	struct thread thread[];
};

static void count_up(_Atomic uint64_t *to, uint64_t n)
{
	/* A statistic of this thread's own: orders nothing. */
	atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

/* The first error is the one that is told. */
static void fail_pool(struct tsi_pool *p, const char *why)
{
	pthread_mutex_lock(&p->lock);
	if (!atomic_load(&p->failed)) {
		snprintf(p->error, sizeof(p->error), "%s", why);
		atomic_store(&p->failed, true);
		tsock_serve_fail(p->server, p->error);
	}
	pthread_mutex_unlock(&p->lock);
}

static void slots_of(void *arg, uint64_t seq, struct tsi_slots *out)
{
	const struct tsi_pool *p = arg;

	tsi_schema_slots(p->schema, p->server, seq, out);
}

static bool is_over_limit(const struct thread *t)
{
	/* Orders nothing: a thread may see a new limit a sample later. */
	return t->number >=
	       atomic_load_explicit(&t->pool->limit, memory_order_relaxed);
}

/*
 * Wait, with nothing in progress, until this thread may claim again; false:
 * the pool is closing.
 */
static bool park(struct thread *t)
{
	struct tsi_pool *p = t->pool;
	bool goes_on;

	pthread_mutex_lock(&p->lock);
	p->parked++;
	while (is_over_limit(t) && !p->closing)
		pthread_cond_wait(&p->raised, &p->lock);
	p->parked--;
	goes_on = !p->closing;
	pthread_mutex_unlock(&p->lock);
	return goes_on;
}

/*
 * Claim and begin samples until the worker has as many in progress as it may or
 * none can be claimed now; waits only for a worker that has none in progress.
 * A thread above the limit claims nothing.  To be told that there is none takes
 * the server's lock, so a worker that was told asks again when half of its
 * samples are finished.
 * EENDED and ESTREAM: none will ever be claimed; other errors are the worker's.
 */
static int fill_worker(struct thread *t)
{
	struct tsi_pool *p = t->pool;

	while (tsi_worker_busy(t->worker) < t->enough) {
		bool idle = tsi_worker_busy(t->worker) == 0;
		uint64_t seq;
		int n;

		if (is_over_limit(t))
			return 0;
		n = tsock_serve_claim(p->server, 1, idle ? -1 : 0, &seq);
		if (n == TSOCK_EAGAIN) {
			if (idle)
				continue;
			t->enough = (tsi_worker_busy(t->worker) + 1) / 2;
			return 0;
		}
		t->enough = p->depth;
		/* The server failed by itself: stop all workers. */
		if (n == TSOCK_ESTREAM)
			fail_pool(p, tsock_errmsg());
		if (n < 0)
			return n;
		tsi_ahead_tell(p->ahead, seq);
		n = tsi_worker_begin(t->worker, seq);
		if (n)
			return n;
	}
	return 0;
}

static int finish_sample(struct thread *t)
{
	struct tsi_pool *p = t->pool;
	struct tsi_made made;
	int err;

	err = tsi_worker_finish(t->worker, slots_of, p, &made);
	if (err)
		return err;
	tsock_serve_commit(p->server, made.seq, 1);
	tsock_serve_count(p->server, made.read_bytes, made.substituted);
	count_up(&t->io_ns, made.io_ns);
	count_up(&t->decode_ns, made.decode_ns);
	return 0;
}

/* Samples without an image: claim a run of them, and copy it. */
static int copy_run(struct tsi_pool *p, unsigned most)
{
	struct tsi_slots to;
	uint64_t first;
	unsigned done = 0;
	int n, err = 0;

	n = tsock_serve_claim(p->server, most, -1, &first);
	if (n == TSOCK_ESTREAM)
		fail_pool(p, tsock_errmsg());
	if (n < 0)
		return n == TSOCK_EAGAIN ? 0 : n;
	while (done < (unsigned)n && !err) {
		uint64_t seq = first + done;
		/* Slots lie one behind the other up to the ring's end. */
		uint64_t row = p->capacity - seq % p->capacity;
		unsigned left = (unsigned)n - done;
		unsigned some = row < left ? (unsigned)row : left;

		slots_of(p, seq, &to);
		err = tsi_row_make(p->sampler, seq, some, &to);
		done += some;
	}
	if (err)
		return err;
	tsock_serve_commit(p->server, first, (unsigned)n);
	tsock_serve_count(p->server, (uint64_t)n * tsi_schema_bytes(p->schema),
			  0);
	return 0;
}

static int copy_all(struct thread *t)
{
	uint64_t fit = RUN_BYTES / tsi_schema_bytes(t->pool->schema);
	unsigned most = fit < 1                 ? 1
			: fit > TSI_COLUMNS_RUN ? TSI_COLUMNS_RUN
						: (unsigned)fit;
	int err = 0;

	while (!err && (!is_over_limit(t) || park(t)))
		err = copy_run(t->pool, most);
	return err == TSOCK_EENDED ? 0 : err;
}

static int load_all(struct thread *t)
{
	bool ended = false;
	int err = 0;

	for (;;) {
		if (!ended && tsi_worker_busy(t->worker) == 0 &&
		    is_over_limit(t) && !park(t))
			break;
		if (!ended)
			err = fill_worker(t);
		/* Samples claimed before the end are still finished. */
		if (err == TSOCK_EENDED)
			ended = true;
		else if (err)
			break;
		err = 0;
		if (tsi_worker_busy(t->worker) == 0) {
			if (ended)
				break;
			continue; /* above the limit now */
		}
		err = finish_sample(t);
		if (err)
			break;
	}
	return err;
}

static void *work(void *arg)
{
	struct thread *t = arg;
	int err;

	tsi_thread_name("tsock-worker");
	err = t->worker ? load_all(t) : copy_all(t);
	if (err && err != TSOCK_ESTREAM)
		fail_pool(t->pool, tsock_errmsg());
	return NULL;
}

/* What workers share, and each of them. */
static int create_workers(struct tsi_pool *p, struct tsi_sampler *s,
			  const struct tsi_pool_opts *opts)
{
	int err = tsi_budget_create(opts->image_memory, &p->budget);

	if (!err && opts->cache)
		err = tsi_image_cache_create(
			tsi_index_count(tsi_sampler_index(s)), opts->cache,
			p->threads, &p->cache);
	if (!err && opts->open_files)
		err = tsi_io_files_create(opts->open_files, LOOK_MS, &p->files);
	if (!err)
		err = tsi_ahead_open(s, p->cache, &opts->ahead, &p->ahead);
	for (unsigned i = 0; i < p->threads && !err; i++) {
		p->thread[i].enough = p->depth;
		err = tsi_worker_create(s, opts->io, p->depth, p->budget,
					&p->thread[i].worker);
		if (!err)
			tsi_worker_use_files(p->thread[i].worker, p->files);
		if (!err && opts->direct)
			tsi_worker_use_direct(p->thread[i].worker);
		if (!err && p->cache)
			err = tsi_worker_use_cache(p->thread[i].worker,
						   p->cache, i);
	}
	return err;
}

/* A file that says so may be another one since the options were read. */
static int check_images(const struct tsi_pool_opts *o,
			const struct tsi_columns *c)
{
	if (!c || tsi_columns_imageless(c) != (o->schema->image >= 0))
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "the data set was written again, and its samples %s "
		       "images now: start the stream again",
		       o->schema->image < 0 ? "have" : "have no");
}

bool tsi_pool_converts(unsigned threads, unsigned cpus)
{
	return threads >= cpus || threads >= ONE_VIEW_FEEDS;
}

int tsi_pool_create(struct tsi_sampler *s, const struct tsi_pool_opts *opts,
		    struct tsi_pool **out)
{
	unsigned threads = opts->threads;
	struct tsi_pool *p =
		calloc(1, sizeof(*p) + threads * sizeof(p->thread[0]));
	uint64_t depth = opts->capacity / (4 * (uint64_t)threads);
	const struct tsi_columns *c = tsi_index_columns(tsi_sampler_index(s));
	int err;

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for %u workers",
			       threads);
	p->threads = threads;
	p->sampler = s;
	p->schema = opts->schema;
	p->capacity = opts->capacity;
	p->depth = depth < 1           ? 1
		   : depth > DEPTH_MAX ? DEPTH_MAX
				       : (unsigned)depth;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->raised, NULL);
	atomic_init(&p->limit, threads);
	for (unsigned i = 0; i < threads; i++) {
		p->thread[i].pool = p;
		p->thread[i].number = i;
	}
	err = check_images(opts, c);
	if (!err && !(c && tsi_columns_imageless(c)))
		err = create_workers(p, s, opts);
	if (err) {
		tsi_pool_destroy(p);
		return err;
	}
	*out = p;
	return 0;
}

const char *tsi_pool_reader(const struct tsi_pool *p)
{
	const struct tsi_worker *w = p->thread[0].worker;
	const char *reader = w ? tsi_worker_reader(w) : NULL;

	return reader ? reader : "memory mapping";
}

const char *tsi_pool_reader_why(const struct tsi_pool *p)
{
	const struct tsi_worker *w = p->thread[0].worker;

	return w ? tsi_worker_reader_why(w) : NULL;
}

const char *tsi_pool_ahead(const struct tsi_pool *p)
{
	return tsi_ahead_how(p->ahead);
}

int tsi_pool_start(struct tsi_pool *p, tsock_server *server)
{
	int err = 0;

	p->server = server;
	for (unsigned i = 0; i < p->threads && !err; i++) {
		struct thread *t = &p->thread[i];

		errno = tsi_thread_try(&t->id, work, t);
		if (errno)
			err = tsi_err_sys("start worker %u of %u", i + 1,
					  p->threads);
		else
			t->started = true;
	}
	return err;
}

void tsi_pool_set_limit(struct tsi_pool *p, unsigned threads)
{
	pthread_mutex_lock(&p->lock);
	atomic_store_explicit(&p->limit,
			      threads < 1            ? 1
			      : threads > p->threads ? p->threads
						     : threads,
			      memory_order_relaxed);
	pthread_cond_broadcast(&p->raised);
	pthread_mutex_unlock(&p->lock);
}

unsigned tsi_pool_limit(const struct tsi_pool *p)
{
	return atomic_load_explicit(&p->limit, memory_order_relaxed);
}

int64_t tsi_pool_waits(const struct tsi_pool *p, uint64_t *file)
{
	int64_t first = 0;

	for (unsigned i = 0; i < p->threads && p->thread[i].worker; i++) {
		uint64_t of;
		int64_t since = tsi_worker_waits(p->thread[i].worker, &of);

		if (!since || (first && since >= first))
			continue;
		first = since;
		*file = of;
	}
	return first;
}

unsigned tsi_pool_parked(struct tsi_pool *p)
{
	unsigned n;

	pthread_mutex_lock(&p->lock);
	n = p->parked;
	pthread_mutex_unlock(&p->lock);
	return n;
}

const char *tsi_pool_error(struct tsi_pool *p)
{
	return atomic_load(&p->failed) ? p->error : NULL;
}

bool tsi_pool_cache(const struct tsi_pool *p, struct tsi_image_cache_stats *out)
{
	if (!p->cache)
		return false;
	tsi_image_cache_stats(p->cache, out);
	return true;
}

void tsi_pool_times(const struct tsi_pool *p, struct tsi_pool_times *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < p->threads; i++) {
		const struct thread *t = &p->thread[i];

		/* Statistics: each is right, together they are roughly so. */
		out->io_ns +=
			atomic_load_explicit(&t->io_ns, memory_order_relaxed);
		out->decode_ns += atomic_load_explicit(&t->decode_ns,
						       memory_order_relaxed);
	}
}

void tsi_pool_destroy(struct tsi_pool *p)
{
	if (!p)
		return;
	if (p->server)
		tsock_serve_stop(p->server);
	tsi_ahead_stop(p->ahead);
	if (p->budget)
		tsi_budget_close(p->budget);
	pthread_mutex_lock(&p->lock);
	p->closing = true;
	pthread_cond_broadcast(&p->raised);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->threads; i++) {
		if (p->thread[i].started)
			pthread_join(p->thread[i].id, NULL);
		tsi_worker_destroy(p->thread[i].worker);
	}
	tsi_ahead_close(p->ahead);
	tsi_io_files_destroy(p->files);
	tsi_image_cache_destroy(p->cache);
	tsi_budget_destroy(p->budget);
	pthread_cond_destroy(&p->raised);
	pthread_mutex_destroy(&p->lock);
	free(p);
}
