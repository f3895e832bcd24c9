/* SPDX-License-Identifier: MIT */
/*
 * check.c - one look at all bytes of a table, by several threads.
 *
 * A piece of a column is hashed and checked by one thread, so that its bytes
 * come from memory once.
 */
#include "data/columnar/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/mapped.h"
#include "data/parallel.h"
#include "tsock/common.h"

#define PIECE (256u << 10) /* bytes, or so: fits a processor's own cache */
#define HASHED 4096u       /* pieces of a column of values that are hashed */
#define RUN 64u    /* of them one behind the other, for the disk's sake */
#define BLOCK 256u /* rows of it that are copied at a time */

enum verdict {
	GOOD,
	CUT,     /* the file was cut short meanwhile */
	NO_FILE, /* a range in a file that isn't there */
	NO_BYTES,
	NO_CLASS,
	NO_END, /* of a text */
	BACKWARDS,
};

struct column {
	const struct tsi_columnar_entry *e;
	const uint8_t *data; /* the file's, or a copy */
	const struct tsi_columnar_limits *limits;
};

struct piece {
	const struct column *column;
	uint64_t first, last; /* rows */
	bool passed_by;       /* it isn't looked at */
	uint64_t hash;
	struct tsi_columnar_longest longest;
	enum verdict verdict;
	uint64_t bad; /* which row, and its number */
	int64_t value;
};

/* ---- a piece ---- */

static void condemn(struct piece *p, enum verdict v, uint64_t row,
		    int64_t value)
{
	p->verdict = v;
	p->bad = row;
	p->value = value;
}

/*
 * Loops over all rows have no branch: a number that is wrong makes a difference
 * negative, whose highest bit is kept.  Which row it is, is looked for only then.
 * Compilers make vector code of 16 bytes for any processor.
 */
#define NEGATIVE(x) ((x) >> 63)

typedef uint64_t pair __attribute__((vector_size(16)));

static pair load(const void *from)
{
	pair p;

	memcpy(&p, from, sizeof(p));
	return p;
}

static uint64_t both(pair p)
{
	return p[0] | p[1];
}

static void look_at_ranges(struct piece *p)
{
	const struct tsi_columnar_range *r = (const void *)p->column->data;
	uint64_t files = p->column->limits->files, wrong = 0;

	for (uint64_t i = p->first; i < p->last; i++)
		wrong |= (files - 1 - r[i].file) | ((uint64_t)r[i].length - 1);
	for (uint64_t i = p->first; NEGATIVE(wrong) && i < p->last; i++) {
		struct tsi_columnar_range is = r[i];

		if (is.file >= files || (!is.length && is.offset)) {
			condemn(p, is.file >= files ? NO_FILE : NO_BYTES, i,
				is.file);
			return;
		}
	}
}

/* Rows from `first` on, which were copied: what is checked is what is kept. */
static bool take_classes(struct piece *p, uint64_t first, const int64_t *label,
			 uint64_t n)
{
	const struct tsi_columnar_limits *l = p->column->limits;
	uint32_t *to = l->labels + first;
	pair wrong = { 0, 0 };

	/* What is behind the last row is 0. */
	for (uint64_t k = 0; k < n; k += 2)
		wrong |= load(label + k) | (l->classes - 1 - load(label + k));
	for (uint64_t k = 0; k < n; k++)
		to[k] = (uint32_t)label[k];
	for (uint64_t k = 0; NEGATIVE(both(wrong)) && k < n; k++) {
		if (label[k] < 0 || (uint64_t)label[k] >= l->classes) {
			condemn(p, NO_CLASS, first + k, label[k]);
			return false;
		}
	}
	return true;
}

static void look_at_classes(struct piece *p)
{
	const int64_t *label = (const void *)p->column->data;
	int64_t copy[BLOCK];

	/* Rows are taken in pairs. */
	memset(copy, 0, sizeof(copy));
	for (uint64_t i = p->first; i < p->last; i += BLOCK) {
		uint64_t n = p->last - i < BLOCK ? p->last - i : BLOCK;

		memcpy(copy, label + i, n * sizeof(*copy));
		if (!take_classes(p, i, copy, n))
			return;
	}
}

/* Where n rows from `first` on begin and the last one ends: a copy. */
struct starts {
	uint64_t at[BLOCK + 1];
	uint64_t first, n;
	uint64_t all;         /* items of the column */
	const uint8_t *texts; /* NULL: rows are none */
};

static bool is_good(const struct starts *s, uint64_t k)
{
	uint64_t from = s->at[k], end = s->at[k + 1];

	if (end < from || end > s->all)
		return false;
	return !s->texts || (end > from && !s->texts[end - 1]);
}

/*
 * Whether all rows are good, from the first one's start on, which is; *longer:
 * one has more than `most` items, or may have.
 */
