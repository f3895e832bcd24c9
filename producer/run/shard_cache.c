/* SPDX-License-Identifier: MIT */
/*
 * shard_cache.c - which shards have local copies.
 *
 * Shards are kept in lists that only grow, until the end, so that readers go
 * through them without a lock.  A copy's name, once said, stays in memory, too:
 * a reader may still have it.
 */
#include "run/shard_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/thread.h"
#include "io/shard_store.h"

#define BUCKETS 1024
#define AGAIN_NS INT64_C(1000000000) /* after which what couldn't be is tried */
#define TOUCH_MS 60000               /* after which a use is noted again */
#define FULL_MS 10000                /* after which room is looked for again */

struct shard {
	_Atomic(struct shard *) next; /* of its bucket */
	struct shard *before;         /* the one that came before it */
	_Atomic(const char *) copy;   /* NULL: the source is read */
	_Atomic int64_t used_ms;
	int64_t touched_ms; /* the thread's */
	atomic_bool given_up;
	char name[TSI_SHARD_NAME]; /* of the copy, once there was one */
	char path[];
};

struct tsi_shard_cache {
	struct tsi_shard_store *store;
	const struct tsi_index *index;
	_Atomic(struct shard *) bucket[BUCKETS];
	pthread_mutex_t
		lock; /* of who adds shards, and of the thread's sleep */
	pthread_cond_t added;
	struct shard *last;
	atomic_bool stop;
	atomic_bool said; /* that copies can't be read */
	/* The thread's: until when there is no room, and that it said so. */
	int64_t full_until_ms;
	bool full;
	bool started;
	pthread_t thread;
};

/* ---- copies ---- */

static void say_full(struct tsi_shard_cache *c)
{
	c->full_until_ms = tsi_now_ms() + FULL_MS;
	if (!c->full)
		tsi_log(TSOCK_LOG_INFO,
			"--shard-cache: the copies that were used of late "
			"leave no room for others, which are read from where "
			"they are; --shard-cache-size says how much they may "
			"take");
	c->full = true;
}

/* Copy a shard, or find its copy; false: no copy will be written again. */
static bool fetch(struct tsi_shard_cache *c, struct shard *s)
{
	const struct tsi_shard_source of = { tsi_index_root(c->index),
					     tsi_index_dirfd(c->index),
					     s->path };
	char name[TSI_SHARD_NAME];

	switch (tsi_shard_store_fetch(c->store, &of, &c->stop, name)) {
	case TSI_SHARD_THERE:
		/* Readers may have an earlier name, of the same shard. */
		if (*s->name && strcmp(s->name, name) != 0) {
			atomic_store(&s->given_up, true);
			break;
		}
		if (!*s->name)
			memcpy(s->name, name, sizeof(name));
		s->touched_ms = tsi_now_ms();
		/* Release pairs with tsi_shard_cache_use(): the name. */
		atomic_store_explicit(&s->copy, s->name, memory_order_release);
		break;
	case TSI_SHARD_NOT:
		atomic_store(&s->given_up, true);
		break;
	case TSI_SHARD_BROKEN:
		tsi_log(TSOCK_LOG_WARN,
			"--shard-cache: %s; shards that aren't there yet are "
			"read from where they are",
			tsock_errmsg());
		return false;
	case TSI_SHARD_FULL:
		say_full(c);
		break;
	case TSI_SHARD_LATER:
		break;
	}
	return true;
}

/* A copy that is used isn't the oldest: others see that by its time. */
static void touch(const struct tsi_shard_cache *c, struct shard *s)
{
	int64_t used = atomic_load(&s->used_ms);

	if (used - s->touched_ms < TOUCH_MS)
		return;
	s->touched_ms = used;
	tsi_shard_store_touch(c->store, s->name);
}

/* Go through all shards once; false: stop. */
static bool look_at_all(struct tsi_shard_cache *c, struct shard *s,
			bool *writes)
{
	for (; s && !atomic_load(&c->stop); s = s->before) {
		if (atomic_load(&s->copy))
			touch(c, s);
		else if (*writes && !atomic_load(&s->given_up) &&
			 tsi_now_ms() >= c->full_until_ms)
			*writes = fetch(c, s);
	}
	return !atomic_load(&c->stop);
}

static void *run(void *arg)
{
	struct tsi_shard_cache *c = arg;
	struct shard *last = NULL;
	bool writes = true;

	tsi_thread_name("tsock-shards");
	do {
		pthread_mutex_lock(&c->lock);
		if (last == c->last && !atomic_load(&c->stop))
			tsi_thread_wait(&c->added, &c->lock,
					tsi_now_ns() + AGAIN_NS);
		last = c->last;
		pthread_mutex_unlock(&c->lock);
	} while (look_at_all(c, last, &writes));
	return NULL;
}

