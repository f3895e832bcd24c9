/* SPDX-License-Identifier: MIT */
/*
 * columnar.c - the format table: a file that says where the bytes of each
 * sample are, in files of any kind, and what else belongs to it.
 *
 * A table's rows are not copied: the file is mapped, and its columns are asked
 * for them.  What is copied is what others hold pointers to, or count by: paths,
 * numbers of classes, and the samples' names once one is asked for.
 */
#include "data/format.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/log.h"
#include "data/columnar/check.h"
#include "data/columnar/fields.h"
#include "data/columnar/file.h"
#include "data/columnar/numbers.h"
#include "data/columnar/stamps.h"
#include "data/columns.h"
#include "data/mapped.h"

#define WRITE_AGAIN "; write the table again"
#define LARGE_PAGE ((size_t)2 << 20)

/* What a table's columns say of where samples are. */
struct rows {
	struct tsi_columns columns; /* first: the table owns it */
	struct tsi_columnar file;
	const struct tsi_columnar_entry *image; /* NULL: there are no images */
	const struct tsi_columnar_entry *files, *classes;
	const struct tsi_columnar_entry *key; /* NULL: samples have no names */
	bool numbered; /* and are called by the numbers of their rows */
	const struct tsi_columnar_range *range;             /* in the file */
	const struct tsi_columnar_range *other[TSI_OTHERS]; /* likewise */
	const uint64_t *file_at; /* a copy, as what follows is */
	const char *paths;
	const uint32_t
		*label; /* numbers of classes; NULL: there is one class */
	/* Names are read, or made, when one is asked for; see member(). */
	pthread_mutex_t lock;
	bool asked; /* under the lock */
	_Atomic(const uint64_t *) key_at;
};

static const struct rows *rows_of(const struct tsi_table *t)
{
	return (const struct rows *)tsi_table_columns(t);
}

/* ---- which rows ---- */

/* A file that tsock.index() reads. */
static bool is_of_others(const char *path)
{
	const char *end = strrchr(path, '.');

	return end &&
	       (!strcasecmp(end, ".parquet") || !strcasecmp(end, ".arrow")) &&
	       !tsi_columnar_is_at(path);
}

/* What isn't a table yet. */
static int err_no_table(const char *root)
{
	return tsi_err(
		TSOCK_EARG,
		"%s is no table: python -m tsock.index %s (for "
		"validation with --split val) writes one of the samples "
		"there, unless there is one that fits, and prints its "
		"path, which is given as --root (tsock.DataLoader(root=) "
		"does both)",
		root, root);
}

static int open_root(const char *root, struct tsi_root *r)
{
	struct stat st;

	if (stat(root, &st))
		return tsi_err(TSOCK_EDATA,
			       "can't open the table %s: %s; write it with "
			       "tsock.index() or python -m tsock.index",
			       root, strerror(errno));
	if (S_ISDIR(st.st_mode) || is_of_others(root))
		return err_no_table(root);
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
		return tsi_err(TSOCK_EDATA,
			       "%s has a column image, and no column %s of the "
			       "paths of the images' files" WRITE_AGAIN,
			       c->path, name);
	if (e->kind != (uint32_t)kind)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s: the column %s is of another kind than a "
			       "table of images has there",
			       c->path, name);
	return 0;
}

/* Images that lie there as pixels, of which tsock-pack makes columns. */
static int find_pixels(struct rows *r)
{
	const struct tsi_columnar *c = &r->file;
	const struct tsi_columnar_entry *e =
		tsi_columnar_find(c, TSI_COLUMNAR_PIXELS);
	bool planar = !e;
	uint32_t channels;

	if (!e)
		e = tsi_columnar_find(c, TSI_COLUMNAR_PLANES);
	if (!e)
		return 0;
	channels = e->shape[planar ? 0 : 2];
	if (e->kind != TSI_COLUMNAR_VALUES || e->dtype != TSOCK_U8 ||
	    e->ndim != 3 || (channels != 1 && channels != 3) || r->image)
		return tsi_columnar_fail(c, e, "has no images");
	r->columns.planar = planar;
	r->columns.pixels = (struct tsi_column){
		.field = { .name = "image",
			   .dtype = TSOCK_U8,
			   .ndim = 3,
			   .shape = { e->shape[planar], e->shape[planar + 1],
				      channels } },
		.bytes = tsi_columnar_item(e),
		.data = tsi_columnar_data(c, e),
		.mapped = true,
	};
	return tsi_columnar_check_count(c, e);
}

