/* SPDX-License-Identifier: MIT */
/*
 * columnar.c - the format table: a file that says where the bytes of each
 * sample are, in files of any kind, and what else belongs to it.
 *
 * A table's rows are never copied: the file's own columns are asked for them.
 */
#include "data/format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/columnar/file.h"
#include "data/columns.h"

#define STAMPED 4096 /* files whose sizes and times are looked at */

/* What a table's columns say of where samples are. */
struct rows {
	struct tsi_columns columns; /* first: the table owns it */
	const struct tsi_columnar_range *range;
	const uint64_t *file_at;
	const char *files;
	const uint64_t *key_at; /* NULL: samples have no names */
	const char *keys;
	const int64_t *label; /* numbers of classes; NULL: there is one class */
};

static const struct rows *rows_of(const struct tsi_table *t)
{
	return (const struct rows *)tsi_table_columns(t);
}

/* ---- which rows ---- */

static int open_root(const char *root, struct tsi_root *r)
{
	struct stat st;

	if (stat(root, &st))
		return tsi_err(TSOCK_EARG,
			       "can't open the table %s: %s; write it with "
			       "tsock.index() or python -m tsock.index",
			       root, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return tsi_err(TSOCK_EARG,
			       "%s is a folder, and a table is a file, which "
			       "tsock.index() writes: give that as --root",
			       root);
	if (tsi_root_open_pattern(r, root))
		return tsi_err_sys("open the folder of %s", root);
	return 0;
}

/* The column of this name, which has to be of this kind; *out NULL: none. */
static int find_column(const struct tsi_columnar *c, const char *name,
		       enum tsi_columnar_kind kind, bool needed,
		       const struct tsi_columnar_entry **out)
{
	const struct tsi_columnar_entry *e = tsi_columnar_find(c, name);

	*out = e;
	if (!e && !needed)
		return 0;
	if (!e)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s has no column %s: samples without an image "
			       "are not read from tables yet; serve them with "
			       "tsock.serve()",
			       c->path, name);
	if (e->kind != (uint32_t)kind)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s: the column %s is of another kind than a "
			       "table of images has there",
			       c->path, name);
	return 0;
}

static int check_count(const struct tsi_columnar *c,
		       const struct tsi_columnar_entry *e)
{
	if (!e || e->count == c->head->rows)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s: the column %s has %" PRIu64
		       " values, and the table "
		       "%" PRIu64 " rows",
		       c->path, e->name, e->count, c->head->rows);
}

static int check_ranges(const struct tsi_columnar *c, const struct rows *r,
			uint64_t files)
{
	for (uint64_t i = 0; i < c->head->rows; i++)
		if (r->range[i].file >= files)
			return tsi_err(TSOCK_EDATA,
				       "%s: row %" PRIu64 " is in file %" PRIu32
				       ", and there are %" PRIu64 " files",
				       c->path, i, r->range[i].file, files);
		else if (!r->range[i].length && r->range[i].offset)
			return tsi_err(TSOCK_EDATA,
				       "%s: row %" PRIu64 " has no bytes",
				       c->path, i);
	return 0;
}

static int find_rows(const struct tsi_columnar *c, struct rows *r,
		     uint64_t *files)
{
	const struct tsi_columnar_entry *image, *file, *key;
	int err = find_column(c, "image", TSI_COLUMNAR_RANGES, true, &image);

	if (!err)
		err = check_count(c, image);
	if (!err)
		err = find_column(c, "files", TSI_COLUMNAR_TEXT, true, &file);
	if (!err)
		err = find_column(c, "key", TSI_COLUMNAR_TEXT, false, &key);
	if (!err)
		err = check_count(c, key);
	if (err)
		return err;
	if (!c->head->rows)
		return tsi_err(TSOCK_EDATA, "%s is a table of no rows",
			       c->path);
	r->range = tsi_columnar_data(c, image);
	r->file_at = tsi_columnar_starts(c, file);
	r->files = tsi_columnar_texts(c, file);
	r->key_at = key ? tsi_columnar_starts(c, key) : NULL;
	r->keys = key ? tsi_columnar_texts(c, key) : NULL;
	*files = file->count;
	return check_ranges(c, r, file->count);
}

/* ---- files that have changed since ---- */

/* What "files.stamp" has of a file. */
struct stamp {
	int64_t bytes, mtime_ns;
};

static int check_stamp(const struct tsi_root *root,
		       const struct tsi_columnar *c, const char *path,
		       const struct stamp *was)
{
	struct stat st;

	if (tsi_root_stat(root, path, &st))
		return tsi_err(TSOCK_EDATA,
			       "%s names %s, which can't be "
			       "opened: %s",
			       c->path, path, strerror(errno));
	if (st.st_size == was->bytes &&
	    (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec ==
		    was->mtime_ns)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s has changed since the table %s was written: write "
		       "the table again",
		       path, c->path);
}