static bool are_good(const struct starts *s, uint64_t most, bool *longer)
{
	pair wrong = { 0, 0 }, more = { 0, 0 };
	uint64_t least = s->texts != NULL;
	uint8_t last = 0;

	*longer = true;
	if (s->n == 1)
		return is_good(s, 0);
	/* Of an odd number one row is looked at twice. */
	for (uint64_t i = 0; i < s->n; i += 2) {
		uint64_t k = i + 2 > s->n ? s->n - 2 : i;
		pair end = load(s->at + k + 1), items = end - load(s->at + k);

		wrong |= (items - least) | (s->all - end);
		more |= most - items;
	}
	if (NEGATIVE(both(wrong)))
		return false;
	/* Each end is one of the texts' bytes. */
	for (uint64_t k = 0; s->texts && k < s->n; k++)
		last |= s->texts[s->at[k + 1] - 1];
	*longer = NEGATIVE(both(more));
	return !last;
}

static void find_longest(struct piece *p, const struct starts *s)
{
	struct tsi_columnar_longest *l = &p->longest;

	for (uint64_t k = 0; k < s->n; k++)
		if (s->at[k + 1] - s->at[k] > l->items)
			*l = (struct tsi_columnar_longest){
				s->at[k + 1] - s->at[k], s->first + k
			};
}

static bool look_at_block(struct piece *p, const struct starts *s)
{
	uint64_t most = p->longest.items, k = 0;
	bool longer = false;

	/* A difference of numbers so far apart would wrap around. */
	if (s->at[0] <= s->all && are_good(s, most, &longer)) {
		if (longer)
			find_longest(p, s);
		return true;
	}
	while (k + 1 < s->n && s->at[0] <= s->all && is_good(s, k))
		k++;
	condemn(p, p->column->e->kind == TSI_COLUMNAR_TEXT ? NO_END : BACKWARDS,
		s->first + k, 0);
	return false;
}

/* Rows that begin at numbers, in items of so many bytes; hashes them. */
static void look_at_starts(struct piece *p, size_t item)
{
	const struct tsi_columnar_entry *e = p->column->e;
	const uint64_t *at = (const void *)p->column->data;
	const uint8_t *items = p->column->data + (e->count + 1) * sizeof(*at);
	struct starts s = {
		.all = (e->bytes - (e->count + 1) * sizeof(*at)) / item,
		.texts = e->kind == TSI_COLUMNAR_TEXT ? items : NULL,
	};
	uint64_t begin = 0, end = 0;

	for (uint64_t i = p->first; i < p->last; i += s.n) {
		s.first = i;
		s.n = p->last - i < BLOCK ? p->last - i : BLOCK;
		memcpy(s.at, at + i, (s.n + 1) * sizeof(*at));
		if (!look_at_block(p, &s))
			return;
		begin = i == p->first ? s.at[0] : begin;
		end = s.at[s.n];
	}
	/* It may have been written over between two blocks. */
	if (end < begin) {
		condemn(p, s.texts ? NO_END : BACKWARDS, p->first, 0);
		return;
	}
	p->hash = tsi_hash(p->column->data + p->first * sizeof(*at),
			   (p->last - p->first) * sizeof(*at), 0);
	p->hash = tsi_hash(items + begin * item, (end - begin) * item, p->hash);
}

static void look_at_piece(void *arg)
{
	struct piece *p = arg;
	const struct tsi_columnar_entry *e = p->column->e;
	size_t bytes = tsi_columnar_item(e);

	if (p->passed_by)
		return;
	if (e->kind == TSI_COLUMNAR_TEXT || e->kind == TSI_COLUMNAR_RAGGED) {
		look_at_starts(p, bytes);
		return;
	}
	p->hash = tsi_hash(p->column->data + p->first * bytes,
			   (p->last - p->first) * bytes, 0);
	if (e->kind == TSI_COLUMNAR_RANGES && p->column->limits->files)
		look_at_ranges(p);
	if (e == p->column->limits->label)
		look_at_classes(p);
}

static int look_at_pieces(void *arg, uint64_t first, uint64_t last)
{
	struct piece *p = arg;

	for (uint64_t i = first; i < last; i++)
		if (!tsi_mapped_look(look_at_piece, &p[i]))
			p[i].verdict = CUT;
	return 0;
}

/* ---- columns ---- */

static int fail_piece(const struct tsi_columnar *c, const struct piece *p)
{
	const struct tsi_columnar_entry *e = p->column->e;
	const char *path = tsi_columnar_path(c);

	switch (p->verdict) {
	case NO_FILE:
		return tsi_err(TSOCK_EDATA,
			       "%s: row %" PRIu64 " is in file %" PRId64
			       ", and there are %" PRIu64 " files",
			       path, p->bad, p->value,
			       p->column->limits->files);
	case NO_BYTES:
		return tsi_err(TSOCK_EDATA, "%s: row %" PRIu64 " has no bytes",
			       path, p->bad);
	case NO_CLASS:
		return tsi_err(TSOCK_EDATA,
			       "%s: row %" PRIu64 " is of class %" PRId64
			       ", and there are %" PRIu64 " classes",
			       path, p->bad, p->value,
			       p->column->limits->classes);
	case NO_END:
		return tsi_columnar_fail(c, e, "has a text without an end");
	case BACKWARDS:
		return tsi_columnar_fail(
			c, e, "has a row that ends before it begins");
	case CUT:
		return tsi_columnar_fail(c, e,
					 "was cut short while it was "
					 "read");
	case GOOD:
		break;
	}
	return 0;
}

