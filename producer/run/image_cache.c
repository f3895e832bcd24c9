/* SPDX-License-Identifier: MIT */
/*
 * image_cache.c - packed images in memory.
 *
 * A table has a pointer for each file.  Readers announce the entry that they
 * look at, and look whether the pointer is still the same; a thread that takes
 * an entry out of the table frees it only when nobody has announced
 * it.  Entries lie in a heap with the one that saves least for its bytes on
 * top.
 */
#include "run/image_cache.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* A record that is larger is not kept. */
#define LARGEST ((size_t)16 << 20)
/* How much more than another an image has to save to take its place. */
#define BETTER 1.25
#define UNKNOWN UINT32_MAX
#define REFUSED 0

struct entry {
	struct entry *next; /* of those that wait to be freed */
	double worth;       /* microseconds for each byte */
	uint64_t file;
	uint64_t at; /* in the heap */
	size_t len;
	uint8_t data[];
};

/* A cache line for each reader. */
struct reader {
	_Alignas(64) _Atomic(struct entry *) looks_at;
	_Atomic uint64_t hits; /* a statistic: relaxed */
};

struct tsi_image_cache {
	uint64_t files;
	uint64_t budget;
	unsigned readers;
	struct reader *reader;
	_Atomic(struct entry *) *entry;
	/*
	 * For each file, the least time that a sample has taken, in
	 * microseconds, and in the lowest bit whether there were two; or
	 * UNKNOWN, or REFUSED.
	 */
	_Atomic uint32_t *cost;
	_Atomic uint64_t used;
	_Atomic double least; /* worth of the top of the heap */
	atomic_bool full;     /* a record found no room */
	pthread_mutex_t lock;
	/* Under the lock. */
	struct entry **heap;
	uint64_t images;
	uint64_t cap;
	struct entry *retired;
};

/* ------------------------------------------------------------------------
 * The heap
 */

static void heap_put(struct tsi_image_cache *c, struct entry *e, uint64_t at)
{
	c->heap[at] = e;
	e->at = at;
}

static void sift_up(struct tsi_image_cache *c, struct entry *e)
{
	uint64_t at = e->at;

	while (at && c->heap[(at - 1) / 2]->worth > e->worth) {
		heap_put(c, c->heap[(at - 1) / 2], at);
		at = (at - 1) / 2;
	}
	heap_put(c, e, at);
}

static void sift_down(struct tsi_image_cache *c, struct entry *e)
{
	uint64_t at = e->at;

	for (;;) {
		uint64_t k = 2 * at + 1;

		if (k + 1 < c->images &&
		    c->heap[k + 1]->worth < c->heap[k]->worth)
			k++;
		if (k >= c->images || c->heap[k]->worth >= e->worth)
			break;
		heap_put(c, c->heap[k], at);
		at = k;
	}
	heap_put(c, e, at);
}

static bool push(struct tsi_image_cache *c, struct entry *e)
{
	if (c->images == c->cap) {
		uint64_t cap = c->cap * 2 + 1024;
		void *p = realloc(c->heap, cap * sizeof(*c->heap));

		if (!p)
			return false;
		c->heap = p;
		c->cap = cap;
	}
	heap_put(c, e, c->images++);
	sift_up(c, e);
	return true;
}

static struct entry *pop(struct tsi_image_cache *c)
{
	struct entry *top = c->heap[0], *last = c->heap[--c->images];

	if (c->images) {
		last->at = 0;
		sift_down(c, last);
	}
	return top;
}

/* ------------------------------------------------------------------------
 * The object
 */

/* What a file takes in the lists; the heap grows by doubling. */
static uint64_t per_file(const struct tsi_image_cache *c)
{
	return sizeof(*c->entry) + sizeof(*c->cost);
}

int tsi_image_cache_create(uint64_t files, uint64_t bytes, unsigned readers,
			   struct tsi_image_cache **out)
{
	struct tsi_image_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return tsi_err(TSOCK_ENOMEM, "no memory for a cache");
	pthread_mutex_init(&c->lock, NULL);
	c->files = files;
	c->budget = bytes;
	c->readers = readers;
	c->reader = aligned_alloc(64, readers * sizeof(*c->reader));
	c->entry = calloc(files, sizeof(*c->entry));
	c->cost = calloc(files, sizeof(*c->cost));
	if (!c->reader || !c->entry || !c->cost) {
		tsi_image_cache_destroy(c);
		return tsi_err(TSOCK_ENOMEM, "no memory for a cache");
	}
	memset((void *)c->reader, 0, readers * sizeof(*c->reader));
	for (uint64_t i = 0; i < files; i++)
		c->cost[i] = UNKNOWN;
	c->used = files * per_file(c);
	/*
	 * A mapping for each record would be more than the kernel lets a
	 * process have.
	 */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	*out = c;
	return 0;
}

