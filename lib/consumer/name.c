/* SPDX-License-Identifier: MIT */
/*
 * name.c - the names of batches, which callers have instead of addresses.
 *
 * Names are kept in chunks that are never freed, so that any value can be
 * looked up.  Free names are in a list whose head has a count, so that it can't
 * be mistaken for an earlier head.
 */
#include "consumer/name.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/fork.h"

#define NUMBER_BITS 24 /* of a name; the others say which use */
#define NUMBERS (UINT32_C(1) << NUMBER_BITS)
#define CHUNK 1024
#define CHUNKS (NUMBERS / CHUNK)
#define TURNS (UINT64_C(1) << (64 - NUMBER_BITS))

struct tsi_name {
	_Atomic uint64_t turn; /* of its uses */
	_Atomic(struct tsock_batch *) batch;
	_Atomic unsigned generation; /* of forks */
	_Atomic uint32_t next;       /* in the list of free ones */
	uint32_t number;
};

_Static_assert(sizeof(void *) == 8, "a name is as long as a pointer");

static _Atomic(struct tsi_name *) chunk[CHUNKS];
static _Atomic uint32_t last;       /* 0 isn't used, as NULL isn't a name */
static _Atomic uint64_t free_first; /* a count above, a number below */

/* NULL: this number was never used. */
static struct tsi_name *at(uint32_t number)
{
	struct tsi_name *c;

	/* Pairs with add_chunk(). */
	c = atomic_load_explicit(&chunk[number / CHUNK], memory_order_acquire);
	return c ? &c[number % CHUNK] : NULL;
}

static bool add_chunk(uint32_t number)
{
	struct tsi_name *c = calloc(CHUNK, sizeof(*c)), *none = NULL;

	if (!c)
		return false;
	for (uint32_t i = 0; i < CHUNK; i++)
		c[i].number = number / CHUNK * CHUNK + i;
	/* Another thread may have been quicker. */
	if (!atomic_compare_exchange_strong(&chunk[number / CHUNK], &none, c))
		free(c);
	return true;
}

static struct tsi_name *take_free(void)
{
	uint64_t head = atomic_load(&free_first), next;
	struct tsi_name *n;

	do {
		if (!(uint32_t)head)
			return NULL;
		n = at((uint32_t)head);
		next = ((head >> 32) + 1) << 32 | atomic_load(&n->next);
	} while (!atomic_compare_exchange_weak(&free_first, &head, next));
	return n;
}

static struct tsi_name *make_one(void)
{
	uint32_t number = atomic_load(&last);

	do {
		if (number == NUMBERS - 1)
			return NULL;
	} while (!atomic_compare_exchange_weak(&last, &number, number + 1));
	number++;
	if (!at(number) && !add_chunk(number))
		return NULL;
	return at(number);
}

struct tsi_name *tsi_name_new(struct tsock_batch *b)
{
	struct tsi_name *n = take_free();

	if (!n)
		n = make_one();
	if (!n)
		return NULL;
	atomic_store(&n->generation, tsi_fork_generation());
	atomic_store(&n->batch, b);
	return n;
}

void tsi_name_free(struct tsi_name *n)
{
	uint64_t head = atomic_load(&free_first), next;

	if (!n)
		return;
	do {
		atomic_store(&n->next, (uint32_t)head);
		next = ((head >> 32) + 1) << 32 | n->number;
	} while (!atomic_compare_exchange_weak(&free_first, &head, next));
}

/* ---- names and uses ---- */

/* The caller got the name, so the counter orders nothing else. */
static uint64_t turn_of(const struct tsi_name *n)
{
	return atomic_load_explicit(&((struct tsi_name *)(uintptr_t)n)->turn,
				    memory_order_relaxed);
}

tsock_batch *tsi_name_of(const struct tsi_name *n)
{
	return (tsock_batch *)(uintptr_t)(turn_of(n) << NUMBER_BITS |
					  n->number);
}

/* The entry of a name that hasn't ended. */
static struct tsi_name *find_name(const tsock_batch *name)
{
	uint64_t value = (uintptr_t)name;
	struct tsi_name *n = at((uint32_t)(value % NUMBERS));

	return n && turn_of(n) == value >> NUMBER_BITS ? n : NULL;
}

struct tsock_batch *tsi_name_find(const tsock_batch *name)
{
	struct tsi_name *n = find_name(name);

	/* Written before the name was made. */
	return n ? atomic_load_explicit(&n->batch, memory_order_relaxed) : NULL;
}

struct tsock_batch *tsi_name_end(const tsock_batch *name, bool *forked)
{
	struct tsi_name *n = find_name(name);
	struct tsock_batch *b;
	uint64_t turn;

	*forked = n && tsi_fork_since(atomic_load_explicit(
			       &n->generation, memory_order_relaxed));
	if (!n || *forked)
		return NULL;
	/* Read before the use ends, since it may change then. */
	b = atomic_load_explicit(&n->batch, memory_order_relaxed);
	turn = (uintptr_t)name >> NUMBER_BITS;
	/* What was done with the batch is ordered by its references. */
	if (!atomic_compare_exchange_strong_explicit(
		    &n->turn, &turn, (turn + 1) % TURNS, memory_order_relaxed,
		    memory_order_relaxed))
		return NULL;
	return b;
}