/* Rows of a piece: what is in one depends on the file alone, as hashes do. */
static uint64_t rows_of_piece(const struct tsi_columnar_entry *e)
{
	uint64_t each = e->count ? e->bytes / e->count : 0;

	return each > PIECE ? 1 : PIECE / (each ? each : 1);
}

static uint64_t pieces_of(const struct tsi_columnar_entry *e)
{
	uint64_t rows = rows_of_piece(e);

	return e->count / rows + !!(e->count % rows);
}

/*
 * Any values are good, and reading all of them may take long: of large columns
 * some pieces, evenly spread, tell one file from another.
 */
static bool passes_by(const struct column *k, uint64_t i, uint64_t n)
{
	return k->e->kind == TSI_COLUMNAR_VALUES && k->e != k->limits->label &&
	       n > HASHED && i / RUN % (n / HASHED);
}

static void divide(const struct column *k, struct piece *p)
{
	uint64_t rows = rows_of_piece(k->e), n = pieces_of(k->e);

	for (uint64_t i = 0; i < n; i++) {
		p[i] = (struct piece){ .column = k, .first = i * rows };
		p[i].last = i + 1 < n ? (i + 1) * rows : k->e->count;
		p[i].passed_by = passes_by(k, i, n);
	}
}

/* The longest row of the first piece with one so long; goes on from *hash. */
static int sum_up(const struct tsi_columnar *c, const struct piece *p,
		  uint64_t n, struct tsi_columnar_longest *longest,
		  uint64_t *hash)
{
	*longest = (struct tsi_columnar_longest){ .items = 0 };
	for (uint64_t i = 0; i < n; i++) {
		if (p[i].verdict != GOOD)
			return fail_piece(c, &p[i]);
		if (p[i].longest.items > longest->items)
			*longest = p[i].longest;
		*hash = tsi_hash(&p[i].hash, sizeof(p[i].hash), *hash);
	}
	return 0;
}

static int look_at(const struct tsi_columnar *c, const struct column *k,
		   unsigned columns, unsigned threads,
		   struct tsi_columnar_longest *longest, uint64_t *hash)
{
	struct piece *all;
	uint64_t n = 0, at = 0;
	int err = 0;

	for (unsigned i = 0; i < columns; i++)
		n += pieces_of(k[i].e);
	all = calloc(n + 1, sizeof(*all));
	if (!all)
		return tsi_err(TSOCK_ENOMEM, "no memory to check the table %s",
			       tsi_columnar_path(c));
	for (unsigned i = 0; i < columns; at += pieces_of(k[i++].e))
		divide(&k[i], all + at);
	tsi_parallel(threads, n, 1, look_at_pieces, all);
	at = 0;
	for (unsigned i = 0; i < columns && !err; at += pieces_of(k[i++].e))
		err = sum_up(c, all + at, pieces_of(k[i].e), &longest[i], hash);
	free(all);
	return err;
}

int tsi_columnar_check(struct tsi_columnar *c,
		       const struct tsi_columnar_limits *l, unsigned threads,
		       uint64_t *hash)
{
	struct column k[TSI_COLUMNAR_COLUMNS];
	unsigned n = tsi_columnar_count(c);

	for (unsigned i = 0; i < n; i++) {
		const struct tsi_columnar_entry *e = tsi_columnar_at(c, i);

		k[i] = (struct column){ e, tsi_columnar_data(c, e), l };
	}
	*hash = tsi_columnar_hash(c);
	return look_at(c, k, n, threads, tsi_columnar_longests(c), hash);
}

/* ---- copies ---- */

struct copy {
	uint8_t *to;
	const uint8_t *from;
	uint64_t bytes;
};

static int copy_pieces(void *arg, uint64_t first, uint64_t last)
{
	const struct copy *c = arg;
	uint64_t at = first * PIECE;
	uint64_t end = last * PIECE < c->bytes ? last * PIECE : c->bytes;

	return tsi_mapped_copy(c->to + at, c->from + at, end - at)
		       ? 0
		       : TSOCK_EDATA;
}

int tsi_columnar_load(const struct tsi_columnar *c,
		      const struct tsi_columnar_entry *e, unsigned threads,
		      uint64_t **out)
{
	const struct tsi_columnar_limits none = { .files = 0 };
	struct copy copy = { malloc(e->bytes), tsi_columnar_data(c, e),
			     e->bytes };
	struct column k = { e, copy.to, &none };
	struct tsi_columnar_longest longest;
	uint64_t hash = 0;
	int err;

	if (!copy.to)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for the column %s of the table %s",
			       e->name, tsi_columnar_path(c));
	if (tsi_parallel(threads, e->bytes / PIECE + 1, 1, copy_pieces, &copy))
		err = tsi_columnar_fail(c, e,
					"was cut short while it was "
					"read");
	else
		err = tsi_columnar_check_ends(c, e, copy.to);
	if (!err)
		err = look_at(c, &k, 1, threads, &longest, &hash);
	if (err)
		free(copy.to);
	else
		*out = (uint64_t *)(void *)copy.to;
	return err;
}
