/* SPDX-License-Identifier: MIT */
/*
 * class_find.c - the classes of all labels: numbers, those of a file, the
 * folders of the training set, or names.
 */
#include "data/labels/classes.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "data/folder.h"
#include "data/labels/kind.h"

#define DEVKIT "ILSVRC2012_validation_ground_truth"

static int check_value(const struct tsi_labels_walk *w, uint64_t end)
{
	if (tsi_labels_kind_class(&w->it) < end)
		return 0;
	return tsi_labels_list_bad(
		w->l, w->row,
		"the label %.*s is no number of a class below %" PRIu64,
		(int)(w->it.len < 40 ? w->it.len : 40), w->it.text, end);
}

static bool are_numbers(const struct tsi_labels_list *l)
{
	struct tsi_labels_walk w = { .l = l };

	while (tsi_labels_list_walk(&w))
		if (tsi_labels_kind_number(w.it.text, w.it.len) !=
		    TSI_LABELS_WHOLE)
			return false;
	return true;
}

/* Each is below end; *most is the largest. */
static int check_values(const struct tsi_labels_list *l, uint64_t end,
			uint64_t *most)
{
	struct tsi_labels_walk w = { .l = l };
	int err = 0;

	*most = 0;
	while (!err && tsi_labels_list_walk(&w)) {
		err = check_value(&w, end);
		if (tsi_labels_kind_class(&w.it) > *most)
			*most = tsi_labels_kind_class(&w.it);
	}
	return err;
}

/* ---- the folders of the training set ---- */

/* "DIR/train", if root is another folder of DIR; NULL: it isn't there. */
static DIR *open_train(const char *root, char **path)
{
	const char *slash = root ? strrchr(root, '/') : NULL;
	DIR *d = NULL;

	*path = NULL;
	if (!slash || !strcmp(slash + 1, "train") ||
	    asprintf(path, "%.*s/train", (int)(slash - root), root) < 0)
		return NULL;
	d = opendir(*path);
	if (!d) {
		free(*path);
		*path = NULL;
	}
	return d;
}

static int read_folders(struct tsi_labels_classes *c, DIR *d)
{
	struct dirent *e;
	uint64_t id;
	bool added;
	int err = 0;

	for (errno = 0; !err && (e = readdir(d)); errno = 0)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    tsi_folder_entry(d, e))
			err = tsi_labels_classes_add(
				c, e->d_name, strlen(e->d_name), &id, &added);
	return err;
}

/* Names that aren't those of all folders of the training set. */
static int check_train(const struct tsi_labels_classes *c,
		       const struct tsi_labels_list *l, const char *train,
		       bool *all)
{
	struct tsi_labels_walk w = { .l = l }, bad = { .l = NULL };
	uint64_t good = 0;

	while (tsi_labels_list_walk(&w))
		if (tsi_words_find(&c->words, w.it.text, w.it.len) !=
		    TSI_WORDS_NONE)
			good++;
		else if (!bad.l)
			bad = w;
	*all = !bad.l;
	if (*all || !good)
		return 0;
	return tsi_labels_list_bad(
		l, bad.row,
		"the class %.*s is no folder of %s, though others are: name "
		"the file of all classes by :classes=FILE",
		(int)(bad.it.len < 80 ? bad.it.len : 80), bad.it.text, train);
}

/* *done: the labels' classes are the folders of the training set. */
static int try_train(struct tsi_labels_classes *c,
		     const struct tsi_labels_list *l, const char *root,
		     bool *done)
{
	char *path;
	DIR *d = open_train(root, &path);
	int err;

	*done = false;
	if (!d)
		return 0;
	err = read_folders(c, d);
	closedir(d);
	if (!err)
		err = check_train(c, l, path, done);
	free(path);
	if (!err && *done)
		return tsi_labels_classes_by_name(c);
	tsi_words_free(&c->words);
	return err;
}

/* ---- all of them ---- */

static int add_labels(struct tsi_labels_classes *c,
		      const struct tsi_labels_list *l)
{
	struct tsi_labels_walk w = { .l = l };
	uint64_t id;
	bool added;
	int err = 0;

	while (!err && tsi_labels_list_walk(&w))
		err = tsi_labels_classes_add(c, w.it.text, w.it.len, &id,
					     &added);
	return err;
}

/* Labels that a file of classes doesn't have. */
static int check_labels(const struct tsi_labels_classes *c,
			const struct tsi_labels_list *l)
{
	struct tsi_labels_walk w = { .l = l };
	uint64_t v;

	while (tsi_labels_list_walk(&w)) {
		if (c->numbers) {
			v = tsi_labels_kind_class(&w.it);
			if (v < c->translations &&
			    c->translated[v] != TSI_WORDS_NONE)
				continue;
		} else if (tsi_words_find(&c->words, w.it.text, w.it.len) !=
			   TSI_WORDS_NONE) {
			continue;
		}
		return tsi_labels_list_bad(l, w.row,
					   "the class %.*s isn't in %s",
					   (int)(w.it.len < 80 ? w.it.len : 80),
					   w.it.text, c->file.path);
	}
	return 0;
}

static int find_numbers(struct tsi_labels_classes *c,
			const struct tsi_labels_list *l,
			const struct tsi_labels_spec *s)
{
	const char *base = strrchr(l->file.path, '/');
	uint64_t most;
	int err = 0;

	if (s->classes)
		err = tsi_labels_classes_read(c, l, s);
	if (err || c->translated)
		return err ? err : check_labels(c, l);
	if (!s->classes && !strncasecmp(base + 1, DEVKIT, strlen(DEVKIT)))
		return tsi_err(
			TSOCK_EDATA,
			"%s has the devkit's own numbers, which aren't in the "
			"order of the classes' folders: add "
			":classes=map_clsloc.txt, a file with lines such "
			"as \"n02119789 1 kit_fox\", behind it",
			l->file.path);
	err = check_values(l, s->classes ? c->n : TSI_LABELS_CLASSES_END,
			   &most);
	if (!err && !s->classes)
		err = tsi_labels_classes_up_to(c, (uint32_t)most + 1);
	return err;
}

static int find_names(struct tsi_labels_classes *c,
		      const struct tsi_labels_list *l,
		      const struct tsi_labels_spec *s, const char *root)
{
	bool done;
	int err;

	if (s->classes) {
		err = tsi_labels_classes_read(c, l, s);
		return err ? err : check_labels(c, l);
	}
	err = try_train(c, l, root, &done);
	if (err || done)
		return err;
	err = add_labels(c, l);
	return err ? err : tsi_labels_classes_by_name(c);
}

int tsi_labels_classes_find(const struct tsi_labels_list *l,
			    const struct tsi_labels_spec *spec,
			    const char *root, struct tsi_labels_classes *out)
{
	int err;

	*out = (struct tsi_labels_classes){ .numbers = are_numbers(l) };
	err = out->numbers ? find_numbers(out, l, spec)
			   : find_names(out, l, spec, root);
	if (err)
		tsi_labels_classes_free(out);
	return err;
}
