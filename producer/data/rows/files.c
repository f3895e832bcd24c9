/* SPDX-License-Identifier: MIT */
/*
 * files.c - the files of a folder, by their names.
 */
#include "data/rows/files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

int tsi_rows_open_root(const char *root, const char *kind, struct tsi_root *r)
{
	struct stat st;

	if (stat(root, &st))
		return tsi_err(TSOCK_EARG,
			       "can't open %s: %s; --root is to be "
			       "%s",
			       root, strerror(errno), kind);
	if (S_ISDIR(st.st_mode) ? tsi_root_open(r, root)
				: tsi_root_open_pattern(r, root))
		return tsi_err_sys("open %s", root);
	return 0;
}

/* Does the word stand in the name by itself: "x_train.npy", not "strain"? */
static bool has_word(const char *name, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = name; *at; at++)
		if (!strncasecmp(at, word, len) &&
		    (at == name || !isalpha((unsigned char)at[-1])) &&
		    !isalpha((unsigned char)at[len]))
			return true;
	return false;
}

enum tsi_rows_kind tsi_rows_kind_of(const char *name)
{
	static const char *const words[] = { "val", "valid", "validation",
					     "test", "eval" };

	if (has_word(name, "train"))
		return TSI_ROWS_TRAINING;
	for (unsigned k = 0; k < sizeof(words) / sizeof(words[0]); k++)
		if (has_word(name, words[k]))
			return TSI_ROWS_EVALUATION;
	return TSI_ROWS_ANY;
}

static bool ends_well(const char *name, const char *endings)
{
	size_t len = strlen(name);

	if (!*endings)
		return true;
	while (*endings) {
		size_t n = strcspn(endings, "|");

		if (len > n && !strncasecmp(name + len - n, endings, n))
			return true;
		endings += n + 1;
	}
	return false;
}

static int add(struct tsi_rows_files *l, const char *name)
{
	if (l->n == l->room) {
		unsigned room = l->room ? 2 * l->room : 16;
		char **to = realloc(l->name, room * sizeof(*to));

		if (!to)
			return tsi_err(TSOCK_ENOMEM, "no memory for a list");
		l->name = to;
		l->room = room;
	}
	l->name[l->n] = strdup(name);
	if (!l->name[l->n])
		return tsi_err(TSOCK_ENOMEM, "no memory for a list");
	l->n++;
	return 0;
}

static bool is_file(const struct tsi_root *r, const char *name)
{
	struct stat st;

	return !tsi_root_stat(r, name, &st) && S_ISREG(st.st_mode);
}

static int read_folder(const struct tsi_root *r, const char *endings,
		       struct tsi_rows_files *l)
{
	int fd = tsi_root_openat(r, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int err = 0;

	if (!d) {
		err = tsi_err_sys("read %.300s", tsi_root_name(r));
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (e = readdir(d)))
		if (e->d_name[0] != '.' && ends_well(e->d_name, endings) &&
		    is_file(r, e->d_name))
			err = add(l, e->d_name);
	closedir(d);
	return err;
}

static int compare(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* Leave those of one part, if there are files of both. */
static void choose(struct tsi_rows_files *l, bool held_out)
{
	enum tsi_rows_kind want =
		held_out ? TSI_ROWS_EVALUATION : TSI_ROWS_TRAINING;
	bool has[3] = { false };
	unsigned n = 0;

	for (unsigned i = 0; i < l->n; i++)
		has[tsi_rows_kind_of(l->name[i])] = true;
	if (!has[TSI_ROWS_TRAINING] || !has[TSI_ROWS_EVALUATION])
		return;
	for (unsigned i = 0; i < l->n; i++)
		if (tsi_rows_kind_of(l->name[i]) == want)
			l->name[n++] = l->name[i];
		else
			free(l->name[i]);
	l->n = n;
}

int tsi_rows_list(const struct tsi_root *r, const char *endings, bool held_out,
		  struct tsi_rows_files *l)
{
	const char *one = tsi_root_pattern(r);
	int err;

	*l = (struct tsi_rows_files){ .name = NULL };
	err = one ? add(l, one) : read_folder(r, endings, l);
	if (!err && !l->n)
		err = tsi_err(TSOCK_EARG,
			      "%.300s has no file whose name ends "
			      "in %.*s",
			      tsi_root_name(r), (int)strcspn(endings, "|"),
			      endings);
	if (err) {
		tsi_rows_files_free(l);
		return err;
	}
	if (l->n > 1)
		qsort(l->name, l->n, sizeof(*l->name), compare);
	choose(l, held_out);
	return 0;
}

void tsi_rows_files_free(struct tsi_rows_files *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free(l->name[i]);
	free(l->name);
	*l = (struct tsi_rows_files){ .name = NULL };
}
