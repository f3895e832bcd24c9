/* SPDX-License-Identifier: MIT */
/*
 * doubt.c - which rows of a scan are looked at besides those that are whatever
 * they are, and what is presumed of the others then.
 */
#include "data/doubt.h"

#include <stdlib.h>

#include "base/err.h"
#include "data/format.h"

struct class_looks {
	uint64_t files, foreign;     /* that it has */
	uint64_t passed, passed_too; /* of these, while all rows are walked */
	uint64_t good, bad;          /* of those that were looked at */
	uint32_t samples_bad;        /* of the foreign that are looked at */
};

/* A walk over all rows, with the list of bad ones beside it. */
struct walk {
	const struct tsi_doubted *d;
	struct class_looks *class_;
	uint64_t i, bad_at;
	bool bad;
	struct class_looks *c; /* of row i */
};

bool tsi_doubt_foreign(const struct tsi_doubted *d, uint64_t i)
{
	struct tsi_location at;

	tsi_format_locate(d->format, d->table, i, &at);
	return d->foreign && d->foreign(at.member ? at.member : at.file);
}

static struct walk begin_walk(const struct tsi_doubted *d,
			      struct class_looks *class_)
{
	return (struct walk){ .d = d, .class_ = class_, .i = UINT64_MAX };
}

/* To the next row; false: there is none. */
static bool next(struct walk *w)
{
	const struct tsi_table *t = w->d->table;

	if (++w->i == tsi_table_count(t))
		return false;
	w->bad = w->bad_at < tsi_table_bad_count(t) &&
		 tsi_table_bad_at(t, w->bad_at) == w->i;
	w->bad_at += w->bad;
	w->c = &w->class_[tsi_format_label(w->d->format, t, w->i)];
	return true;
}

static bool was_looked_at(const struct walk *w)
{
	struct tsi_location at;

	tsi_format_locate_bytes(w->d->format, w->d->table, w->i, &at);
	return w->bad || at.size;
}

static int count_classes(const struct tsi_doubted *d, struct class_looks **out,
			 uint64_t *foreign)
{
	struct class_looks *class_ =
		calloc(tsi_table_classes(d->table), sizeof(*class_));
	struct walk w = begin_walk(d, class_);

	*foreign = 0;
	if (!class_)
		return tsi_err(TSOCK_ENOMEM, "no memory for %u classes",
			       tsi_table_classes(d->table));
	while (next(&w)) {
		bool is = tsi_doubt_foreign(d, w.i);

		w.c->files++;
		w.c->foreign += is;
		*foreign += is;
		w.c->bad += w.bad;
		w.c->good += !w.bad && was_looked_at(&w);
	}
	*out = class_;
	return 0;
}

/* Row k of n: is it the first, the middle or the last? */
static bool is_sample(uint64_t k, uint64_t n)
{
	return k == 0 || k == n / 2 || k == n - 1;
}

/* A row of a foreign name: is it one of those that are looked at? */
static bool is_name_sample(struct walk *w)
{
	return w->c->foreign && tsi_doubt_foreign(w->d, w->i) &&
	       is_sample(w->c->passed++, w->c->foreign);
}

/* All that was looked at of the class is bad, and its names don't say why. */
static bool is_doubtful(const struct class_looks *c)
{
	return c->bad && !c->good && c->foreign < c->files;
}

/* One of up to TSI_DOUBT_LOOKS rows of a class that are evenly spread. */
static bool is_class_sample(struct walk *w)
{
	uint64_t n = w->c->files, k = w->c->passed_too++;
	uint64_t most = n < TSI_DOUBT_LOOKS ? n : TSI_DOUBT_LOOKS;

	return is_doubtful(w->c) && (k + 1) * most / n > k * most / n &&
	       !was_looked_at(w);
}

/* The rows for which it is true; at most so many for a class. */
static int collect(const struct tsi_doubted *d, struct class_looks *class_,
		   bool (*is)(struct walk *w), uint64_t **rows, uint64_t *n)
{
	struct walk w = begin_walk(d, class_);
	uint64_t room = 0;

	*rows = NULL;
	*n = 0;
	while (next(&w)) {
		if (!is(&w))
			continue;
		if (*n == room) {
			uint64_t *more;

			room = room ? 2 * room : 256;
			more = realloc(*rows, room * sizeof(**rows));
			if (!more) {
				free(*rows);
				return tsi_err(TSOCK_ENOMEM,
					       "no memory for a look at files");
			}
			*rows = more;
		}
		(*rows)[(*n)++] = w.i;
	}
	return 0;
}

