/* SPDX-License-Identifier: MIT */
/*
 * mnist.c - the format mnist: the IDX files of MNIST, Fashion-MNIST and KMNIST,
 * unpacked, as torchvision keeps them.
 *
 * A file is a magic number, its dimensions as big-endian u32, and bytes:
 * yann.lecun.org/exdb/mnist.  docs/inside/adding.md goes through this file.
 */
#include "data/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "data/rows/files.h"
#include "data/rows/rows.h"

#define IMAGES 0x803 /* bytes, of three dimensions */
#define LABELS 0x801

/* Where below the root the files are; NULL: nowhere. */
static const char *find_folder(const struct tsi_root *r)
{
	static const char *const all[] = { "", "raw/", "MNIST/raw/",
					   "FashionMNIST/raw/", "KMNIST/raw/" };
	char path[64];
	struct stat st;

	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
		snprintf(path, sizeof(path), "%strain-images-idx3-ubyte",
			 all[k]);
		if (!tsi_root_stat(r, path, &st))
			return all[k];
	}
	return NULL;
}

static int open_root(const char *root, struct tsi_root *r)
{
	int err = tsi_rows_open_root(root, "the folder of MNIST's files", r);

	if (err || find_folder(r))
		return err;
	return tsi_err(TSOCK_EARG,
		       "%s holds no train-images-idx3-ubyte, nor does a folder "
		       "raw or MNIST/raw in it: unpack MNIST's files there "
		       "(gunzip)",
		       root);
}

/* The recipes for images of 28 x 28 pixels and one channel. */
static int look(const char *root, const struct tsi_format_opts *o,
		struct tsi_samples *out)
{
	(void)root;
	(void)o;
	strcpy(out->train, "CenterCrop(28) Grayscale(1)");
	strcpy(out->eval, out->train);
	out->width = out->height = 28;
	return 0;
}

/* Map "FOLDER/PART-WHAT", of this kind; *n rows begin at byte *at. */
static int map_file(struct tsi_rows *rows, const struct tsi_format_opts *o,
		    const char *folder, const char *what, uint32_t magic,
		    unsigned *file, uint32_t dims[3])
{
	unsigned ndim = magic & 255;
	uint8_t head[16];
	char path[96];
	int err;

	snprintf(path, sizeof(path), "%s%s-%s", folder,
		 o->held_out ? "t10k" : "train", what);
	err = tsi_rows_map(rows, path, file);
	if (!err)
		err = tsi_rows_read(rows, *file, 0, head, 4 + 4 * ndim, "head");
	for (unsigned k = 0; k <= ndim && !err; k++) {
		const uint8_t *p = head + 4 * k;
		uint32_t v = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
			     (uint32_t)p[2] << 8 | p[3];

		if (k > 0)
			dims[k - 1] = v;
		else if (v != magic)
			err = tsi_err(TSOCK_EDATA, "%s is no IDX file of bytes",
				      path);
	}
	return err;
}

static int add_images(struct tsi_rows *rows, const struct tsi_format_opts *o,
		      const char *folder)
{
	uint32_t n[3], shape[3];
	unsigned file, pixels;
	int err = map_file(rows, o, folder, "images-idx3-ubyte", IMAGES, &file,
			   n);

	if (err)
		return err;
	if (!n[1] || !n[2] || n[1] > 65535 || n[2] > 65535)
		return tsi_err(TSOCK_EDATA, "%s: images of %u x %u pixels",
			       tsi_rows_path(rows, file), n[2], n[1]);
	shape[0] = n[1];
	shape[1] = n[2];
	shape[2] = 1;
	err = tsi_rows_pixels(rows, shape, false, (size_t)n[1] * n[2], &pixels);
	return err ? err : tsi_rows_part(rows, pixels, file, 16, n[0]);
}

static int add_labels(struct tsi_rows *rows, const struct tsi_format_opts *o,
		      const char *folder)
{
	uint32_t n[3];
	unsigned file;
	uint8_t *byte;
	int64_t *label;
	int err = map_file(rows, o, folder, "labels-idx1-ubyte", LABELS, &file,
			   n);

	if (err)
		return err;
	byte = malloc((size_t)n[0] + 1);
	label = malloc(((size_t)n[0] + 1) * sizeof(*label));
	if (!byte || !label)
		err = tsi_err(TSOCK_ENOMEM, "no memory for labels");
	if (!err)
		err = tsi_rows_read(rows, file, 8, byte, n[0], "labels");
	for (uint32_t i = 0; i < n[0] && !err; i++)
		label[i] = byte[i];
	free(byte);
	if (!err)
		return tsi_rows_labels(rows, label, n[0], NULL);
	free(label);
	return err;
}

static int scan(const struct tsi_root *r, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	static const char names[] = "0\0001\0002\0003\0004\0005\0006\0007\0008"
				    "\0009";
	const char *folder = find_folder(r);
	struct tsi_rows *rows = NULL;
	int err = tsi_rows_create(r, &rows);

	if (!err && !folder)
		err = tsi_err(TSOCK_EDATA, "the files of %.300s are gone",
			      tsi_root_name(r));
	if (!err)
		err = add_images(rows, o, folder);
	if (!err)
		err = add_labels(rows, o, folder);
	if (!err)
		err = tsi_rows_classes(rows, names, 10);
	if (!err)
		err = tsi_rows_finish(rows, t);
	tsi_rows_destroy(rows);
	return err;
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

const struct tsi_format tsi_format_mnist = {
	.name = "mnist",
	.layout = "-mnist",
	.splits_inside = true,
	.names_stream = true,
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
