/* SPDX-License-Identifier: MIT */
/*
 * rows.c - the columns of a data set whose files are mapped.
 */
#include "data/rows/rows.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/documents.h"
#include "data/mapped.h"
#include "data/text.h"

#define PIXELS (TSI_COLUMNS + 1) /* numbers of columns that aren't fields */
#define LABEL TSI_COLUMNS
#define HASHED 256 /* pieces of all files that tell them from others */
#define PIECE 4096

struct tsi_rows {
	struct tsi_columns columns; /* first: the table owns it then */
	const struct tsi_root *root;
	struct tsi_stamp *stamp; /* one for each file */
	uint64_t room;           /* files for which there is memory */
	uint64_t stamp_room;
	struct tsi_stamp folder;
	bool in_folder; /* files are those of the folder, and it has a stamp */
	char *classes;
	uint32_t nclasses;
	uint64_t labels; /* rows that have one, where they aren't in files */
	bool finished;
};

static int stamp_folder(struct tsi_rows *r)
{
	int fd = tsi_root_openat(r->root, "",
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0 || tsi_stamp_take(fd, &st, &r->folder))
		err = tsi_err_sys("read the folder %.300s",
				  tsi_root_path(r->root));
	if (fd >= 0)
		close(fd);
	return err;
}

int tsi_rows_create(const struct tsi_root *root, struct tsi_rows **out)
{
	struct tsi_rows *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return tsi_err(TSOCK_ENOMEM, "no memory for a data set");
	r->root = root;
	r->columns.imageless = true;
	r->in_folder = !tsi_root_pattern(root);
	err = r->in_folder ? stamp_folder(r) : 0;
	if (err) {
		tsi_rows_destroy(r);
		return err;
	}
	*out = r;
	return 0;
}

void tsi_rows_destroy(struct tsi_rows *r)
{
	if (!r)
		return;
	free(r->stamp);
	free(r->classes);
	r->stamp = NULL;
	r->classes = NULL;
	if (!r->finished)
		tsi_columns_destroy(&r->columns);
}

/* ---- files ---- */

int tsi_rows_map(struct tsi_rows *r, const char *path, unsigned *file)
{
	struct tsi_columns *c = &r->columns;
	int err = tsi_text_grow(&c->map, c->maps, &r->room, sizeof(*c->map));

	if (!err)
		err = tsi_text_grow(&r->stamp, c->maps, &r->stamp_room,
				    sizeof(*r->stamp));
	if (!err)
		err = tsi_mapped_open(r->root, path, &c->map[c->maps],
				      &r->stamp[c->maps]);
	if (err)
		return err;
	*file = c->maps++;
	return 0;
}

const uint8_t *tsi_rows_mem(const struct tsi_rows *r, unsigned file)
{
	return tsi_mapped_at(&r->columns.map[file], 0);
}

uint64_t tsi_rows_len(const struct tsi_rows *r, unsigned file)
{
	return r->columns.map[file].len;
}

const char *tsi_rows_path(const struct tsi_rows *r, unsigned file)
{
	return r->columns.map[file].path;
}

int tsi_rows_read(const struct tsi_rows *r, unsigned file, uint64_t at,
		  void *to, size_t n, const char *what)
{
	const struct tsi_mapped *m = &r->columns.map[file];

	if (at > m->len || n > m->len - at ||
	    !tsi_mapped_copy(to, m->mem + at, n))
		return tsi_err(TSOCK_EDATA,
			       "%s is truncated: it ends within its %s",
			       m->path, what);
	return 0;
}

/* ---- fields ---- */

static struct tsi_column *column_of(struct tsi_rows *r, unsigned column)
{
	return column == PIXELS  ? &r->columns.pixels
	       : column == LABEL ? &r->columns.label
				 : &r->columns.column[column];
}

static size_t bytes_of(const struct tsock_field *f)
{
	size_t bytes = tsock_dtype_size(f->dtype);

	for (uint32_t d = 0; d < f->ndim; d++)
		bytes *= f->shape[d];
	return bytes;
}

static void describe(struct tsi_column *c, const struct tsock_field *f,
		     size_t stride)
{
	c->field = *f;
	c->bytes = bytes_of(f);
	c->stride = stride;
}

int tsi_rows_field(struct tsi_rows *r, const struct tsock_field *f,
		   size_t stride, unsigned *column)
{
	if (!strcmp(f->name, "label")) {
		*column = LABEL;
	} else if (r->columns.n < TSI_COLUMNS) {
		*column = r->columns.n++;
	} else {
		return tsi_err(TSOCK_ENOTSUP,
			       "samples would have more than %d fields beside "
			       "image and label, the last of them %s: leave "
			       "some out",
			       TSI_COLUMNS, f->name);
	}
	describe(column_of(r, *column), f, stride);
	return 0;
}

void tsi_rows_documents(struct tsi_rows *r, struct tsi_documents *documents)
{
	r->columns.documents = documents;
}

int tsi_rows_run(struct tsi_rows *r, const struct tsock_field *f,
		 enum tsi_columns_run run)
{
	unsigned column;
	int err = tsi_rows_field(r, f, 0, &column);

