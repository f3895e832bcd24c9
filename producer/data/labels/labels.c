/* SPDX-License-Identifier: MIT */
/*
 * labels.c - labels and fields of a data set's samples that come from a file.
 */
#include "data/labels/labels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/format.h"
#include "data/labels/classes.h"
#include "data/labels/kind.h"
#include "data/labels/match.h"
#include "data/labels/side.h"
#include "data/labels/values.h"
#include "data/names.h"

#define SHOWN 3 /* samples without a label, in a message */

struct tsi_labels {
	struct tsi_labels_spec spec;
	char *root; /* path; NULL: not known */
	char *path; /* of the file or folder */
	bool side;  /* a folder */
	struct tsi_stamp stamp;
	uint64_t hash;
	struct tsi_labels_list list;
	enum tsi_labels_kind kind;
	struct tsi_labels_classes classes;
	uint64_t none; /* the columns' row of samples without a label */
	uint64_t surplus;
};

static int no_memory(void)
{
	return tsi_err(TSOCK_ENOMEM, "no memory for labels");
}

/* ---- opening ---- */

static uint64_t hash_word(const char *text, uint64_t h)
{
	return tsi_hash(text ? text : "", text ? strlen(text) + 1 : 0, h);
}

/* How the file is read. */
static uint64_t hash_spec(const struct tsi_labels_spec *s, uint64_t file,
			  uint64_t classes)
{
	uint64_t h = tsi_hash(&classes, sizeof(classes), file);
	unsigned as = s->as;

	h = tsi_hash(&as, sizeof(as), h);
	h = hash_word(s->path, h);
	for (unsigned i = 0; i < s->labels; i++)
		h = hash_word(s->label[i], h);
	h = hash_word("", h);
	for (unsigned i = 0; i < s->fields; i++)
		h = hash_word(s->field[i], h);
	return h;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* A folder's files aren't read for that: their labels are the samples'. */
static int hash_folder(const struct tsi_labels_spec *s, uint64_t *out)
{
	char *path = realpath(s->file, NULL);

	if (!path)
		return no_memory();
	*out = hash_spec(s, hash_word(path, 0), 0);
	free(path);
	return 0;
}

/* What the labels are, once there is a list. */
static int read_kind(struct tsi_labels *x)
{
	int err = 0;

	if (x->list.labels)
		err = tsi_labels_kind_find(&x->list, x->spec.as, &x->kind);
	if (!err && tsi_labels_classed(x))
		err = tsi_labels_classes_find(&x->list, &x->spec, x->root,
					      &x->classes);
	else if (!err && x->spec.classes)
		err = tsi_err(TSOCK_EARG,
			      "--labels: classes= is for labels that are "
			      "classes, and those of %s aren't",
			      x->list.file.path);
	return err;
}

static bool are_endings(const char *const *name, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (name[i][0] != '.' || !name[i][1])
			return false;
	return true;
}

static int open_folder(struct tsi_labels *x)
{
	const struct tsi_labels_spec *s = &x->spec;

	x->side = true;
	if (s->path || !are_endings(s->label, s->labels) ||
	    !are_endings(s->field, s->fields))
		return tsi_err(TSOCK_EARG,
			       "--labels: %s is a folder: label= and fields= "
			       "are endings of its files, as in "
			       "label=.cls,fields=.txt+.json.caption",
			       s->file);
	x->path = realpath(s->file, NULL);
	return x->path ? hash_folder(s, &x->hash) : no_memory();
}

static int open_file(struct tsi_labels *x)
{
	int err = tsi_labels_list_read(&x->spec, &x->stamp, &x->list);

	if (err)
		return err;
	x->path = strdup(x->list.file.path);
	if (!x->path)
		return no_memory();
	err = read_kind(x);
	if (!err)
		x->hash = hash_spec(&x->spec, x->list.hash, x->classes.hash);
	return err;
}

int tsi_labels_open(const char *text, const char *root, struct tsi_labels **out)
{
	struct tsi_labels *x = calloc(1, sizeof(*x));
	int err = x ? tsi_labels_spec_parse(text, &x->spec) : no_memory();

	if (!err && root && !(x->root = strdup(root)))
		err = no_memory();
	if (!err)
		err = is_folder(x->spec.file) ? open_folder(x) : open_file(x);
	if (err) {
		tsi_labels_close(x);
		return err;
	}
	*out = x;
	return 0;
}

void tsi_labels_close(struct tsi_labels *x)
{
	if (!x)
		return;
	tsi_labels_classes_free(&x->classes);
	tsi_labels_list_free(&x->list);
	tsi_labels_spec_free(&x->spec);
	free(x->path);
	free(x->root);
	free(x);
}

int tsi_labels_describe(const char *text, uint64_t *out)
{
	struct tsi_textfile file = { .path = NULL }, classes = { .path = NULL };
	struct tsi_labels_spec s;
	int err = tsi_labels_spec_parse(text, &s);

	if (err)
		return err;
	if (is_folder(s.file)) {
		err = hash_folder(&s, out);
	} else {
		err = tsi_textfile_read("--labels", s.file, NULL, &file);
		if (!err && s.classes)
			err = tsi_labels_classes_file(&s, &classes);
		if (!err)
			*out = hash_spec(&s, tsi_hash(file.text, file.len, 0),
					 s.classes ? tsi_hash(classes.text,
							      classes.len, 1)
						   : 0);
	}
	tsi_textfile_free(&classes);
	tsi_textfile_free(&file);
	tsi_labels_spec_free(&s);
	return err;
}

/* ---- samples ---- */

/* Row i of the list says nothing of the label. */
static bool says_nothing(const struct tsi_labels *x, uint64_t i)
{
	const char *cell;

	if (!x->list.labels)
		return false;
	cell = tsi_labels_list_cell(&x->list, i, 1);
	if (!cell)
		return true;
	return !*cell && x->kind != TSI_LABELS_CLASSES &&
	       x->kind != TSI_LABELS_TEXT;
}

static int match_rows(struct tsi_labels *x, const struct tsi_format *f,
		      struct tsi_table *t, uint64_t **out)
{
	uint64_t n = tsi_table_count(t);
	uint64_t *row = malloc(n * sizeof(*row) + 1);
	int err = row ? tsi_labels_match(&x->list, f, t, x->root ? x->root : "",
					 row, &x->surplus)
		      : no_memory();

	if (err) {
		free(row);
		return err;
	}
	x->none = x->list.rows;
	for (uint64_t i = 0; i < n; i++)
		if (row[i] < x->none && says_nothing(x, row[i]))
			row[i] = x->none;
	*out = row;
	return 0;
}

int tsi_labels_apply(struct tsi_labels *x, const struct tsi_format *f,
		     struct tsi_table *t, unsigned threads)
{
	struct tsi_columns *c = NULL;
	uint64_t *row = NULL;
	int err = 0;

	if (tsi_table_columns(t))
		return tsi_err(TSOCK_EARG,
			       "--labels: the data set has labels of its own; "
			       "leave the option out");
	if (x->side) {
		err = tsi_labels_side_read(&x->spec, f, t, threads, &x->list);
		if (!err)
			err = read_kind(x);
	}
	if (!err)
		err = match_rows(x, f, t, &row);
	if (!err)
		err = tsi_labels_values_make(&x->list, x->kind, &x->classes,
					     &c);
	if (err) {
		free(row);
		return err;
	}
	tsi_columns_set_rows(
		c, row, tsi_hash(&x->list.hash, sizeof(x->list.hash), x->hash));
	tsi_table_set_columns(t, c);
	/* What the columns have copied. */
	tsi_labels_list_free(&x->list);
	return 0;
}

/* Of rows without a label: their first ones, and how many they are. */
static int check_missing(const struct tsi_labels *x, const struct tsi_format *f,
			 const struct tsi_table *t)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	uint64_t n = tsi_table_count(t), missing = 0;
	char list[400] = "";
	size_t at = 0;

	for (uint64_t i = 0; i < n; i++) {
		char text[TSI_PATH];
		const char *key;
		size_t len;

		if (tsi_columns_row(c, i) != x->none || missing++ >= SHOWN)
			continue;
		key = tsi_names_key(f, t, i, text, &len);
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%.*s",
				       at ? ", " : "",
				       (int)(len < 120 ? len : 120), key);
	}
	if (!missing)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s has no label for %" PRIu64 " of %" PRIu64
		       " images: %s%s; an image is called by its path below "
		       "the root, or its name alone if no other has it; "
		       "--select serves some alone",
		       x->path, missing, n, list,
		       missing > SHOWN ? ", ..." : "");
}

