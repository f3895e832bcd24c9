/* SPDX-License-Identifier: MIT */
/*
 * names.c - which row of a data set has a name: a hash table of all of them.
 */
#include "data/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/format.h"

#define NAME_MAX_LEN 8192 /* of a path, ": " and a name in a tar file */
#define TAR ".tar: "

/* Names of one row: in full, without the shard, and both without extension. */
#define SPELLINGS 4

struct slot {
	uint64_t hash;
	uint64_t row; /* from 1; 0: the slot is free */
	bool several;
};

struct tsi_names {
	const struct tsi_format *format;
	const struct tsi_table *table;
	uint64_t mask;
	struct slot slot[];
};

/*
 * Spelling k of a row, written to `to` if it isn't in the table as it is; *len
 * becomes its length.  NULL: the row has no such spelling.
 */
static const char *spell(const struct tsi_names *n, uint64_t row, unsigned k,
			 char to[NAME_MAX_LEN], size_t *len)
{
	struct tsi_location at;
	const char *name, *shard, *last;

	tsi_format_locate(n->format, n->table, row, &at);
	name = at.member ? at.member : at.path;
	/* A pack's own files are no part of a name. */
	if (at.member && !tsi_format_keeps_index(n->format)) {
		snprintf(to, NAME_MAX_LEN, "%s: %s", at.path, at.member);
		name = to;
	}
	shard = at.member ? strstr(name, TAR) : NULL;
	if (k > 0 && !shard)
		return NULL;
	if (k & 1)
		name = shard + strlen(TAR);
	*len = strlen(name);
	if (k & 2) {
		last = strrchr(shard + strlen(TAR), '/');
		last = last ? last + 1 : shard + strlen(TAR);
		*len = (size_t)(last - name) + strcspn(last, ".");
	}
	return name;
}

static uint64_t place(const struct tsi_names *n, uint64_t hash)
{
	uint64_t i = hash & n->mask;

	while (n->slot[i].row && n->slot[i].hash != hash)
		i = (i + 1) & n->mask;
	return i;
}

static void put(struct tsi_names *n, uint64_t row)
{
	char buf[NAME_MAX_LEN];

	for (unsigned k = 0; k < SPELLINGS; k++) {
		size_t len;
		const char *name = spell(n, row, k, buf, &len);
		struct slot *s;
		uint64_t hash;

		if (!name)
			return;
		hash = tsi_hash(name, len, 0);
		s = &n->slot[place(n, hash)];
		if (!s->row)
			*s = (struct slot){ .hash = hash, .row = row + 1 };
		else if (s->row != row + 1)
			s->several = true;
	}
}

int tsi_names_create(const struct tsi_format *f, const struct tsi_table *t,
		     struct tsi_names **out)
{
	uint64_t count = tsi_table_count(t), slots = 16;
	struct tsi_location first;
	struct tsi_names *n;

	tsi_format_locate(f, t, 0, &first);
	while (slots < 2 * count * (first.member ? SPELLINGS : 1))
		slots *= 2;
	n = calloc(1, sizeof(*n) + slots * sizeof(n->slot[0]));
	if (!n)
		return tsi_err(TSOCK_ENOMEM, "no memory for a selection");
	n->format = f;
	n->table = t;
	n->mask = slots - 1;
	for (uint64_t i = 0; i < count; i++)
		put(n, i);
	*out = n;
	return 0;
}

void tsi_names_destroy(struct tsi_names *n)
{
	free(n);
}

enum tsi_names_found tsi_names_find(const struct tsi_names *n, const char *name,
				    size_t len, uint64_t *row)
{
	const struct slot *s = &n->slot[place(n, tsi_hash(name, len, 0))];
	char buf[NAME_MAX_LEN];

	if (!s->row)
		return TSI_NAMES_NONE;
	for (unsigned k = 0; k < SPELLINGS; k++) {
		size_t have;
		const char *is = spell(n, s->row - 1, k, buf, &have);

		if (!is)
			break;
		if (have != len || memcmp(is, name, len) != 0)
			continue;
		*row = s->row - 1;
		return s->several ? TSI_NAMES_SEVERAL : TSI_NAMES_ONE;
	}
	return TSI_NAMES_NONE;
}

void tsi_names_example(const struct tsi_names *n, uint64_t row,
		       char to[TSI_NAMES_EXAMPLE])
{
	char buf[NAME_MAX_LEN];
	size_t len;
	const char *name = spell(n, row, 0, buf, &len);

	snprintf(to, TSI_NAMES_EXAMPLE, "%s", name);
}