static int check_stamps(const struct tsi_root *root,
			const struct tsi_columnar *c, const struct rows *r,
			uint64_t files)
{
	const struct tsi_columnar_entry *e =
		tsi_columnar_find(c, "files.stamp");
	uint64_t some = files < STAMPED ? files : STAMPED;
	const struct stamp *stamp;
	int err = 0;

	if (!e)
		return 0;
	if (e->kind != TSI_COLUMNAR_VALUES || e->dtype != TSOCK_I64 ||
	    e->ndim != 1 || e->shape[0] != 2 || e->count != files)
		return tsi_err(TSOCK_EDATA,
			       "%s: the column files.stamp isn't a size and a "
			       "time, int64 [2], for each file",
			       c->path);
	stamp = tsi_columnar_data(c, e);
	for (uint64_t k = 0; k < some && !err; k++) {
		uint64_t i = k * files / some;

		err = check_stamp(root, c, r->files + r->file_at[i], &stamp[i]);
	}
	return err;
}

/* ---- classes and fields ---- */

static int find_classes(const struct tsi_columnar *c, struct rows *r,
			const struct tsi_columnar_entry **out)
{
	const struct tsi_columnar_entry *label = tsi_columnar_find(c, "label");
	int err = find_column(c, "classes", TSI_COLUMNAR_TEXT, false, out);

	if (err || !*out)
		return err;
	if (!label || label->kind != TSI_COLUMNAR_VALUES ||
	    label->dtype != TSOCK_I64 || label->ndim)
		return tsi_err(TSOCK_EDATA,
			       "%s: there are classes, but no column label of "
			       "their numbers (int64)",
			       c->path);
	err = check_count(c, label);
	if (err)
		return err;
	r->label = tsi_columnar_data(c, label);
	r->columns.classes = true;
	for (uint64_t i = 0; i < c->head->rows; i++)
		if (r->label[i] < 0 || (uint64_t)r->label[i] >= (*out)->count)
			return tsi_err(TSOCK_EDATA,
				       "%s: row %" PRIu64
				       " is of class %" PRId64
				       ", and there are %" PRIu64 " classes",
				       c->path, i, r->label[i], (*out)->count);
	return 0;
}

/* The longest text with its zero, as a multiple of 8. */
static size_t text_width(const struct tsi_columnar *c,
			 const struct tsi_columnar_entry *e)
{
	const uint64_t *at = tsi_columnar_starts(c, e);
	uint64_t most = 0;

	for (uint64_t i = 0; i < e->count; i++)
		if (at[i + 1] - at[i] > most)
			most = at[i + 1] - at[i];
	return (size_t)(most + 7) / 8 * 8;
}

static void describe_text(const struct tsi_columnar *c,
			  const struct tsi_columnar_entry *e,
			  struct tsi_column *to)
{
	struct tsock_field *f = &to->field;

	to->data = (const uint8_t *)tsi_columnar_texts(c, e);
	to->start = tsi_columnar_starts(c, e);
	to->bytes = text_width(c, e);
	f->flags = TSOCK_FIELD_TEXT;
	f->dtype = TSOCK_U8;
	f->ndim = 1;
	f->shape[0] = to->bytes;
}

static void describe_values(const struct tsi_columnar *c,
			    const struct tsi_columnar_entry *e,
			    struct tsi_column *to)
{
	struct tsock_field *f = &to->field;

	to->data = tsi_columnar_data(c, e);
	to->bytes = tsock_dtype_size(e->dtype);
	f->dtype = e->dtype;
	f->ndim = e->ndim;
	for (uint32_t i = 0; i < e->ndim; i++) {
		f->shape[i] = e->shape[i];
		to->bytes *= e->shape[i];
	}
}

static void describe_column(const struct tsi_columnar *c,
			    const struct tsi_columnar_entry *e,
			    struct tsi_column *to)
{
	*to = (struct tsi_column){ .data = NULL };
	memcpy(to->field.name, e->name, strlen(e->name) + 1);
	if (e->kind == TSI_COLUMNAR_TEXT)
		describe_text(c, e, to);
	else
		describe_values(c, e, to);
}

/* Those that say where samples are, or that the stream has anyway. */
static bool is_own(const char *name)
{
	static const char *const own[] = { "image", "files", "files.stamp",
					   "classes", "key" };

	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(name, own[i]))
			return true;
	return false;
}

static int check_field(const struct tsi_columnar *c,
		       const struct tsi_columnar_entry *e)
{
	static const char *const taken[] = { "index", "box", "weight",
					     "draws" };

	for (unsigned i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		if (!strcmp(e->name, taken[i]))
			return tsi_err(TSOCK_EDATA,
				       "%s: a column can't be called %s, which "
				       "is a field of every stream",
				       c->path, e->name);
	if (strlen(e->name) >= sizeof(((struct tsock_field *)0)->name))
		return tsi_err(TSOCK_EDATA,
			       "%s: the name %s is too long for a field: 31 "
			       "bytes are the most",
			       c->path, e->name);
	if (e->kind == TSI_COLUMNAR_RANGES)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s: the column %s is ranges of files, of which "
			       "only image is read yet",
			       c->path, e->name);
	return check_count(c, e);
}

