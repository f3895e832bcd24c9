/* SPDX-License-Identifier: MIT */
/*
 * picks.c - samples that are drawn with replacement.
 *
 * The alias table has a cell for each sample, of 2^32 units, or of fewer where
 * there are more than 2^32 samples, so that 64 bits count all units.  The units
 * of all cells together are dealt to the samples by their weights; a cell holds
 * its own sample's units below cut[] and those of one other sample above.  (Vose,
 * "A linear algorithm for generating random numbers with a given distribution",
 * IEEE TSE 17, 1991, fills the cells.)
 */
#include "run/picks.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/philox.h"
#include "data/format.h"

#define BLOCK 4096 /* weights that are added up before their sum is */

/* Samples' numbers: one of the two. */
struct numbers {
	uint32_t *narrow;
	uint64_t *wide; /* of more than 2^32 samples */
};

struct tsi_picks {
	uint64_t key;
	uint64_t n;           /* cells, or classes that have samples */
	unsigned bits;        /* a cell has 2^bits units */
	uint32_t *cut;        /* [n], by weights, in 2^-32 of a cell */
	struct numbers other; /* [n] */
	uint32_t *label;      /* [n], by classes */
	const struct tsi_members *members;
};

static bool make_numbers(struct numbers *v, uint64_t n, bool wide)
{
	*v = (struct numbers){ .narrow = NULL };
	if (wide)
		v->wide = calloc(n, sizeof(*v->wide));
	else
		v->narrow = calloc(n, sizeof(*v->narrow));
	return v->narrow || v->wide;
}

static void free_numbers(struct numbers *v)
{
	free(v->narrow);
	free(v->wide);
}

static void put(struct numbers *v, uint64_t at, uint64_t number)
{
	if (v->narrow)
		v->narrow[at] = (uint32_t)number;
	else
		v->wide[at] = number;
}

static uint64_t get(const struct numbers *v, uint64_t at)
{
	return v->narrow ? v->narrow[at] : v->wide[at];
}

static int make(uint64_t seed, struct tsi_picks **out)
{
	/* The seed is a key elsewhere too: see order/shuffle.c. */
	struct tsi_philox_ctr tag = { { 0x7069636bu, 0, 0, 0 } };
	struct tsi_philox_ctr k = tsi_philox(seed, tag);
	struct tsi_picks *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for --sampler");
	p->key = (uint64_t)k.v[1] << 32 | k.v[0];
	*out = p;
	return 0;
}

void tsi_picks_destroy(struct tsi_picks *p)
{
	if (!p)
		return;
	free(p->cut);
	free_numbers(&p->other);
	free(p->label);
	free(p);
}

/* ------------------------------------------------------------------------
 * By weights
 */

static int check_weight(const struct tsi_index *x, uint64_t i)
{
	char name[TSI_INDEX_SAMPLE];
	float w = tsi_index_weight(x, i);

	if (isfinite(w) && w >= 0)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "--sampler weighted: the weight of sample %" PRIu64
		       ", %s, is %g: a finite number, 0 or more, is wanted",
		       i, tsi_index_sample(x, i, name, sizeof(name)),
		       (double)w);
}

/* In blocks, so that the sum of billions is as good as that of some. */
static int sum_weights(const struct tsi_index *x, double *out)
{
	uint64_t n = tsi_index_count(x);
	double sum = 0;

	for (uint64_t from = 0; from < n; from += BLOCK) {
		uint64_t to = n - from < BLOCK ? n : from + BLOCK;
		double part = 0;

		for (uint64_t i = from; i < to; i++) {
			int err = check_weight(x, i);

			if (err)
				return err;
			part += (double)tsi_index_weight(x, i);
		}
		sum += part;
	}
	if (sum <= 0)
		return tsi_err(TSOCK_EDATA,
			       "--sampler weighted: all weights are 0, so that "
			       "no sample can be drawn");
	*out = sum;
	return 0;
}

/* Deal n cells of units to the samples.  What rounding leaves is the
 * heaviest's, which has a cell's units at least. */
static void deal_units(const struct tsi_picks *p, const struct tsi_index *x,
		       double sum, uint64_t *unit)
{
	uint64_t left = p->n << p->bits, heaviest = 0;
	double scale = (double)p->n * (double)(UINT64_C(1) << p->bits) / sum;

	for (uint64_t i = 0; i < p->n; i++) {
		unit[i] = (uint64_t)((double)tsi_index_weight(x, i) * scale);
		left -= unit[i];
		if (unit[i] > unit[heaviest])
			heaviest = i;
	}
	unit[heaviest] += left; /* modulo 2^64: it may be less than none */
}

/* todo: room for n numbers.  Samples that fill less than a cell are at its
 * beginning, the others at its end. */
static void fill_cells(struct tsi_picks *p, uint64_t *unit,
		       struct numbers *todo)
{
	const uint64_t cell = UINT64_C(1) << p->bits;
	uint64_t less = 0, more = p->n;

	for (uint64_t i = 0; i < p->n; i++)
		put(todo, unit[i] < cell ? less++ : --more, i);
	while (less > 0) {
		uint64_t a = get(todo, --less), b = get(todo, more);

		p->cut[a] = (uint32_t)(unit[a] << (32 - p->bits));
		put(&p->other, a, b);
		unit[b] -= cell - unit[a];
		if (unit[b] < cell) {
			more++;
			put(todo, less++, b);
		}
	}
	/* These have a cell each. */
	for (; more < p->n; more++)
		put(&p->other, get(todo, more), get(todo, more));
}