	if (!err)
		column_of(r, column)->run = run;
	return err;
}

int tsi_rows_pixels(struct tsi_rows *r, const uint32_t shape[3], bool planar,
		    size_t stride, unsigned *column)
{
	struct tsock_field f = { .name = "image",
				 .dtype = TSOCK_U8,
				 .ndim = 3,
				 .shape = { shape[0], shape[1], shape[2] } };

	describe(&r->columns.pixels, &f, stride);
	r->columns.planar = planar;
	r->columns.imageless = false;
	*column = PIXELS;
	return 0;
}

uint64_t tsi_rows_count(const struct tsi_rows *r, unsigned column)
{
	struct tsi_rows *all = (struct tsi_rows *)(uintptr_t)r;
	const struct tsi_column *c = column_of(all, column);

	/* The part behind the last one says where the next one begins. */
	return c->parts ? c->part[c->parts].first : 0;
}

int tsi_rows_part(struct tsi_rows *r, unsigned column, unsigned file,
		  uint64_t at, uint64_t count)
{
	const struct tsi_mapped *m = &r->columns.map[file];
	struct tsi_column *c = column_of(r, column);
	uint64_t first = tsi_rows_count(r, column);
	uint64_t left = m->len > at ? m->len - at : 0;
	struct tsi_column_part *part;

	if (!count)
		return 0;
	if (c->bytes > left || (count - 1) > (left - c->bytes) / c->stride)
		return tsi_err(TSOCK_EDATA,
			       "%s is truncated: it has %" PRIu64
			       " bytes, and %" PRIu64 " rows of %zu bytes from "
			       "byte %" PRIu64 " on are more",
			       m->path, m->len, count, c->stride, at);
	part = realloc(c->part, (c->parts + 2) * sizeof(*part));
	if (!part)
		return tsi_err(TSOCK_ENOMEM, "no memory for a data set");
	part[c->parts++] =
		(struct tsi_column_part){ .first = first, .data = m->mem + at };
	part[c->parts] = (struct tsi_column_part){ .first = first + count };
	c->part = part;
	return 0;
}

int tsi_rows_labels(struct tsi_rows *r, int64_t *values, uint64_t count,
		    const char *more)
{
	struct tsi_columns *c = &r->columns;
	struct tsock_field f = { .name = "label", .dtype = TSOCK_I64 };
	unsigned k;
	int err;

	c->mem = values;
	r->labels = count;
	describe(&c->label, &f, sizeof(*values));
	c->label.data = (const uint8_t *)values;
	c->classes = true;
	if (!more)
		return 0;
	memset(f.name, 0, sizeof(f.name));
	memcpy(f.name, more, strlen(more) + 1);
	err = tsi_rows_field(r, &f, sizeof(*values), &k);
	if (!err)
		c->column[k].data = (const uint8_t *)(values + count);
	return err;
}

int tsi_rows_classes(struct tsi_rows *r, const char *names, uint32_t n)
{
	const char *end = names;

	for (uint32_t i = 0; i < n; i++)
		end += strlen(end) + 1;
	free(r->classes);
	r->classes = malloc((size_t)(end - names) + 1);
	if (!r->classes)
		return tsi_err(TSOCK_ENOMEM, "no memory for names of classes");
	memcpy(r->classes, names, (size_t)(end - names));
	r->nclasses = n;
	return 0;
}

/* ---- the table ---- */

/* The rows of a field, wherever they lie; SIZE_MAX: there is no such field. */
static uint64_t rows_of_column(const struct tsi_rows *r, unsigned column)
{
	struct tsi_rows *all = (struct tsi_rows *)(uintptr_t)r;
	const struct tsi_column *c = column_of(all, column);

	if (!c->bytes)
		return UINT64_MAX;
	if (c->run)
		return tsi_documents_count(r->columns.documents);
	return c->data ? r->labels : tsi_rows_count(r, column);
}

static int check_counts(const struct tsi_rows *r, uint64_t *rows)
{
	struct tsi_rows *all = (struct tsi_rows *)(uintptr_t)r;
	const char *first = NULL;

	*rows = 0;
	for (unsigned k = 0; k <= PIXELS; k++) {
		uint64_t n = rows_of_column(r, k);
		const char *name = column_of(all, k)->field.name;

		if (n == UINT64_MAX)
			continue;
		if (first && n != *rows)
			return tsi_err(TSOCK_EDATA,
				       "%s has %" PRIu64 " rows, and %s has "
				       "%" PRIu64 ": they are to be as many",
				       first, *rows, name, n);
		first = name;
		*rows = n;
	}
	if (!*rows)
		return tsi_err(TSOCK_EDATA, "%.300s holds no samples",
			       tsi_root_name(r->root));
	return 0;
}

