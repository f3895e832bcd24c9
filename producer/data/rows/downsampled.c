/* SPDX-License-Identifier: MIT */
/*
 * downsampled.c - the formats imagenet32 and imagenet64: the batches of
 * image-net.org's downsampled ImageNet (arXiv:1707.08819), pickled or .npz.
 *
 * Labels are 1 to 1000 in the files, and 0 to 999 in a stream.
 */
#include "data/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "data/rows/batches.h"
#include "data/rows/files.h"
#include "data/rows/npy.h"
#include "data/rows/zip.h"

#define CLASSES 1000

static bool is_batch(const char *name)
{
	return !strncmp(name, "train_data", 10) ||
	       !strncmp(name, "val_data", 8);
}

static bool is_zip(const char *name)
{
	size_t len = strlen(name);

	return len > 4 && !strcasecmp(name + len - 4, ".npz");
}

static int open_root(const char *root, struct tsi_root *r)
{
	struct tsi_rows_files l;
	bool there = false;
	int err = tsi_rows_open_root(root,
				     "the folder of train_data_batch_1 "
				     "and so on",
				     r);

	if (err)
		return err;
	err = tsi_rows_list(r, "", false, &l);
	if (err)
		return err;
	for (unsigned i = 0; i < l.n; i++)
		there |= is_batch(l.name[i]);
	tsi_rows_files_free(&l);
	return there ? 0
		     : tsi_err(TSOCK_EARG,
			       "%s holds no train_data_batch_1 nor val_data, "
			       "pickled or .npz",
			       root);
}

/* The arrays of a .npz. */
struct npz {
	struct tsi_batches *batches;
	unsigned file;
	struct tsi_npy data, labels;
};

static int note_member(void *arg, const struct tsi_zip_member *m)
{
	struct npz *z = arg;
	struct tsi_npy *to = !strcmp(m->name, "data.npy")     ? &z->data
			     : !strcmp(m->name, "labels.npy") ? &z->labels
							      : NULL;

	if (!to)
		return 0;
	return tsi_npy_read(z->batches->rows,
			    &(struct tsi_npy_place){ .file = z->file,
						     .at = m->at,
						     .len = m->len,
						     .name = m->name },
			    to);
}

static int add_labels(struct npz *z)
{
	const struct tsi_npy *a = &z->labels;
	size_t size = tsock_dtype_size(a->dtype);
	int err = 0;

	for (uint64_t i = 0; i < a->shape[0] && !err; i++) {
		uint8_t raw[8] = { 0 };
		uint64_t v = 0;

		err = tsi_rows_read(z->batches->rows, z->file, a->at + i * size,
				    raw, size, "labels");
		for (size_t k = size; k-- > 0;)
			v = v << 8 | raw[k];
		if (!err)
			err = tsi_batches_label(z->batches, (int64_t)(v - 1),
						0);
	}
	return err;
}

static int add_npz(struct tsi_batches *b, unsigned file)
{
	struct npz z = { .batches = b, .file = file };
	uint64_t each = (uint64_t)b->side * b->side * 3;
	int err = tsi_zip_each(b->rows, file, note_member, &z);

	if (err)
		return err;
	if (z.data.dtype != TSOCK_U8 || z.data.ndim != 2 ||
	    z.data.shape[1] != each || z.labels.ndim != 1 ||
	    z.labels.shape[0] != z.data.shape[0] ||
	    z.labels.dtype == TSOCK_F32 || z.labels.dtype == TSOCK_F64)
		return tsi_err(
			TSOCK_EDATA,
			"%s holds no uint8 data of %u x %u pixels, and a "
			"label for each",
			tsi_rows_path(b->rows, file), b->side, b->side);
	err = add_labels(&z);
	return err ? err
		   : tsi_rows_part(b->rows, b->pixels, file, z.data.at,
				   z.data.shape[0]);
}

static int add_files(struct tsi_batches *b, const struct tsi_rows_files *l,
		     bool held_out)
{
	const char *part = held_out ? "val_data" : "train_data";
	unsigned file;
	int err = 0;

	for (unsigned i = 0; i < l->n && !err; i++) {
		const char *name = l->name[i];

		if (strncmp(name, part, strlen(part)) != 0)
			continue;
		err = tsi_rows_map(b->rows, name, &file);
		if (!err)
			err = is_zip(name)
				      ? add_npz(b, file)
				      : tsi_batches_pickle(b, file, "labels",
							   NULL, 1);
	}
	return err;
}

/* The files have numbers alone. */
static int name_classes(struct tsi_rows *rows)
{
	char names[CLASSES * 5], *to = names;

	for (unsigned k = 1; k <= CLASSES; k++)
		to += snprintf(to, (size_t)(names + sizeof(names) - to), "%u",
			       k) +
		      1;
	return tsi_rows_classes(rows, names, CLASSES);
}

static int scan_side(const struct tsi_root *r, const struct tsi_format_opts *o,
		     uint32_t side, struct tsi_table *t)
{
	struct tsi_batches b = { .rows = NULL };
	struct tsi_rows_files l = { .name = NULL };
	int err = tsi_batches_begin(&b, r, side, (size_t)side * side * 3);

	if (!err)
		err = tsi_rows_list(r, "", o->held_out, &l);
	if (!err)
		err = add_files(&b, &l, o->held_out);
	if (!err)
		err = name_classes(b.rows);
	if (!err)
		err = tsi_batches_finish(&b, NULL, t);
	tsi_batches_end(&b);
	tsi_rows_files_free(&l);
	return err;
}

static int scan_32(const struct tsi_root *r, const struct tsi_format_opts *o,
		   struct tsi_table *t)
{
	return scan_side(r, o, 32, t);
}

static int scan_64(const struct tsi_root *r, const struct tsi_format_opts *o,
		   struct tsi_table *t)
{
	return scan_side(r, o, 64, t);
}

static int look_32(const char *root, const struct tsi_format_opts *o,
		   struct tsi_samples *out)
{
	(void)root;
	(void)o;
	strcpy(out->train, "RandomCrop(32, padding=4) RandomHorizontalFlip()");
	strcpy(out->eval, "CenterCrop(32)");
	out->width = out->height = 32;
	return 0;
}

static int look_64(const char *root, const struct tsi_format_opts *o,
		   struct tsi_samples *out)
{
	(void)root;
	(void)o;
	strcpy(out->train, "RandomCrop(64, padding=8) RandomHorizontalFlip()");
	strcpy(out->eval, "CenterCrop(64)");
	out->width = out->height = 64;
	return 0;
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

#define OF_BOTH \
	.splits_inside = true, .names_stream = true, .nameless = true, \
	.of_arrays = true, .keeps_index = true, .open = open_root, \
	.locate = tsi_rows_locate, .label = tsi_rows_label, .fields = fields, \
	.nfields = sizeof(fields) / sizeof(fields[0])

const struct tsi_format tsi_format_imagenet32 = {
	OF_BOTH,         .name = "imagenet32", .layout = "-imagenet32",
	.look = look_32, .scan = scan_32,
};

const struct tsi_format tsi_format_imagenet64 = {
	OF_BOTH,         .name = "imagenet64", .layout = "-imagenet64",
	.look = look_64, .scan = scan_64,
};