/* What making a table of n cells takes. */
static uint64_t bytes_of(uint64_t n, bool wide)
{
	return n * (wide ? 28 : 20);
}

/* Is there so much?  What is only promised would be killed for later. */
static int check_memory(uint64_t n, bool wide)
{
	uint64_t need = bytes_of(n, wide), have;
	char limiter[256];

	if (tsi_limits_memory("", &have, limiter, sizeof(limiter)) ||
	    need <= have)
		return 0;
	return tsi_err(TSOCK_ENOMEM,
		       "--sampler weighted: to draw from %" PRIu64
		       " samples takes %.1f MB of memory but %.1f MB are "
		       "available (by %s); choose fewer samples by --select, "
		       "or free some",
		       n, (double)need / 1e6, (double)have / 1e6, limiter);
}

static int fill_table(struct tsi_picks *p, const struct tsi_index *x, bool wide)
{
	uint64_t *unit = calloc(p->n, sizeof(*unit));
	struct numbers todo;
	bool there = make_numbers(&todo, p->n, wide);
	double sum = 0;
	int err;

	there &= make_numbers(&p->other, p->n, wide);
	p->cut = calloc(p->n, sizeof(*p->cut));
	if (!unit || !there || !p->cut)
		err = tsi_err(TSOCK_ENOMEM,
			      "no memory to draw from %" PRIu64
			      " samples by their weights: %.1f MB are needed",
			      p->n, (double)bytes_of(p->n, wide) / 1e6);
	else
		err = sum_weights(x, &sum);
	if (!err) {
		deal_units(p, x, sum, unit);
		fill_cells(p, unit, &todo);
	}
	free(unit);
	free_numbers(&todo);
	return err;
}

static int check_weighted(const struct tsi_index *x)
{
	if (tsi_index_weighs(x))
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--sampler weighted: no weights are given: write them "
		       "behind the names in --select FILE, or as the field "
		       "weight of a table, of arrays or of records");
}

unsigned tsi_picks_bits(uint64_t n)
{
	/* So that n cells are less than 2^63 units. */
	return n <= UINT32_MAX ? 32 : (unsigned)__builtin_clzll(n) - 1;
}

int tsi_picks_by_weight(const struct tsi_index *x, uint64_t seed,
			struct tsi_picks **out)
{
	return tsi_picks_in_cells(x, seed, tsi_picks_bits(tsi_index_count(x)),
				  out);
}

int tsi_picks_in_cells(const struct tsi_index *x, uint64_t seed, unsigned bits,
		       struct tsi_picks **out)
{
	uint64_t n = tsi_index_count(x);
	bool wide = bits < 32;
	struct tsi_picks *p;
	int err = check_weighted(x);

	if (!err)
		err = check_memory(n, wide);
	if (!err)
		err = make(seed, &p);
	if (err)
		return err;
	p->n = n;
	p->bits = bits;
	err = fill_table(p, x, wide);
	if (err)
		tsi_picks_destroy(p);
	else
		*out = p;
	return err;
}

/* ------------------------------------------------------------------------
 * By classes
 */

static int check_classes(const struct tsi_index *x)
{
	const struct tsi_columns *c = tsi_index_columns(x);

	if (!tsi_index_unlabelled(x))
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--sampler balanced: the samples have no classes; "
		       "%s",
		       c ? "write a table whose labels are classes, by "
			   "tsock.index(..., classes=...), or give weights "
			   "and --sampler weighted"
			 : "give weights and --sampler weighted, or a "
			   "--dataset that has classes");
}

int tsi_picks_by_class(const struct tsi_index *x, const struct tsi_members *m,
		       uint64_t seed, struct tsi_picks **out)
{
	uint32_t classes = tsi_index_classes(x);
	struct tsi_picks *p;
	int err = check_classes(x);

	if (!err)
		err = make(seed, &p);
	if (err)
		return err;
	p->members = m;
	p->label = malloc(classes * sizeof(*p->label));
	if (!p->label) {
		tsi_picks_destroy(p);
		return tsi_err(TSOCK_ENOMEM, "no memory for %u classes",
			       classes);
	}
	for (uint32_t c = 0; c < classes; c++)
		if (tsi_members_count(m, c))
			p->label[p->n++] = c;
	*out = p;
	return 0;
}

/* ------------------------------------------------------------------------
 * Draws
 */

/* Uniform below n, by 64 bits: off by less than n / 2^64. */
static uint64_t below(uint32_t low, uint32_t high, uint64_t n)
{
	uint64_t word = (uint64_t)high << 32 | low;

	return (uint64_t)((unsigned __int128)word * n >> 64);
}

uint64_t tsi_picks_at(const struct tsi_picks *p, uint64_t epoch,
		      uint64_t position)
{
	struct tsi_philox_ctr ctr = {
		{ (uint32_t)position, (uint32_t)(position >> 32),
		  (uint32_t)epoch, (uint32_t)(epoch >> 32) }
	};
	struct tsi_philox_ctr r = tsi_philox(p->key, ctr);
	uint64_t i = below(r.v[0], r.v[1], p->n);
	uint32_t label;

	if (!p->members)
		return r.v[2] < p->cut[i] ? i : get(&p->other, i);
	label = p->label[i];
	return tsi_members_at(
		p->members, label,
		below(r.v[2], r.v[3], tsi_members_count(p->members, label)));
}
