/* SPDX-License-Identifier: MIT */
/*
 * arrays.c - the formats npy and npz: files that NumPy's save() and savez()
 * wrote, whose first dimension is that of samples.
 *
 * An array is a field, which is called as its file or its name in the file.
 * Files whose names differ in their last number only are parts of one array:
 * x_0.npy, x_1.npy, ...  An array of bytes that is called as images are is the
 * samples' image.
 */
#include "data/format.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "data/rows/files.h"
#include "data/rows/npy.h"
#include "data/rows/rows.h"
#include "data/rows/zip.h"

#define ARRAYS (TSI_COLUMNS + 2)

/* An array that was found, and what it is for. */
struct array {
	char name[32]; /* the field */
	struct tsi_npy first;
	unsigned column;
	bool image, planar;
	uint32_t size[3]; /* of an image */
};

struct arrays {
	struct tsi_rows *rows;
	struct array array[ARRAYS];
	unsigned n;
	bool has_image;
	bool heads_only;
	unsigned file; /* that is read */
	/* Of what kinds its members are, and which of them is served. */
	bool there[TSI_ROWS_EVALUATION + 1];
	enum tsi_rows_kind wanted;
};

static int open_root(const char *root, struct tsi_root *r)
{
	return tsi_rows_open_root(root,
				  "a .npy or .npz file, or the folder of "
				  "such files",
				  r);
}

/* ---- names ---- */

static bool is_one_of(const char *name, const char *words)
{
	size_t len = strlen(name);

	while (*words) {
		size_t n = strcspn(words, "|");

		if (n == len && !strncasecmp(name, words, n))
			return true;
		words += n + (words[n] == '|');
	}
	return false;
}

/*
 * Without folder, ending, "train" and the like, and, of a file, the part's
 * number.  Fails with EDATA: what is left names no field.
 */
static int field_name(const char *path, bool is_file, const char *what,
		      char to[32])
{
	static const char *const drop[] = { "train", "test", "val",
					    "validation", "valid" };
	const char *base = strrchr(path, '/');
	size_t n;

	base = base ? base + 1 : path;
	n = strcspn(base, ".");
	while (is_file && n > 1 && isdigit((unsigned char)base[n - 1]))
		n--;
	for (size_t k = 0; k < sizeof(drop) / sizeof(drop[0]); k++) {
		size_t len = strlen(drop[k]);

		if (n > len + 1 && !strncasecmp(base + n - len, drop[k], len) &&
		    strchr("_-", base[n - len - 1]))
			n -= len;
		else if (n > len + 1 && !strncasecmp(base, drop[k], len) &&
			 strchr("_-", base[len])) {
			base += len + 1;
			n -= len + 1;
		}
	}
	while (n > 1 && strchr("_-", base[n - 1]))
		n--;
	if (!n || n > 31)
		return tsi_err(TSOCK_EDATA,
			       "%s: the name of a field has 1 to 31 bytes, and "
			       "this one would have %zu: rename it",
			       what, n);
	snprintf(to, 32, "%.*s", (int)n, base);
	if (is_one_of(to, "label|labels|y|target|targets|class"))
		strcpy(to, "label");
	return 0;
}

/* An image has one or three channels, first or last, or none is said. */
static bool is_image(const struct array *a, uint32_t size[3], bool *planar)
{
	const struct tsi_npy *h = &a->first;
	const uint64_t *s = h->shape;

	if (h->dtype != TSOCK_U8 ||
	    !is_one_of(a->name, "image|images|img|imgs|x|data|inputs|pixels"))
		return false;
	*planar = false;
	for (uint32_t d = 1; d < h->ndim; d++)
		if (s[d] == 0 || s[d] > 65535)
			return false;
	size[0] = (uint32_t)s[1];
	size[1] = (uint32_t)s[2];
	size[2] = 1;
	if (h->ndim == 3)
		return true;
	if (h->ndim != 4)
		return false;
	size[2] = (uint32_t)s[3];
	if (size[2] == 1 || size[2] == 3)
		return true;
	*planar = true;
	size[0] = (uint32_t)s[2];
	size[1] = (uint32_t)s[3];
	size[2] = (uint32_t)s[1];
	return size[2] == 1 || size[2] == 3;
}

/* ---- arrays ---- */

static size_t row_bytes(const struct tsi_npy *h)
{
	size_t bytes = tsock_dtype_size(h->dtype);

	for (uint32_t d = 1; d < h->ndim; d++)
		bytes *= h->shape[d];
	return bytes;
}

static int begin_field(struct arrays *all, struct array *a, const char *what)
{
	const struct tsi_npy *h = &a->first;
	struct tsock_field f = { .dtype = h->dtype };

	if (!h->ndim || h->ndim > TSOCK_MAX_DIMS + 1)
		return tsi_err(TSOCK_EDATA,
			       "%s has %u dimensions: one for samples and up "
			       "to %d more are wanted",
			       what, h->ndim, TSOCK_MAX_DIMS);
	if (!row_bytes(h))
		return tsi_err(TSOCK_EDATA, "%s: its rows are empty", what);
	a->image = !all->has_image && is_image(a, a->size, &a->planar);
	all->has_image |= a->image;
	if (all->heads_only)
		return 0;
	if (a->image)
		return tsi_rows_pixels(all->rows, a->size, a->planar,
				       row_bytes(h), &a->column);
	if (is_one_of(a->name, "image|index|box|key|draws"))
		return tsi_err(TSOCK_EDATA,
			       "%s: a field can't be called %s, which every "
			       "stream has: rename it",
			       what, a->name);
	memcpy(f.name, a->name, sizeof(f.name));
	f.ndim = h->ndim - 1;
	for (uint32_t d = 0; d < f.ndim; d++)
		f.shape[d] = h->shape[d + 1];
	return tsi_rows_field(all->rows, &f, row_bytes(h), &a->column);
}