static int find_rows(struct rows *r)
{
	const struct tsi_columnar *c = &r->file;
	int err =
		find_column(c, "image", TSI_COLUMNAR_RANGES, false, &r->image);

	if (!err)
		err = tsi_columnar_check_count(c, r->image);
	if (!err)
		err = find_column(c, "files", TSI_COLUMNAR_TEXT, r->image,
				  &r->files);
	if (!err)
		err = find_column(c, "key", TSI_COLUMNAR_TEXT, false, &r->key);
	if (!err)
		err = tsi_columnar_check_count(c, r->key);
	if (err)
		return err;
	if (!c->head.rows)
		return tsi_err(TSOCK_EDATA, "%s is a table of no rows",
			       c->path);
	err = find_pixels(r);
	if (err)
		return err;
	r->columns.imageless = !r->image && !r->columns.pixels.bytes;
	r->range = r->image ? tsi_columnar_data(c, r->image) : NULL;
	return 0;
}

/* Where the images behind the first lie. */
static void find_others(struct rows *r)
{
	const struct tsi_columns *c = &r->columns;

	for (unsigned k = 0; k < tsi_columns_others(c); k++)
		r->other[k] = tsi_columnar_data(
			&r->file,
			tsi_columnar_find(&r->file, tsi_columns_other(c, k)));
}

/* Paths are kept, if there are images in them. */
static int load_files(struct rows *r, unsigned threads)
{
	uint64_t *at;
	int err;

	if (!r->image)
		return 0;
	err = tsi_columnar_load(&r->file, r->files, threads, &at);
	if (err)
		return err;
	r->columns.texts[0] = at;
	r->file_at = at;
	r->paths = (const char *)(at + r->files->count + 1);
	return 0;
}

/* ---- classes ---- */

/* Large pages, where there are any, are filled in a third of the time. */
static void *alloc_numbers(size_t len)
{
	void *mem = len < 2 * LARGE_PAGE
			    ? NULL
			    : aligned_alloc(LARGE_PAGE, (len / LARGE_PAGE + 1) *
								LARGE_PAGE);

	if (!mem)
		return malloc(len);
	madvise(mem, len, MADV_HUGEPAGE);
	return mem;
}

static int find_classes(struct rows *r)
{
	const struct tsi_columnar *c = &r->file;
	const struct tsi_columnar_entry *label = tsi_columnar_find(c, "label");
	int err = find_column(c, "classes", TSI_COLUMNAR_TEXT, false,
			      &r->classes);
	uint32_t *number;

	if (err || !r->classes)
		return err;
	if (!label || label->kind != TSI_COLUMNAR_VALUES ||
	    label->dtype != TSOCK_I64 || label->ndim)
		return tsi_err(TSOCK_EDATA,
			       "%s: there are classes, but no column label of "
			       "their numbers (int64)",
			       c->path);
	if (r->classes->count > UINT32_MAX)
		return tsi_err(TSOCK_ENOTSUP,
			       "%s has %" PRIu64 " classes: %" PRIu32
			       " are the most",
			       c->path, r->classes->count, UINT32_MAX);
	err = tsi_columnar_check_count(c, label);
	if (err)
		return err;
	number = alloc_numbers(label->count * sizeof(*number));
	if (!number)
		return tsi_err(TSOCK_ENOMEM, "no memory for the classes of %s",
			       c->path);
	r->columns.mem = number;
	r->columns.classes = true;
	r->label = number;
	return 0;
}

/* Look at all rows; *hash is a number for them. */
static int check_rows(struct rows *r, unsigned threads)
{
	struct tsi_columnar *c = &r->file;
	struct tsi_columnar_limits l = { .files = r->image ? r->files->count
							   : 0 };

	if (r->classes) {
		l.label = tsi_columnar_find(c, "label");
		l.classes = r->classes->count;
		l.labels = r->columns.mem;
	}
	return tsi_columnar_check(c, &l, threads, &r->columns.hash);
}

/* Labels that are classes' numbers are served from where they were checked. */
static void describe_classes(struct rows *r)
{
	struct tsi_column *to = &r->columns.label;

	if (!r->classes)
		return;
	to->data = (const uint8_t *)r->label;
	to->mapped = false;
	to->narrow = true;
}

/* ---- the scan ---- */

