/* SPDX-License-Identifier: MIT */
/*
 * places.c - which sample of the data set is at a place of an epoch.
 */
#include "order/places.h"

#include <stdlib.h>

#include "base/err.h"
#include "order/shuffle.h"

static bool is_dealt(const struct tsi_places *p)
{
	return tsi_order_is_dealt(&p->order);
}

static uint64_t length(const struct tsi_places *p, uint32_t segment)
{
	return tsi_order_bound(&p->order, segment + 1) -
	       tsi_order_bound(&p->order, segment);
}

/* ------------------------------------------------------------------------
 * Once
 */

static int deal(struct tsi_places *p)
{
	uint64_t count = p->order.count;
	uint64_t key = tsi_shuffle_key(p->order.seed, TSI_SHUFFLE_DEAL);

	tsi_shuffle_words(key, 0, 0, p->deal);
	if (count >= TSI_PERMUTATION_MIN)
		return 0;
	p->dealt = malloc(count * sizeof(*p->dealt));
	if (!p->dealt)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to deal %llu samples into segments",
			       (unsigned long long)count);
	for (uint64_t i = 0; i < count; i++)
		p->dealt[i] = (uint32_t)i;
	tsi_shuffle_philox(p->dealt, count, key, 0, 0);
	return 0;
}

int tsi_places_init(struct tsi_places *p, const struct tsi_order_opts *o)
{
	*p = (struct tsi_places){ .order = *o };
	p->key = tsi_shuffle_key(o->seed, TSI_SHUFFLE_EPOCH);
	tsi_permutation_init(&p->all, o->count);
	if (!is_dealt(p))
		return 0;
	/* Segments are as long as the first, or as the last. */
	tsi_permutation_init(&p->segment[0], length(p, 0));
	tsi_permutation_init(&p->segment[1], length(p, o->segments - 1));
	return deal(p);
}

void tsi_places_fini(struct tsi_places *p)
{
	free(p->dealt);
}

/* ------------------------------------------------------------------------
 * Pieces
 */

static bool has_array(const struct tsi_places *p, uint64_t len)
{
	return p->order.kind == TSOCK_ORDER_TORCH || len < TSI_PERMUTATION_MIN;
}

uint64_t tsi_places_longest(const struct tsi_places *p)
{
	uint64_t first = p->order.count, last = first;

	if (is_dealt(p)) {
		first = length(p, 0);
		last = length(p, p->order.segments - 1);
	}
	return has_array(p, first) ? first : has_array(p, last) ? last : 0;
}

struct tsi_order_piece tsi_places_piece(const struct tsi_places *p,
					uint64_t epoch, uint64_t position)
{
	struct tsi_order_piece at = { .epoch = epoch, .len = p->order.count };
	uint64_t len, each, more;

	if (!is_dealt(p))
		return at;
	len = tsi_order_len(&p->order);
	each = len / p->order.segments;
	more = len % p->order.segments;
	at.segment = (uint32_t)(position / (each + 1));
	/* Behind `more` segments of each + 1 there are those of each. */
	if (at.segment >= more)
		at.segment = (uint32_t)((position - more) / each);
	at.from = tsi_order_bound(&p->order, at.segment);
	at.len = length(p, at.segment);
	return at;
}

bool tsi_places_is_array(const struct tsi_places *p,
			 const struct tsi_order_piece *at)
{
	return has_array(p, at->len);
}

void tsi_places_shuffle(const struct tsi_places *p,
			const struct tsi_order_piece *at, uint32_t *item)
{
	for (uint64_t i = 0; i < at->len; i++)
		item[i] = (uint32_t)i;
	tsi_shuffle_philox(item, at->len, p->key, at->epoch, at->segment);
}

/* ------------------------------------------------------------------------
 * Places
 */

/* How many of n positions are in the piece. */
static unsigned within(const struct tsi_order_piece *at,
		       const struct tsi_positions *run, unsigned n)
{
	uint64_t last = at->from + at->len - 1;
	uint64_t more =
		run->stride ? (last - run->first) / run->stride : UINT64_MAX;

	return more < n ? (unsigned)more + 1 : n;
}

unsigned tsi_places_numbers(const struct tsi_places *p,
			    const struct tsi_order_piece *at,
			    const struct tsi_positions *run, unsigned n,
			    uint64_t *x)
{
	if (!is_dealt(p)) {
		tsi_order_run(&p->order, at->epoch, run, n, x);
		return n;
	}
	n = within(at, run, n);
	for (unsigned i = 0; i < n; i++)
		x[i] = run->first - at->from + i * run->stride;
	return n;
}

static const struct tsi_permutation *
permutation_of(const struct tsi_places *p, const struct tsi_order_piece *at)
{
	if (!is_dealt(p))
		return &p->all;
	return &p->segment[p->segment[0].n != at->len];
}

void tsi_places_evaluate(const struct tsi_places *p,
			 const struct tsi_order_piece *at, uint64_t *x,
			 unsigned n)
{
	uint32_t key[TSI_PERMUTATION_KEY];

	tsi_shuffle_words(p->key, at->epoch, at->segment, key);
	tsi_permutation_run(permutation_of(p, at), key, x, n);
}

void tsi_places_indices(const struct tsi_places *p,
			const struct tsi_order_piece *at, uint64_t *x,
			unsigned n)
{
	if (!is_dealt(p))
		return;
	for (unsigned i = 0; i < n; i++)
		x[i] = tsi_order_dealt(&p->order, at->from + x[i]);
	if (!p->dealt)
		tsi_permutation_run(&p->all, p->deal, x, n);
	for (unsigned i = 0; p->dealt && i < n; i++)
		x[i] = p->dealt[x[i]];
}