static bool same_rows(const struct tsi_npy *a, const struct tsi_npy *b)
{
	return a->dtype == b->dtype && a->ndim == b->ndim &&
	       !memcmp(a->shape + 1, b->shape + 1,
		       sizeof(a->shape) - sizeof(a->shape[0]));
}

/* The array at this place, which is a file of this name or a member of one. */
static int add_array(struct arrays *all, const struct tsi_npy_place *p,
		     const char *name, bool is_file)
{
	struct array *a = all->array;
	const char *what = p->name;
	struct tsi_npy h;
	char field[32];
	int err = field_name(name, is_file, what, field);

	if (!err)
		err = tsi_npy_read(all->rows, p, &h);
	if (err)
		return err;
	while (a < all->array + all->n && strcmp(a->name, field) != 0)
		a++;
	if (a == all->array + all->n) {
		if (all->n == ARRAYS)
			return tsi_err(TSOCK_ENOTSUP,
				       "%s is one array too many: %d are the "
				       "most",
				       what, ARRAYS);
		*a = (struct array){ .first = h };
		memcpy(a->name, field, sizeof(field));
		err = begin_field(all, a, what);
		if (err)
			return err;
		all->n++;
	} else if (!same_rows(&a->first, &h)) {
		return tsi_err(TSOCK_EDATA,
			       "%s has rows of another dtype or shape than the "
			       "arrays before it that are called %s",
			       what, field);
	}
	if (all->heads_only)
		return 0;
	return tsi_rows_part(all->rows, a->column, all->file, h.at, h.shape[0]);
}

static int add_member(void *arg, const struct tsi_zip_member *m)
{
	struct arrays *all = arg;
	char what[300];

	if (all->there[TSI_ROWS_TRAINING] && all->there[TSI_ROWS_EVALUATION] &&
	    tsi_rows_kind_of(m->name) != all->wanted)
		return 0;
	snprintf(what, sizeof(what), "%.150s: %.128s",
		 tsi_rows_path(all->rows, all->file), m->name);
	return add_array(all,
			 &(struct tsi_npy_place){ .file = all->file,
						  .at = m->at,
						  .len = m->len,
						  .name = what },
			 m->name, false);
}

static int note_member(void *arg, const struct tsi_zip_member *m)
{
	struct arrays *all = arg;

	all->there[tsi_rows_kind_of(m->name)] = true;
	return 0;
}

/* Of x_train and x_test in one file, as Keras has MNIST, one part is served. */
static int add_members(struct arrays *all)
{
	int err;

	memset(all->there, 0, sizeof(all->there));
	err = tsi_zip_each(all->rows, all->file, note_member, all);
	return err ? err : tsi_zip_each(all->rows, all->file, add_member, all);
}

static bool is_zip(const char *path)
{
	size_t len = strlen(path);

	return len > 4 && !strcasecmp(path + len - 4, ".npz");
}

static int add_file(struct arrays *all, const char *path)
{
	int err = tsi_rows_map(all->rows, path, &all->file);

	if (err)
		return err;
	if (is_zip(path))
		return add_members(all);
	return add_array(all,
			 &(struct tsi_npy_place){
				 .file = all->file,
				 .len = tsi_rows_len(all->rows, all->file),
				 .name = path },
			 path, true);
}

/* Read the heads of the files; the arrays are all->rows's. */
static int read_files(const struct tsi_root *r, const struct tsi_format_opts *o,
		      struct arrays *all)
{
	struct tsi_rows_files l = { .name = NULL };
	int err = tsi_rows_create(r, &all->rows);

	all->wanted = o->held_out ? TSI_ROWS_EVALUATION : TSI_ROWS_TRAINING;
	if (!err)
		err = tsi_rows_list(r, ".npy|.npz|", o->held_out, &l);
	for (unsigned i = 0; i < l.n && !err; i++)
		err = add_file(all, l.name[i]);
	tsi_rows_files_free(&l);
	return err;
}

static int look(const char *root, const struct tsi_format_opts *o,
		struct tsi_samples *out)
{
	struct arrays all = { .heads_only = true };
	struct tsi_root r;
	int err;

	tsi_root_init(&r);
	err = open_root(root, &r);
	if (!err)
		err = read_files(&r, o, &all);
	tsi_rows_destroy(all.rows);
	tsi_root_close(&r);
	if (err)
		return err;
	out->imageless = !all.has_image;
	for (unsigned k = 0; k < all.n; k++) {
		const struct array *a = &all.array[k];

		if (!a->image)
			continue;
		out->height = a->size[0];
		out->width = a->size[1];
		snprintf(out->train, sizeof(out->train),
			 "CenterCrop((%u, %u))%s", out->height, out->width,
			 a->size[2] == 1 ? " Grayscale(1)" : "");
	}
	memcpy(out->eval, out->train, sizeof(out->eval));
	return 0;
}

static int scan(const struct tsi_root *r, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	struct arrays all = { .rows = NULL };
	int err = read_files(r, o, &all);

	if (!err)
		err = tsi_rows_finish(all.rows, t);
	tsi_rows_destroy(all.rows);
	return err;
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

const struct tsi_format tsi_format_npy = {
	.name = "npy",
	.layout = "-npy",
	.splits_inside = true,
	.nameless = true,
	.of_arrays = true,
	.keeps_index = true,
	.open = open_root,
	.look = look,
	.scan = scan,
	.locate = tsi_rows_locate,
	.label = tsi_rows_label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};
