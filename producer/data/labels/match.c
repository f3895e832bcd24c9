/* SPDX-License-Identifier: MIT */
/*
 * match.c - which row of a list is a sample's.
 */
#include "data/labels/match.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/folder.h"
#include "data/labels/words.h"
#include "data/names.h"
#include "data/table.h"

/* How samples are called; see match.h. */
enum spelling {
	PATH,
	BELOW_ROOT,
	STEM_PATH,
	BASE,
	STEM,
	OTHER_AUDIO,
	SPELLINGS,
};

#define SEVERAL (UINT64_MAX - 1) /* samples have the name */

struct match {
	const struct tsi_labels_list *l;
	const struct tsi_format *format;
	const struct tsi_table *table;
	const char *root, *base; /* its path, and the last part of that */
	char *names; /* one behind the other; NULL: they lie in the table */
	uint64_t samples, matched;
	uint64_t *row;
	uint8_t *by;   /* [samples], the spelling that it was found by */
	uint8_t *used; /* [l->rows], a sample's */
	/* Of one spelling: all samples' names, and whose each is. */
	struct tsi_words words;
	uint64_t *whose;
};

static struct tsi_word base_of(struct tsi_word w)
{
	const char *slash = memrchr(w.text, '/', w.len);

	if (slash) {
		w.len -= (size_t)(slash + 1 - w.text);
		w.text = slash + 1;
	}
	return w;
}

static struct tsi_word stem_of(struct tsi_word w)
{
	struct tsi_word base = base_of(w);
	const char *dot = memrchr(base.text, '.', base.len);

	if (dot && dot > base.text)
		w.len = (size_t)(dot - w.text);
	return w;
}

/* The names of samples whose folders' paths stand apart from theirs. */
static int write_names(struct match *m)
{
	char text[TSI_PATH], *to;
	size_t bytes = 0, len;

	for (uint64_t i = 0; i < m->samples; i++) {
		tsi_names_key(m->format, m->table, i, text, &len);
		bytes += len + 1;
	}
	m->names = to = malloc(bytes + 1);
	if (!to)
		return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	for (uint64_t i = 0; i < m->samples; i++) {
		const char *name =
			tsi_names_key(m->format, m->table, i, text, &len);

		memcpy(to, name, len);
		to[len] = '\0';
		to += len + 1;
	}
	return 0;
}

/* Sample i; next is where its name is among the names, and then the next.  NULL:
 * names aren't kept. */
static struct tsi_word sample_name(const struct match *m, uint64_t i,
				   enum spelling by, const char **next)
{
	struct tsi_word w;

	if (*next) {
		w = (struct tsi_word){ *next, strlen(*next) };
		*next += w.len + 1;
	} else {
		w.text = tsi_names_key(m->format, m->table, i, NULL, &w.len);
	}
	if (by == STEM_PATH || by == STEM || by == OTHER_AUDIO)
		w = stem_of(w);
	return by == BASE || by == STEM ? base_of(w) : w;
}

/* The text behind "DIR/"; NULL: it doesn't begin so. */
static const char *behind(const char *text, const char *dir)
{
	size_t len = strlen(dir);

	return !strncmp(text, dir, len) && text[len] == '/' ? text + len + 1
							    : NULL;
}

/* What row i of the list calls its sample; len 0: nothing, in this spelling. */
static struct tsi_word row_name(const struct match *m, uint64_t i,
				enum spelling by)
{
	const char *name = tsi_labels_list_cell(m->l, i, 0);
	const char *below = behind(name, m->root);
	struct tsi_word w = { .text = below ? below : name };

	while (strncmp(w.text, "./", 2) == 0)
		w.text += 2;
	if (by == BELOW_ROOT) {
		w.text = behind(w.text, m->base);
		if (!w.text)
			return (struct tsi_word){ .len = 0 };
	}
	w.len = strlen(w.text);
	if (by == OTHER_AUDIO)
		return tsi_folder_is_audio(w.text)
			       ? stem_of(w)
			       : (struct tsi_word){ .len = 0 };
	return by == BASE || by == STEM ? base_of(w) : w;
}

