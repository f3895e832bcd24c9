/* SPDX-License-Identifier: MIT */
/*
 * side.c - labels and fields in files of their own, read by several threads.
 */
#include "data/labels/side.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "data/format.h"
#include "data/labels/array.h"
#include "data/names.h"
#include "data/parallel.h"
#include "data/table.h"

#define CHUNK 64 /* samples that a thread takes at once */
#define JSON ".json."
#define TEXT ".txt"

static int no_memory(void)
{
	return tsi_err(TSOCK_ENOMEM, "no memory for labels");
}

/* ---- files in folders ---- */

/* "a/b/NAME" + ending; false: that is too long. */
static bool path_of(const char *key, const char *ending, char to[PATH_MAX])
{
	const char *slash = strrchr(key, '/');
	const char *base = slash ? slash + 1 : key;
	const char *dot = strrchr(base, '.');
	size_t len = dot && dot > base ? (size_t)(dot - key) : strlen(key);

	return snprintf(to, PATH_MAX, "%.*s%s", (int)len, key, ending) <
	       PATH_MAX;
}

/* All bytes of an open file, and a NUL behind them: free(). */
static int read_text(struct tsi_labels_side *s, uint64_t i, int fd, char **out,
		     size_t *len)
{
	struct stat st;
	ssize_t got;
	char *text;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return tsi_labels_list_bad(s->l, i, "it isn't a file");
	if (st.st_size > TSI_LABELS_SIDE_MOST)
		return tsi_labels_list_bad(s->l, i, "it has more than %d bytes",
					   TSI_LABELS_SIDE_MOST);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return no_memory();
	got = tsi_file_read(fd, text, (size_t)st.st_size);
	if (got < 0) {
		free(text);
		return tsi_labels_list_bad(s->l, i, "%s", strerror(errno));
	}
	text[got] = '\0';
	*out = text;
	*len = (size_t)got;
	return 0;
}