static int check_labels(const struct tsi_rows *r)
{
	const int64_t *label = (const int64_t *)r->columns.label.data;

	for (uint64_t i = 0; r->columns.classes && i < r->labels; i++)
		if (label[i] < 0 || label[i] >= (int64_t)r->nclasses)
			return tsi_err(TSOCK_EDATA,
				       "%.300s: sample %" PRIu64
				       " is of class %" PRId64
				       ", and there are %" PRIu32 " classes",
				       tsi_root_name(r->root), i, label[i],
				       r->nclasses);
	return 0;
}

/* Pieces of the files, since reading all of them would take long. */
static int hash_files(struct tsi_rows *r)
{
	struct tsi_columns *c = &r->columns;
	uint64_t each = HASHED / c->maps ? HASHED / c->maps : 1;
	uint8_t piece[PIECE];
	uint64_t h = 0;

	for (unsigned k = 0; k < c->maps; k++) {
		const struct tsi_mapped *m = &c->map[k];

		h = tsi_hash(m->path, strlen(m->path) + 1, h);
		h = tsi_hash(&m->len, sizeof(m->len), h);
		for (uint64_t i = 0; i < each; i++) {
			uint64_t at = m->len / each * i;
			uint64_t n = m->len - at < PIECE ? m->len - at : PIECE;
			int err = tsi_rows_read(r, k, at, piece, n, "data");

			if (err)
				return err;
			h = tsi_hash(piece, n, h);
		}
	}
	c->hash = c->documents ? tsi_documents_hash(c->documents, h) : h;
	return 0;
}

static int fill(const struct tsi_rows *r, uint64_t rows, struct tsi_table *t)
{
	const struct tsi_columns *c = &r->columns;
	struct tsi_table_lengths n = { .count = rows,
				       .classes = r->nclasses,
				       .stamps = c->maps + r->in_folder,
				       .bare = true };
	const char *name = r->classes;
	struct tsi_table_writer w;
	int err;

	/* With the folder's own, which is empty. */
	n.names_len = strlen(tsi_root_name(r->root)) + 1 + r->in_folder;
	for (uint32_t i = 0; i < r->nclasses; i++) {
		n.names_len += strlen(name) + 1;
		name += strlen(name) + 1;
	}
	for (unsigned k = 0; k < c->maps; k++)
		n.names_len += strlen(c->map[k].path) + 1;
	err = tsi_table_begin(&w, t, &n, tsi_root_name(r->root));
	if (err)
		return err;
	name = r->classes;
	for (uint32_t i = 0; i < r->nclasses; i++, name += strlen(name) + 1)
		tsi_table_put_class(&w, name);
	for (unsigned k = 0; k < c->maps; k++)
		tsi_table_put_stamp(&w, c->map[k].path, &r->stamp[k]);
	if (r->in_folder)
		tsi_table_put_stamp(&w, "", &r->folder);
	return 0;
}

int tsi_rows_finish(struct tsi_rows *r, struct tsi_table *t)
{
	uint64_t rows;
	int err = check_counts(r, &rows);

	if (!err && !r->nclasses)
		err = tsi_rows_classes(r, "all", 1);
	if (!err)
		err = check_labels(r);
	if (!err)
		err = hash_files(r);
	if (!err)
		err = fill(r, rows, t);
	if (err)
		return err;
	tsi_columns_join(&r->columns);
	tsi_table_set_columns(t, &r->columns);
	r->finished = true;
	return 0;
}

/* ---- a format's operations ---- */

/* The column by which samples are found in files: that of the images, if any. */
static const struct tsi_column *first_column(const struct tsi_columns *c)
{
	if (c->pixels.parts)
		return &c->pixels;
	for (unsigned k = 0; k < c->n; k++)
		if (c->column[k].parts ||
		    c->column[k].run == TSI_COLUMNS_TOKENS)
			return &c->column[k];
	return &c->label;
}

/* Where a row lies, and how many bytes it has there. */
static const uint8_t *place_of(const struct tsi_columns *c, uint64_t row,
			       uint64_t *bytes)
{
	const struct tsi_column *k = first_column(c);
	struct tsi_documents_run run;
	unsigned p = 0;

	if (k->run) {
		tsi_documents_find(c->documents, row, &run);
		*bytes = run.tokens * tsock_dtype_size(k->field.dtype);
		return run.data;
	}
	while (k->part[p + 1].first <= row)
		p++;
	*bytes = k->bytes;
	return k->part[p].data + (row - k->part[p].first) * k->stride;
}

void tsi_rows_locate(const struct tsi_table *t, uint64_t i,
		     struct tsi_location *out)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	uint64_t bytes;
	const uint8_t *at = place_of(c, tsi_columns_row(c, i), &bytes);
	unsigned f = 0;

	while (at < c->map[f].mem || at >= c->map[f].mem + c->map[f].len)
		f++;
	*out = (struct tsi_location){
		.file = c->map[f].path,
		.offset = (uint64_t)(at - c->map[f].mem),
		.length = bytes,
		.size = bytes,
	};
}

int64_t tsi_rows_label(const struct tsi_table *t, uint64_t i)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	const int64_t *label = (const int64_t *)c->label.data;

	return c->classes ? label[tsi_columns_row(c, i)] : 0;
}