void tsi_image_cache_destroy(struct tsi_image_cache *c)
{
	if (!c)
		return;
	for (uint64_t i = 0; i < c->images; i++)
		free(c->heap[i]);
	while (c->retired) {
		struct entry *e = c->retired;

		c->retired = e->next;
		free(e);
	}
	free(c->heap);
	free((void *)c->cost);
	free((void *)c->entry);
	free(c->reader);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ------------------------------------------------------------------------
 * Readers
 */

bool tsi_image_cache_has(const struct tsi_image_cache *c, uint64_t file)
{
	return atomic_load(&c->entry[file]) != NULL;
}

const uint8_t *tsi_image_cache_take(struct tsi_image_cache *c, unsigned reader,
				    uint64_t file, size_t *len)
{
	struct reader *r = &c->reader[reader];
	struct entry *e, *again = atomic_load(&c->entry[file]);

	do {
		e = again;
		atomic_store(&r->looks_at, e);
		again = atomic_load(&c->entry[file]);
	} while (e != again);
	if (!e)
		return NULL;
	/* A statistic of this thread's own: orders nothing. */
	atomic_fetch_add_explicit(&r->hits, 1, memory_order_relaxed);
	*len = e->len;
	return e->data;
}

void tsi_image_cache_give(struct tsi_image_cache *c, unsigned reader)
{
	atomic_store(&c->reader[reader].looks_at, NULL);
}

/* ------------------------------------------------------------------------
 * Putting in, taking out
 */

void tsi_image_cache_refuse(struct tsi_image_cache *c, uint64_t file)
{
	atomic_store(&c->cost[file], REFUSED);
}

static uint64_t entry_bytes(size_t len)
{
	/* And what malloc() and the heap take. */
	return sizeof(struct entry) + len + 16 + sizeof(struct entry *);
}

bool tsi_image_cache_has_room(const struct tsi_image_cache *c, uint64_t file,
			      size_t len)
{
	return !atomic_load(&c->full) && len <= LARGEST &&
	       atomic_load(&c->cost[file]) != REFUSED &&
	       !tsi_image_cache_has(c, file) &&
	       atomic_load(&c->used) + entry_bytes(len) <= c->budget;
}

bool tsi_image_cache_wants(struct tsi_image_cache *c, uint64_t file,
			   uint64_t ns, size_t len)
{
	uint32_t old = atomic_load(&c->cost[file]);
	uint64_t us = ns / 1000 + 1;
	uint32_t now = us < UINT32_MAX / 4 ? (uint32_t)us : UINT32_MAX / 4;
	bool twice = old != UNKNOWN;

	if (old == REFUSED || len > LARGEST || tsi_image_cache_has(c, file))
		return false;
	if (twice && old >> 1 < now)
		now = old >> 1;
	/* Where two threads meet here, either value will do. */
	atomic_store(&c->cost[file], now << 1 | twice);
	if (atomic_load(&c->used) + entry_bytes(len) <= c->budget)
		return true;
	return twice && now > BETTER * atomic_load(&c->least) * (double)len;
}

static bool is_looked_at(const struct tsi_image_cache *c, const struct entry *e)
{
	for (unsigned i = 0; i < c->readers; i++)
		if (atomic_load(&c->reader[i].looks_at) == e)
			return true;
	return false;
}

/* Free the entries that nobody looks at any more. */
static void sweep(struct tsi_image_cache *c)
{
	struct entry **at = &c->retired;

	while (*at) {
		struct entry *e = *at;

		if (is_looked_at(c, e)) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		atomic_fetch_sub(&c->used, entry_bytes(e->len));
		free(e);
	}
}

/* Room for so many bytes that are worth so much; false: there is none. */
static bool make_room(struct tsi_image_cache *c, uint64_t bytes, double worth)
{
	sweep(c);
	while (atomic_load(&c->used) + bytes > c->budget) {
		struct entry *e;

		atomic_store(&c->full, true);
		if (!c->images || c->heap[0]->worth * BETTER >= worth)
			return false;
		e = pop(c);
		atomic_store(&c->entry[e->file], NULL);
		e->next = c->retired;
		c->retired = e;
		sweep(c);
	}
	return true;
}

static bool put_entry(struct tsi_image_cache *c, struct entry *e)
{
	uint64_t bytes = entry_bytes(e->len);

	if (tsi_image_cache_has(c, e->file) || !make_room(c, bytes, e->worth) ||
	    !push(c, e))
		return false;
	atomic_fetch_add(&c->used, bytes);
	atomic_store(&c->entry[e->file], e);
	return true;
}

void tsi_image_cache_put(struct tsi_image_cache *c, uint64_t file,
			 const uint8_t *data, size_t len)
{
	uint32_t cost = atomic_load(&c->cost[file]);
	struct entry *e;
	bool in;

	if (cost == REFUSED || cost == UNKNOWN || len > LARGEST)
		return;
	e = malloc(sizeof(*e) + len);
	if (!e)
		return;
	*e = (struct entry){ .file = file,
			     .len = len,
			     .worth = (double)(cost >> 1) / (double)len };
	memcpy(e->data, data, len);
	pthread_mutex_lock(&c->lock);
	in = put_entry(c, e);
	if (c->images)
		atomic_store(&c->least, c->heap[0]->worth);
	pthread_mutex_unlock(&c->lock);
	if (!in)
		free(e);
}

void tsi_image_cache_stats(struct tsi_image_cache *c,
			   struct tsi_image_cache_stats *out)
{
	*out = (struct tsi_image_cache_stats){ .budget = c->budget };
	pthread_mutex_lock(&c->lock);
	out->used = atomic_load(&c->used);
	out->images = c->images;
	pthread_mutex_unlock(&c->lock);
	/* Statistics: each is right, together they are roughly so. */
	for (unsigned i = 0; i < c->readers; i++)
		out->hits += atomic_load_explicit(&c->reader[i].hits,
						  memory_order_relaxed);
}