static int ascending(const void *a, const void *b)
{
	uint64_t i = *(const uint64_t *)a, j = *(const uint64_t *)b;

	return (i > j) - (i < j);
}

uint64_t tsi_doubt_looks(const struct tsi_doubted *d, uint64_t some,
			 const uint64_t *others, uint64_t nothers,
			 uint64_t *which)
{
	uint64_t count = tsi_table_count(d->table), n = 0, m = 0;

	for (uint64_t k = 0; k < some; k++)
		which[n++] = k * count / some;
	for (uint64_t k = 0; k < tsi_table_bad_count(d->table); k++)
		which[n++] = tsi_table_bad_at(d->table, k);
	for (uint64_t k = 0; k < nothers; k++)
		which[n++] = others[k];
	qsort(which, n, sizeof(*which), ascending);
	for (uint64_t k = 0; k < n; k++)
		if (!m || which[k] != which[m - 1])
			which[m++] = which[k];
	return m;
}

int tsi_doubt_names(const struct tsi_doubted *d, uint64_t **rows, uint64_t *n,
		    bool *all)
{
	struct class_looks *class_;
	uint64_t foreign;
	int err = count_classes(d, &class_, &foreign);

	*rows = NULL;
	*n = 0;
	if (err)
		return err;
	*all = foreign == tsi_table_count(d->table);
	if (foreign)
		err = collect(d, class_, is_name_sample, rows, n);
	free(class_);
	return err;
}

int tsi_doubt_classes(const struct tsi_doubted *d, uint64_t **rows, uint64_t *n)
{
	struct class_looks *class_;
	uint64_t foreign;
	int err = count_classes(d, &class_, &foreign);

	*rows = NULL;
	*n = 0;
	if (err)
		return err;
	err = collect(d, class_, is_class_sample, rows, n);
	free(class_);
	return err;
}

static enum tsi_doubt judge(const struct class_looks *c)
{
	uint64_t samples = c->foreign < 3 ? c->foreign : 3;

	if (c->bad == c->files)
		return TSI_DOUBT_NONE; /* it is known */
	if (c->bad >= TSI_DOUBT_LOOKS && !c->good)
		return TSI_DOUBT_ALL;
	return samples && c->samples_bad == samples ? TSI_DOUBT_NAMES
						    : TSI_DOUBT_NONE;
}

int tsi_doubt_judge(const struct tsi_doubted *d, uint8_t **judged)
{
	uint32_t classes = tsi_table_classes(d->table);
	struct class_looks *class_ = NULL;
	uint64_t foreign = 0;
	bool any = false;
	uint8_t *made;
	struct walk w;
	int err;

	*judged = NULL;
	if (!tsi_table_bad_count(d->table))
		return 0;
	err = count_classes(d, &class_, &foreign);
	if (err)
		return err;
	w = begin_walk(d, class_);
	while (foreign && next(&w))
		if (is_name_sample(&w))
			w.c->samples_bad += w.bad;
	made = malloc(classes);
	for (uint32_t i = 0; made && i < classes; i++) {
		made[i] = (uint8_t)judge(&class_[i]);
		any |= made[i] != TSI_DOUBT_NONE;
	}
	free(class_);
	if (!made)
		return tsi_err(TSOCK_ENOMEM, "no memory for %u classes",
			       classes);
	if (any)
		*judged = made;
	else
		free(made);
	return 0;
}

bool tsi_doubt_presumes(const struct tsi_doubted *d, const uint8_t *judged,
			uint64_t class, uint64_t i)
{
	enum tsi_doubt j = (enum tsi_doubt)judged[class];
	struct tsi_location at;

	/* It has a size: it was looked at, and is good. */
	tsi_format_locate_bytes(d->format, d->table, i, &at);
	if (at.size)
		return false;
	return j == TSI_DOUBT_ALL ||
	       (j == TSI_DOUBT_NAMES && tsi_doubt_foreign(d, i));
}