static int read_part(struct tsi_labels_side *s, uint64_t i, unsigned k)
{
	const char *name = tsi_labels_list_cell(s->l, i, 0);
	char path[PATH_MAX], *text = NULL;
	size_t len = 0;
	int fd, err;

	if (!path_of(name, s->part[k].ending, path))
		return tsi_labels_list_bad(s->l, i, "its path is too long");
	fd = openat(s->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return tsi_labels_list_bad(s->l, i, "%s", strerror(errno));
	err = read_text(s, i, fd, &text, &len);
	close(fd);
	if (!err)
		err = tsi_labels_side_take(s, i, k, path, text, len);
	free(text);
	return err;
}

static int read_files(void *arg, uint64_t first, uint64_t last)
{
	struct tsi_labels_side *s = arg;
	int err = 0;

	for (uint64_t i = first; i < last; i++)
		for (unsigned k = 0; k < s->parts && !err; k++)
			err = read_part(s, i, k);
	return err;
}

/* ---- all samples ---- */

/* ".txt", or ".json.meta.label". */
static int add_part(struct tsi_labels_side *s, const char *column, bool field)
{
	struct tsi_labels_part *p = &s->part[s->parts++];
	bool json = !strncmp(column, JSON, strlen(JSON));
	int len = snprintf(p->ending, sizeof(p->ending), "%s",
			   json ? ".json" : column);

	p->value = json ? column + strlen(JSON) : NULL;
	if (!field && !json && tsi_labels_array_is(column))
		return tsi_err(TSOCK_EARG,
			       "--labels: arrays are fields: fields=%s",
			       column);
	if ((size_t)len >= sizeof(p->ending))
		return tsi_err(TSOCK_EARG,
			       "--labels: the ending %s is too long", column);
	return 0;
}

/*
 * Fields are called by the last part of what they are found by, arrays by that
 * before .npy.
 */
static int name_fields(struct tsi_labels_side *s,
		       const struct tsi_labels_spec *spec)
{
	char text[TSI_COLUMNS][sizeof(s->part[0].ending)];
	const char *name[TSI_COLUMNS];

	for (unsigned i = 0; i < spec->fields; i++) {
		const struct tsi_labels_part *p = &s->part[s->l->labels + i];
		size_t len;

		name[i] = strrchr(spec->field[i], '.') + 1;
		if (p->value || !tsi_labels_array_is(p->ending))
			continue;
		name[i] = tsi_labels_array_name(p->ending, &len);
		snprintf(text[i], sizeof(text[i]), "%.*s", (int)len, name[i]);
		name[i] = text[i];
	}
	return tsi_labels_list_fields(s->l, name, spec->fields);
}

static int make_parts(struct tsi_labels_side *s,
		      const struct tsi_labels_spec *spec)
{
	struct tsi_labels_list *l = s->l;
	int err = 0;

	for (unsigned i = 0; i < spec->labels && !err; i++)
		err = add_part(s, spec->label[i], false);
	if (!spec->labels && !spec->fields)
		err = add_part(s, ".label", false);
	l->labels = s->parts;
	l->text = s->parts && !strcmp(s->part[0].ending, TEXT);
	for (unsigned i = 0; i < spec->fields && !err; i++)
		err = add_part(s, spec->field[i], true);
	l->columns = 1 + s->parts;
	return err ? err : name_fields(s, spec);
}

static int make_rows(struct tsi_labels_side *s)
{
	uint64_t n = tsi_table_count(s->table);
	struct tsi_labels_list *l = s->l;

	l->in_order = l->side = true;
	l->line = calloc(n + 1, sizeof(*l->line));
	l->cell = calloc(n * l->columns + 1, sizeof(*l->cell));
	if (!l->line || !l->cell)
		return no_memory();
	l->rows = n;
	for (unsigned k = 0; k < l->fields; k++) {
		struct tsi_labels_part *p = &s->part[l->labels + k];
		bool array = !p->value && tsi_labels_array_is(p->ending);

		if (array && tsi_labels_array_create(n, &l->array[k]))
			return TSOCK_ENOMEM;
		p->array = l->array[k];
	}
	for (uint64_t i = 0; i < n; i++) {
		char text[TSI_PATH];
		size_t len;
		const char *key =
			tsi_names_key(s->format, s->table, i, text, &len);

		l->cell[i * l->columns] = strndup(key, len);
		if (!l->cell[i * l->columns])
			return no_memory();
	}
	return 0;
}

/* Each sample has its array. */
static int check_array(const struct tsi_labels_side *s, unsigned k)
{
	const struct tsi_labels_part *p = &s->part[k];
	struct tsi_location at;
	uint64_t i = 0;

	while (i < s->l->rows && tsi_labels_array_has(p->array, i))
		i++;
	if (i == s->l->rows)
		return 0;
	tsi_format_locate(s->format, s->table, i, &at);
	return tsi_err(TSOCK_EDATA,
		       "%s: the sample %s has no file NAME%s, which others "
		       "have",
		       at.member ? at.file : s->l->file.path,
		       tsi_labels_list_cell(s->l, i, 0), p->ending);
}

static bool has(const struct tsi_labels_side *s, uint64_t i, unsigned k)
{
	const struct tsi_labels_part *p = &s->part[k];

	return p->array ? tsi_labels_array_has(p->array, i)
			: tsi_labels_list_cell(s->l, i, 1 + k) != NULL;
}

static int check_any(const struct tsi_labels_side *s)
{
	const struct tsi_labels_list *l = s->l;

	for (unsigned k = 0; k < s->parts; k++) {
		uint64_t i = 0;
		int err;

		while (i < l->rows && !has(s, i, k))
			i++;
		if (i == l->rows)
			return tsi_err(TSOCK_EDATA,
				       "no file NAME%s%s%s for an image "
				       "NAME.jpg in the folder of labels %s: "
				       "another ending is :label=.EXT",
				       s->part[k].ending,
				       s->part[k].value ? " with " : "",
				       s->part[k].value ? s->part[k].value : "",
				       l->file.path);
		err = s->part[k].array ? check_array(s, k) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int read_all(struct tsi_labels_side *s,
		    const struct tsi_labels_spec *spec, unsigned threads)
{
	struct tsi_location first;
	int err = make_parts(s, spec);

	s->l->file.path = realpath(spec->file, NULL);
	if (!s->l->file.path)
		return tsi_err_sys("open the folder of labels %s", spec->file);
	if (!err)
		err = make_rows(s);
	if (err)
		return err;
	tsi_format_locate(s->format, s->table, 0, &first);
	err = first.member && !tsi_format_keeps_index(s->format)
		      ? tsi_labels_shards_read(s, threads)
		      : tsi_parallel(threads, s->l->rows, CHUNK, read_files, s);
	return err ? err : check_any(s);
}

int tsi_labels_side_read(const struct tsi_labels_spec *spec,
			 const struct tsi_format *f, const struct tsi_table *t,
			 unsigned threads, struct tsi_labels_list *out)
{
	struct tsi_labels_side *s = calloc(1, sizeof(*s));
	int err;

	*out = (struct tsi_labels_list){ .rows = 0 };
	if (!s)
		return no_memory();
	*s = (struct tsi_labels_side){ .format = f, .table = t, .l = out };
	s->fd = open(spec->file, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = s->fd < 0
		      ? tsi_err_sys("open the folder of labels %s", spec->file)
		      : read_all(s, spec, threads);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
	if (err)
		tsi_labels_list_free(out);
	return err;
}