static int set_classes(const struct tsi_labels *x, struct tsi_table *t)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	uint64_t n = tsi_table_count(t);
	uint32_t *label = malloc(n * sizeof(*label) + 1);
	int err;

	if (!label)
		return no_memory();
	for (uint64_t i = 0; i < n; i++)
		label[i] = tsi_columns_class(c, i);
	err = tsi_table_set_classes(t, x->classes.name, x->classes.n, label);
	free(label);
	return err;
}

int tsi_labels_finish(struct tsi_labels *x, const struct tsi_format *f,
		      struct tsi_table *t)
{
	int err = check_missing(x, f, t);

	if (!err && tsi_labels_classed(x))
		err = set_classes(x, t);
	if (!err && x->surplus)
		tsi_log(TSOCK_LOG_WARN,
			"%s has %" PRIu64 " labels of images that aren't in %s",
			x->path, x->surplus,
			x->root ? x->root : "the data set");
	return err;
}

/* ---- questions ---- */

bool tsi_labels_classed(const struct tsi_labels *x)
{
	return x->kind == TSI_LABELS_CLASS || x->kind == TSI_LABELS_CLASSES;
}

const char *tsi_labels_path(const struct tsi_labels *x)
{
	return x->path;
}

uint64_t tsi_labels_fingerprint(const struct tsi_labels *x)
{
	return x->hash;
}

bool tsi_labels_look(const struct tsi_labels *x, uint64_t *now)
{
	uint64_t seen[3] = { 0 };
	struct stat st;

	if (x->side)
		return true;
	if (stat(x->path, &st)) {
		seen[0] = (uint64_t)errno;
	} else {
		if (tsi_stamp_holds(&x->stamp, &st))
			return true;
		seen[0] = st.st_ino;
		seen[1] = (uint64_t)st.st_mtim.tv_sec;
		seen[2] = (uint64_t)st.st_mtim.tv_nsec;
	}
	*now = tsi_hash(seen, sizeof(seen), 0);
	return false;
}