/* Where the next field goes; NULL: there are too many. */
static struct tsi_column *place_of(struct tsi_columns *to, const char *name)
{
	if (!strcmp(name, "label"))
		return &to->label;
	return to->n < TSI_COLUMNS ? &to->column[to->n++] : NULL;
}

static int find_fields(const struct tsi_columnar *c, struct tsi_columns *to)
{
	for (uint32_t i = 0; i < c->head->columns; i++) {
		const struct tsi_columnar_entry *e = &c->entry[i];
		struct tsi_column *place;
		int err;

		if (is_own(e->name))
			continue;
		err = check_field(c, e);
		if (err)
			return err;
		place = place_of(to, e->name);
		if (!place)
			return tsi_err(TSOCK_ENOTSUP,
				       "%s has more than %d columns beside "
				       "image and label: write a table with "
				       "fewer",
				       c->path, TSI_COLUMNS);
		describe_column(c, e, place);
	}
	return 0;
}

/* ---- the scan ---- */

static int fill_table(const struct tsi_root *root, const struct tsi_columnar *c,
		      const struct tsi_columnar_entry *classes,
		      const struct tsi_stamp *stamp, struct tsi_table *t)
{
	struct tsi_table_lengths n = {
		.count = c->head->rows, .classes = 1, .stamps = 1, .bare = true
	};
	const uint64_t *at = classes ? tsi_columnar_starts(c, classes) : NULL;
	const char *file = tsi_root_pattern(root);
	struct tsi_table_writer w;
	int err;

	n.names_len = strlen(tsi_root_name(root)) + 1 + strlen(file) + 1;
	if (classes) {
		n.classes = (uint32_t)classes->count;
		n.names_len += at[classes->count];
	} else {
		n.names_len += sizeof("all");
	}
	err = tsi_table_begin(&w, t, &n, tsi_root_name(root));
	if (err)
		return err;
	for (uint32_t i = 0; i < n.classes; i++)
		tsi_table_put_class(&w,
				    at ? tsi_columnar_texts(c, classes) + at[i]
				       : "all");
	tsi_table_put_stamp(&w, file, stamp);
	return 0;
}

static int take_columns(const struct tsi_root *root, struct tsi_columnar *c,
			const struct tsi_stamp *stamp, struct tsi_table *t)
{
	const struct tsi_columnar_entry *classes = NULL;
	struct rows *r = calloc(1, sizeof(*r));
	uint64_t files = 0;
	int err;

	if (!r)
		return tsi_err(TSOCK_ENOMEM, "no memory for a table");
	err = find_rows(c, r, &files);
	if (!err)
		err = check_stamps(root, c, r, files);
	if (!err)
		err = find_classes(c, r, &classes);
	if (!err)
		err = find_fields(c, &r->columns);
	if (!err)
		err = fill_table(root, c, classes, stamp, t);
	if (err) {
		free(r);
		return err;
	}
	/* Its bytes, since another writer may leave out their checksums. */
	r->columns.hash = tsi_hash(c->mem, c->len, 0);
	r->columns.mem = c->mem;
	c->mem = NULL;
	tsi_table_set_columns(t, &r->columns);
	return 0;
}

static int scan(const struct tsi_root *r, unsigned threads, struct tsi_table *t)
{
	int fd = tsi_root_openat(r, tsi_root_pattern(r),
				 O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct tsi_columnar c;
	struct tsi_stamp stamp;
	struct stat st;
	int err;

	(void)threads;
	if (fd < 0 || tsi_stamp_take(fd, &st, &stamp)) {
		err = tsi_err_sys("open %.300s", tsi_root_name(r));
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = tsi_columnar_read(fd, tsi_root_name(r), &c);
	close(fd);
	if (err)
		return err;
	err = take_columns(r, &c, &stamp, t);
	tsi_columnar_free(&c);
	return err;
}

static void locate(const struct tsi_table *t, uint64_t i,
		   struct tsi_location *out)
{
	const struct rows *r = rows_of(t);
	uint64_t row = tsi_columns_row(&r->columns, i);
	const struct tsi_columnar_range *at = &r->range[row];

	out->path = r->files + r->file_at[at->file];
	out->member = r->key_at ? r->keys + r->key_at[row] : NULL;
	out->offset = at->offset;
	out->length = at->length;
	out->size = at->length;
}

static int64_t label(const struct tsi_table *t, uint64_t i)
{
	const struct rows *r = rows_of(t);

	return r->label ? r->label[tsi_columns_row(&r->columns, i)] : 0;
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

const struct tsi_format tsi_format_table = {
	.name = "table",
	.layout = "-table",
	.keeps_index = true,
	.open = open_root,
	.scan = scan,
	.locate = locate,
	.label = label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};
