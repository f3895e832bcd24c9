/* SPDX-License-Identifier: MIT */
/*
 * resident.c - samples of a ring in host memory that lie in a GPU's memory too.
 *
 * Each sample has one owner: the table, until a stage takes the sample, and
 * that stage until its copy has ended.  Memory whose last sample has lost its
 * owner is given back.
 */
#include "stage/resident.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"

#define DEVICES 64 /* samples on a GPU of a higher number aren't kept */

struct tsi_resident_held {
	struct tsi_resident r;
	unsigned owned;                 /* its samples that have an owner */
	struct tsi_resident_held *next; /* of those to be given back */
};

struct tsi_residents {
	pthread_mutex_t lock;
	uint64_t capacity;
	unsigned stages[DEVICES]; /* that take samples from a GPU */
	_Atomic uint64_t kept;    /* samples of which the table is the owner */
	struct tsi_resident_held *at[]; /* by sample, modulo the capacity */
};

int tsi_residents_create(uint64_t capacity, struct tsi_residents **out)
{
	struct tsi_residents *t;

	t = calloc(1,
		   sizeof(*t) + capacity * sizeof(struct tsi_resident_held *));
	if (!t)
		return tsi_err(TSOCK_ENOMEM, "no memory for a table of %llu",
			       (unsigned long long)capacity);
	pthread_mutex_init(&t->lock, NULL);
	t->capacity = capacity;
	*out = t;
	return 0;
}

/* ---- owners; with the lock held ---- */

static void disown(struct tsi_resident_held *h, struct tsi_resident_held **done)
{
	if (--h->owned)
		return;
	h->next = *done;
	*done = h;
}

/* What the table has at that place. */
static void clear(struct tsi_residents *t, uint64_t at,
		  struct tsi_resident_held **done)
{
	struct tsi_resident_held *h = t->at[at];

	if (!h)
		return;
	t->at[at] = NULL;
	t->kept--;
	disown(h, done);
}

static bool has(const struct tsi_resident_held *h, uint64_t sample)
{
	return h && sample - h->r.first < h->r.count;
}

/* ---- giving back; without the lock ---- */

void tsi_residents_give_back(struct tsi_resident_held *done)
{
	while (done) {
		struct tsi_resident_held *h = done;

		done = h->next;
		h->r.release(h->r.arg);
		free(h);
	}
}

void tsi_residents_destroy(struct tsi_residents *t)
{
	struct tsi_resident_held *done = NULL;

	if (!t)
		return;
	for (uint64_t i = 0; i < t->capacity; i++)
		clear(t, i, &done);
	tsi_residents_give_back(done);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- for the threads that make samples ---- */

static bool wanted(const struct tsi_residents *t, unsigned device)
{
	return device < DEVICES && t->stages[device];
}

struct tsi_resident_held *tsi_residents_keep(struct tsi_residents *t,
					     const struct tsi_resident *r)
{
	struct tsi_resident_held *h = malloc(sizeof(*h)), *done = NULL;

	/* Without memory to note it by, the ring has to do. */
	if (!h) {
		r->release(r->arg);
		return tsi_residents_forget(t, r->first, r->count);
	}
	/* One more owner, until each sample has its own. */
	*h = (struct tsi_resident_held){ .r = *r, .owned = 1 };
	pthread_mutex_lock(&t->lock);
	for (uint64_t q = r->first; q < r->first + r->count; q++) {
		clear(t, q % t->capacity, &done);
		if (!wanted(t, r->device))
			continue;
		t->at[q % t->capacity] = h;
		t->kept++;
		h->owned++;
	}
	disown(h, &done);
	pthread_mutex_unlock(&t->lock);
	return done;
}

struct tsi_resident_held *tsi_residents_forget(struct tsi_residents *t,
					       uint64_t first, unsigned count)
{
	struct tsi_resident_held *done = NULL;

	/* What could be stale was kept before these samples were claimed. */
	if (!t->kept)
		return NULL;
	pthread_mutex_lock(&t->lock);
	for (uint64_t q = first; q < first + count; q++)
		clear(t, q % t->capacity, &done);
	pthread_mutex_unlock(&t->lock);
	return done;
}

/* ---- for stages ---- */

void tsi_residents_attach(struct tsi_residents *t, unsigned device)
{
	if (!t || device >= DEVICES)
		return;
	pthread_mutex_lock(&t->lock);
	t->stages[device]++;
	pthread_mutex_unlock(&t->lock);
}

void tsi_residents_detach(struct tsi_residents *t, unsigned device)
{
	struct tsi_resident_held *done = NULL;

	if (!t || device >= DEVICES)
		return;
	pthread_mutex_lock(&t->lock);
	t->stages[device]--;
	for (uint64_t i = 0; i < t->capacity && !t->stages[device]; i++)
		if (t->at[i] && t->at[i]->r.device == device)
			clear(t, i, &done);
	pthread_mutex_unlock(&t->lock);
	tsi_residents_give_back(done);
}

void tsi_residents_take(struct tsi_residents *t, unsigned device,
			uint64_t first, unsigned count,
			struct tsi_resident_held **held)
{
	if (!t || !t->kept)
		return;
	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < count; i++) {
		struct tsi_resident_held **at =
			&t->at[(first + i) % t->capacity];

		if (!has(*at, first + i) || (*at)->r.device != device)
			continue;
		held[i] = *at;
		*at = NULL;
		t->kept--;
	}
	pthread_mutex_unlock(&t->lock);
}

const uint8_t *tsi_resident_at(const struct tsi_resident_held *held,
			       unsigned field, uint64_t sample)
{
	if (!held || !held->r.data[field])
		return NULL;
	return held->r.data[field] +
	       (sample - held->r.first) * held->r.bytes[field];
}

void tsi_residents_drop(struct tsi_residents *t,
			struct tsi_resident_held **held, unsigned count)
{
	struct tsi_resident_held *done = NULL;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < count; i++) {
		if (held[i])
			disown(held[i], &done);
		held[i] = NULL;
	}
	pthread_mutex_unlock(&t->lock);
	tsi_residents_give_back(done);
}