static int collect(struct match *m, enum spelling by)
{
	const char *next = m->names;
	int err = 0;

	tsi_words_free(&m->words);
	for (uint64_t i = 0; i < m->samples && !err; i++) {
		struct tsi_word w = sample_name(m, i, by, &next);
		uint64_t id;
		bool added;

		err = tsi_words_add(&m->words, w.text, w.len, &id, &added);
		if (!err)
			m->whose[id] = added ? i : SEVERAL;
	}
	return err;
}

static bool equal_rows(const struct tsi_labels_list *l, uint64_t i, uint64_t j)
{
	for (unsigned k = 1; k < l->columns; k++) {
		const char *a = tsi_labels_list_cell(l, i, k);
		const char *b = tsi_labels_list_cell(l, j, k);

		if (a != b && (!a || !b || strcmp(a, b) != 0))
			return false;
	}
	return true;
}

static int take(struct match *m, uint64_t i, uint64_t sample, enum spelling by)
{
	uint64_t other = m->row[sample];

	if (other == m->l->rows) {
		m->row[sample] = i;
		m->by[sample] = (uint8_t)by;
		m->matched++;
	} else if (m->by[sample] != by) {
		/* Its own name is another row's. */
		return 0;
	} else if (!equal_rows(m->l, i, other)) {
		return tsi_labels_list_bad(
			m->l, i,
			"%.200s has another label in line %" PRIu64
			"; several labels of an image stand in one line",
			tsi_labels_list_cell(m->l, i, 0), m->l->line[other]);
	}
	m->used[i] = 1;
	return 0;
}

static int match_by(struct match *m, enum spelling by, uint64_t *left)
{
	int err = by == BELOW_ROOT ? 0 : collect(m, by);

	*left = 0;
	for (uint64_t i = 0; i < m->l->rows && !err; i++) {
		struct tsi_word w;
		uint64_t id;

		if (m->used[i])
			continue;
		w = row_name(m, i, by);
		id = w.len ? tsi_words_find(&m->words, w.text, w.len)
			   : TSI_WORDS_NONE;
		if (id != TSI_WORDS_NONE && m->whose[id] != SEVERAL)
			err = take(m, i, m->whose[id], by);
		*left += !m->used[i];
	}
	return err;
}

static int match_names(struct match *m, uint64_t *surplus)
{
	const char *slash = strrchr(m->root, '/');
	uint64_t left = 1;
	int err = 0;

	m->base = slash ? slash + 1 : m->root;
	for (unsigned by = 0; by < SPELLINGS && left && !err; by++) {
		if (m->matched == m->samples && by)
			break;
		err = match_by(m, (enum spelling)by, &left);
	}
	*surplus = left;
	return err;
}

static int match_in_order(struct match *m)
{
	if (m->l->rows != m->samples)
		return tsi_err(TSOCK_EDATA,
			       "%s has %" PRIu64
			       " numbers without names, and the data set "
			       "%" PRIu64 " images: it is of another one",
			       m->l->file.path, m->l->rows, m->samples);
	for (uint64_t i = 0; i < m->samples; i++)
		m->row[i] = i;
	return 0;
}

int tsi_labels_match(const struct tsi_labels_list *l,
		     const struct tsi_format *f, const struct tsi_table *t,
		     const char *root, uint64_t *row, uint64_t *surplus)
{
	struct match m = { .l = l,
			   .format = f,
			   .table = t,
			   .root = root,
			   .samples = tsi_table_count(t),
			   .row = row };
	int err = 0;

	*surplus = 0;
	if (l->in_order)
		return match_in_order(&m);
	for (uint64_t i = 0; i < m.samples; i++)
		row[i] = l->rows;
	m.by = calloc(m.samples, 1);
	m.used = calloc(l->rows, 1);
	m.whose = malloc(m.samples * sizeof(*m.whose) + 1);
	if (!m.by || !m.used || !m.whose)
		err = tsi_err(TSOCK_ENOMEM, "no memory for labels");
	if (!err && tsi_table_foldered(t))
		err = write_names(&m);
	if (!err)
		err = match_names(&m, surplus);
	tsi_words_free(&m.words);
	free(m.names);
	free(m.by);
	free(m.used);
	free(m.whose);
	return err;
}