/* Two texts, each ended by a zero, which are left out if they are none. */
static void take_recipes(const char *root, struct tsi_samples *out)
{
	struct tsi_columnar_entry e;
	struct {
		uint64_t at[3];
		char text[sizeof(out->train) + sizeof(out->eval)];
	} is = { .at = { 0 } };
	size_t n;

	if (!tsi_columnar_peek(root, TSI_COLUMNAR_RECIPES, &e) || e.count != 2)
		return;
	n = tsi_columnar_peek_data(root, &e, &is, sizeof(is));
	if (n < sizeof(is.at) || is.at[1] > sizeof(out->train) ||
	    is.at[2] < is.at[1] || is.at[2] - is.at[1] > sizeof(out->eval) ||
	    is.at[2] > n - sizeof(is.at) || !is.at[1] ||
	    is.text[is.at[1] - 1] || is.at[2] == is.at[1] ||
	    is.text[is.at[2] - 1])
		return;
	strcpy(out->train, is.text);
	strcpy(out->eval, is.text + is.at[1]);
}

/* Images that lie there as pixels have one size; false: there are none. */
static bool look_at_pixels(const char *root, struct tsi_samples *out)
{
	struct tsi_columnar_entry e;
	bool planar = false;

	if (!tsi_columnar_peek(root, TSI_COLUMNAR_PIXELS, &e)) {
		planar = true;
		if (!tsi_columnar_peek(root, TSI_COLUMNAR_PLANES, &e))
			return false;
	}
	out->height = e.shape[planar];
	out->width = e.shape[planar + 1];
	take_recipes(root, out);
	return true;
}

static int look(const char *root, const struct tsi_format_opts *o,
		struct tsi_samples *out)
{
	struct tsi_columnar_entry e;

	(void)o;
	out->imageless = !tsi_columnar_peek(root, "image", &e) &&
			 !look_at_pixels(root, out);
	return 0;
}

static int fill_table(const struct tsi_root *root, const struct rows *r,
		      const uint64_t *at, const struct tsi_stamp *stamp,
		      struct tsi_table *t)
{
	struct tsi_table_lengths n = { .count = r->file.head.rows,
				       .classes = 1,
				       .stamps = 1,
				       .bare = true };
	const char *file = tsi_root_pattern(root);
	const char *name = "all";
	struct tsi_table_writer w;
	int err;

	n.names_len = strlen(tsi_root_name(root)) + 1 + strlen(file) + 1;
	if (at) {
		n.classes = (uint32_t)r->classes->count;
		n.names_len += at[n.classes];
		name = (const char *)(at + n.classes + 1);
	} else {
		n.names_len += strlen(name) + 1;
	}
	err = tsi_table_begin(&w, t, &n, tsi_root_name(root));
	if (err)
		return err;
	for (uint32_t i = 0; i < n.classes; i++)
		tsi_table_put_class(&w, name + (at ? at[i] : 0));
	tsi_table_put_stamp(&w, file, stamp);
	return 0;
}

/* Rows without an image, or with parts of one file, have no path to be called
 * by: their numbers are. */
static int find_parts(struct rows *r)
{
	uint64_t rows = r->file.head.rows;
	bool *seen;

	r->numbered = !r->image;
	if (!r->image)
		return 0;
	seen = calloc(r->files->count + 1, sizeof(*seen));
	if (!seen)
		return tsi_err(TSOCK_ENOMEM, "no memory for samples' names");
	for (uint64_t i = 0; i < rows && !r->numbered; i++) {
		struct tsi_columnar_range at;

		if (!tsi_mapped_copy(&at, &r->range[i], sizeof(at)) ||
		    at.file >= r->files->count)
			continue;
		r->numbered = at.length && seen[at.file];
		seen[at.file] = true;
	}
	free(seen);
	return 0;
}

static int take_columns(const struct tsi_root *root, unsigned threads,
			bool named, const struct tsi_stamp *stamp,
			struct rows *r, struct tsi_table *t)
{
	uint64_t *classes = NULL;
	int err = find_rows(r);

	if (!err)
		err = find_classes(r);
	if (!err)
		err = check_rows(r, threads);
	if (!err)
		err = load_files(r, threads);
	if (!err && r->image)
		err = tsi_columnar_check_stamps(root, &r->file, r->paths,
						r->file_at, r->files->count);
	if (!err)
		err = tsi_columnar_fields(&r->file, &r->columns);
	if (!err && named && !r->key)
		err = find_parts(r);
	if (!err && r->classes)
		err = tsi_columnar_load(&r->file, r->classes, 1, &classes);
	if (!err) {
		describe_classes(r);
		find_others(r);
		err = fill_table(root, r, classes, stamp, t);
	}
	free(classes);
	return err;
}

