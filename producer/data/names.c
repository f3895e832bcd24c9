/* SPDX-License-Identifier: MIT */
/*
 * names.c - which row of a data set has a name: a hash table of all of them.
 */
#include "data/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/format.h"

#define NAME_MAX_LEN 8192 /* of a path, ": " and a name in a tar file */
#define TAR ".tar: "

_Static_assert(NAME_MAX_LEN >= TSI_PATH, "a path has room in a name");

/*
 * Names of one row: in full, without the shard, and both without extension; of a
 * file, in full and without extension.
 */
#define SPELLINGS 4

/* A slot's row counts from 1; 0: the slot is free. */
#define ROW (UINT64_MAX >> 1)
#define SEVERAL (~ROW) /* more rows have the name */

struct slot {
	uint64_t hash;
	uint64_t row;
};

struct tsi_names {
	const struct tsi_format *format;
	const struct tsi_table *table;
	uint64_t mask;
	struct slot slot[];
};

struct spelling {
	const char *name; /* not ended by a NUL */
	size_t len;
};

/* How long what stands behind the first dot of the last part is, with it. */
static size_t extension(const char *name)
{
	const char *last = strrchr(name, '/');

	last = last ? last + 1 : name;
	return strlen(last) - strcspn(last, ".");
}

/*
 * The spellings of a row, the first of which is ended by a NUL; how many they
 * are.  They lie in the table, or in buf.
 */
static unsigned spell(const struct tsi_names *n, uint64_t row,
		      char buf[NAME_MAX_LEN], struct spelling to[SPELLINGS])
{
	struct tsi_location at;
	const char *full, *name;
	size_t len, shard, ext;

	tsi_format_locate(n->format, n->table, row, &at);
	full = at.member ? at.member : tsi_location_path(&at, buf);
	/* A pack's own files are no part of a name. */
	if (at.member && !tsi_format_keeps_index(n->format)) {
		snprintf(buf, NAME_MAX_LEN, "%s: %s", at.file, at.member);
		full = buf;
	}
	len = strlen(full);
	to[0] = (struct spelling){ full, len };
	name = at.member ? strstr(full, TAR) : NULL;
	if (!name) {
		/*
		 * As VOC's lists have files, without the extension, unless it
		 * could be read as a name and a weight: "a.png 5.png".
		 */
		ext = extension(full);
		if (at.member || !ext || strrchr(full, '.') != full + len - ext)
			return 1;
		to[1] = (struct spelling){ full, len - ext };
		return 2;
	}
	name += strlen(TAR);
	shard = (size_t)(name - full);
	ext = extension(name);
	to[1] = (struct spelling){ name, len - shard };
	to[2] = (struct spelling){ full, len - ext };
	to[3] = (struct spelling){ name, len - shard - ext };
	return SPELLINGS;
}

static uint64_t place_of(const struct tsi_names *n, uint64_t hash)
{
	uint64_t i = hash & n->mask;

	while (n->slot[i].row && n->slot[i].hash != hash)
		i = (i + 1) & n->mask;
	return i;
}

static void put_row(struct tsi_names *n, uint64_t row)
{
	char buf[NAME_MAX_LEN];
	struct spelling is[SPELLINGS];
	unsigned k = spell(n, row, buf, is);

	while (k-- > 0) {
		uint64_t hash = tsi_hash(is[k].name, is[k].len, 0);
		struct slot *s = &n->slot[place_of(n, hash)];

		if (!s->row)
			*s = (struct slot){ .hash = hash, .row = row + 1 };
		else if ((s->row & ROW) != row + 1)
			s->row |= SEVERAL;
	}
}

int tsi_names_create(const struct tsi_format *f, const struct tsi_table *t,
		     struct tsi_names **out)
{
	uint64_t count = tsi_table_count(t), slots = 16;
	struct tsi_location first;
	struct tsi_names *n;

	tsi_format_locate(f, t, 0, &first);
	/* At least a quarter of the slots stays free. */
	while (slots / 4 * 3 < count * (first.member ? SPELLINGS : 2))
		slots *= 2;
	n = calloc(1, sizeof(*n) + slots * sizeof(n->slot[0]));
	if (!n)
		return tsi_err(TSOCK_ENOMEM, "no memory for a selection");
	n->format = f;
	n->table = t;
	n->mask = slots - 1;
	for (uint64_t i = 0; i < count; i++)
		put_row(n, i);
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
	const struct slot *s = &n->slot[place_of(n, tsi_hash(name, len, 0))];
	uint64_t at = (s->row & ROW) - 1;
	struct spelling is[SPELLINGS];
	char buf[NAME_MAX_LEN];
	unsigned k;

	if (!s->row)
		return TSI_NAMES_NONE;
	k = spell(n, at, buf, is);
	while (k-- > 0) {
		if (is[k].len != len || memcmp(is[k].name, name, len) != 0)
			continue;
		*row = at;
		return s->row & SEVERAL ? TSI_NAMES_SEVERAL : TSI_NAMES_ONE;
	}
	return TSI_NAMES_NONE;
}

const char *tsi_names_key(const struct tsi_format *f, const struct tsi_table *t,
			  uint64_t row, char text[TSI_PATH], size_t *len)
{
	struct tsi_location at;
	const char *name, *tar;

	tsi_format_locate(f, t, row, &at);
	name = at.member ? at.member : tsi_location_path(&at, text);
	*len = strlen(name);
	if (!at.member)
		return name;
	if (tsi_format_keeps_index(f)) {
		tar = strstr(name, TAR);
		if (!tar) /* a folder was packed */
			return name;
		name = tar + strlen(TAR);
	}
	*len = strlen(name) - extension(name);
	return name;
}

void tsi_names_example(const struct tsi_names *n, uint64_t row,
		       char to[TSI_NAMES_EXAMPLE])
{
	struct spelling is[SPELLINGS];
	char buf[NAME_MAX_LEN];

	spell(n, row, buf, is);
	snprintf(to, TSI_NAMES_EXAMPLE, "%s", is[0].name);
}