/* ---- shards ---- */

static _Atomic(struct shard *) *bucket_of(struct tsi_shard_cache *c,
					  const char *path)
{
	return &c->bucket[tsi_hash(path, strlen(path), 0) % BUCKETS];
}

static struct shard *find(_Atomic(struct shard *) *at, const char *path)
{
	/* Acquire pairs with add(): what the shard is. */
	struct shard *s = atomic_load_explicit(at, memory_order_acquire);

	while (s && strcmp(s->path, path) != 0)
		s = atomic_load_explicit(&s->next, memory_order_acquire);
	return s;
}

/* NULL: there is no memory for it, and it goes without a copy. */
static struct shard *add(struct tsi_shard_cache *c, const char *path)
{
	_Atomic(struct shard *) *at = bucket_of(c, path);
	size_t len = strlen(path) + 1;
	struct shard *s;

	pthread_mutex_lock(&c->lock);
	s = find(at, path);
	if (!s && (s = calloc(1, sizeof(*s) + len))) {
		memcpy(s->path, path, len);
		s->before = c->last;
		c->last = s;
		atomic_store(&s->next, atomic_load(at));
		/* Release pairs with find(). */
		atomic_store_explicit(at, s, memory_order_release);
		pthread_cond_signal(&c->added);
	}
	pthread_mutex_unlock(&c->lock);
	return s;
}

bool tsi_shard_cache_use(struct tsi_shard_cache *c, struct tsi_read_request *q)
{
	struct shard *s;
	const char *copy;

	if (!c || !q->length)
		return false;
	s = find(bucket_of(c, q->path), q->path);
	if (!s)
		s = add(c, q->path);
	if (!s)
		return false;
	copy = atomic_load_explicit(&s->copy, memory_order_acquire);
	if (!copy)
		return false;
	/* Relaxed: orders nothing. */
	atomic_store_explicit(&s->used_ms, tsi_now_ms(), memory_order_relaxed);
	q->dirfd = tsi_shard_store_fd(c->store);
	q->path = copy;
	return true;
}

static void drop_copy(struct tsi_shard_cache *c, const char *path, int err)
{
	struct shard *s = find(bucket_of(c, path), path);

	if (!s)
		return;
	/* Another process may have displaced it: then it is copied again. */
	if (err != ENOENT) {
		atomic_store(&s->given_up, true);
		if (!atomic_exchange(&c->said, true))
			tsi_log(TSOCK_LOG_WARN,
				"--shard-cache: the copy of %s can't be read: "
				"%s; it is read from where it is",
				path, tsi_io_reader_strerror(err));
	}
	atomic_store(&s->copy, NULL);
}

bool tsi_shard_cache_failed(struct tsi_shard_cache *c, const char *path,
			    int err)
{
	/* These say nothing of the copy: it is large, or there is no memory. */
	if (err <= 0 || err == ENOMEM || err == EFBIG)
		return false;
	drop_copy(c, path, err);
	return true;
}

/* ---- the cache ---- */

int tsi_shard_cache_open(const char *folder, uint64_t bytes,
			 const struct tsi_index *x,
			 struct tsi_shard_cache **out)
{
	struct tsi_shard_cache *c = calloc(1, sizeof(*c));
	int err;

	*out = NULL;
	if (!c)
		return tsi_err(TSOCK_ENOMEM, "no memory for a cache of shards");
	err = tsi_shard_store_open(folder, bytes, &c->store);
	if (err) {
		free(c);
		if (err == TSOCK_ENOMEM)
			return err;
		tsi_log(TSOCK_LOG_WARN,
			"--shard-cache: %s; shards are read from where they "
			"are",
			tsock_errmsg());
		return 0;
	}
	c->index = x;
	pthread_mutex_init(&c->lock, NULL);
	tsi_thread_cond_init(&c->added);
	err = tsi_thread_start(&c->thread, run, c);
	c->started = !err;
	if (err)
		tsi_shard_cache_close(c);
	else
		*out = c;
	return err;
}

void tsi_shard_cache_close(struct tsi_shard_cache *c)
{
	if (!c)
		return;
	atomic_store(&c->stop, true);
	pthread_mutex_lock(&c->lock);
	pthread_cond_signal(&c->added);
	pthread_mutex_unlock(&c->lock);
	if (c->started)
		pthread_join(c->thread, NULL);
	while (c->last) {
		struct shard *s = c->last;

		c->last = s->before;
		free(s);
	}
	tsi_shard_store_close(c->store);
	pthread_cond_destroy(&c->added);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