static int scan(const struct tsi_root *root, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	struct rows *r = calloc(1, sizeof(*r));
	struct tsi_mapped *map = calloc(1, sizeof(*map));
	struct tsi_stamp stamp;
	int err = r && map ? tsi_mapped_open(root, tsi_root_pattern(root), map,
					     &stamp)
			   : tsi_err(TSOCK_ENOMEM, "no memory for a table");

	if (err) {
		free(map);
		free(r);
		return err;
	}
	r->columns.map = map;
	r->columns.maps = 1;
	pthread_mutex_init(&r->lock, NULL);
	err = tsi_columnar_open(map, tsi_root_name(root), &r->file);
	if (!err)
		err = take_columns(root, o->threads, o->named, &stamp, r, t);
	if (err) {
		tsi_columns_destroy(&r->columns);
		return err;
	}
	r->file.path = tsi_mapped_path(map); /* the root may go before */
	tsi_table_set_columns(t, &r->columns);
	return 0;
}

/* No file is called so: its row is a bad one, and says why. */
#define OVERWRITTEN \
	"(a row of a table that was written over while it was served)"

static void locate_in(const struct rows *r,
		      const struct tsi_columnar_range *range, uint64_t i,
		      struct tsi_location *out)
{
	uint64_t row = tsi_columns_row(&r->columns, i);
	struct tsi_columnar_range at;

	*out = (struct tsi_location){ .file = "" };
	if (!range)
		return;
	if (!tsi_mapped_copy(&at, &range[row], sizeof(at)) ||
	    at.file >= r->files->count || (!at.length && at.offset)) {
		out->file = OVERWRITTEN;
		return;
	}
	out->file = r->paths + r->file_at[at.file];
	out->offset = at.offset;
	out->length = at.length;
	out->size = at.length;
}

static void locate(const struct tsi_table *t, uint64_t i,
		   struct tsi_location *out)
{
	const struct rows *r = rows_of(t);

	locate_in(r, r->range, i, out);
}

static void locate_other(const struct tsi_table *t, unsigned k, uint64_t i,
			 struct tsi_location *out)
{
	const struct rows *r = rows_of(t);

	locate_in(r, r->other[k], i, out);
}

/* Reads all names, the first time; without them samples are called by files. */
static const uint64_t *find_keys(struct rows *r)
{
	uint64_t *at = NULL;

	pthread_mutex_lock(&r->lock);
	if (!r->asked &&
	    (r->key ? tsi_columnar_load(&r->file, r->key, 1, &at)
		    : tsi_columnar_numbers(r->file.head.rows, &at)))
		tsi_log(TSOCK_LOG_WARN, "samples have no names: %s",
			tsock_errmsg());
	else if (!r->asked)
		atomic_store(&r->key_at, at);
	if (!r->asked)
		r->columns.texts[1] = at;
	r->asked = true;
	pthread_mutex_unlock(&r->lock);
	return atomic_load(&r->key_at);
}

static const char *member(const struct tsi_table *t, uint64_t i)
{
	struct rows *r = (struct rows *)(uintptr_t)rows_of(t);
	const uint64_t *at = atomic_load(&r->key_at);

	if (!r->key && !r->numbered)
		return NULL;
	if (!at)
		at = find_keys(r);
	return at ? (const char *)(at + r->file.head.rows + 1) +
			       at[tsi_columns_row(&r->columns, i)]
		  : NULL;
}

static int64_t label(const struct tsi_table *t, uint64_t i)
{
	const struct rows *r = rows_of(t);

	return r->label ? r->label[tsi_columns_row(&r->columns, i)] : 0;
}

static void labels(const struct tsi_table *t, uint64_t i, unsigned n,
		   int64_t *to)
{
	const struct rows *r = rows_of(t);

	const uint64_t *row = r->columns.row;

	for (unsigned k = 0; k < n; k++)
		to[k] = r->label ? r->label[row ? row[i + k] : i + k] : 0;
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

/* Tables, and what is served by one. */
#define TABLE(word) \
	{ \
		.name = (word), .layout = "-table", .keeps_index = true, \
		.splits_inside = true, .open = open_root, .look = look, \
		.scan = scan, .locate = locate, .locate_other = locate_other, \
		.member = member, .label = label, .labels = labels, \
		.fields = fields, \
		.nfields = sizeof(fields) / sizeof(fields[0]) \
	}

const struct tsi_format tsi_format_table = TABLE("table");
const struct tsi_format tsi_format_arrow = TABLE("arrow");
const struct tsi_format tsi_format_parquet = TABLE("parquet");
