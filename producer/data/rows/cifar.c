/* SPDX-License-Identifier: MIT */
/*
 * cifar.c - the formats cifar10 and cifar100: the files of
 * cs.toronto.edu/~kriz/cifar.html, the binary ones or Python's.
 *
 * A binary record is the label's byte (of CIFAR-100 two, the coarse label's
 * first) and three planes of 32 x 32.
 */
#include "data/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "data/rows/batches.h"
#include "data/rows/files.h"
#include "data/rows/pickle.h"

#define SIDE 32
#define PIXELS (3 * SIDE * SIDE)

/* A set of files that there may be. */
struct layout {
	const char *folder; /* which the archive makes; the root may be it */
	bool pickled;
	const char *train, *test; /* files, each with a '|' behind it */
	const char *names;        /* the file with the names of classes */
	const char *key;          /* of these in a pickle */
	const char *labels, *more;
	uint32_t classes;
	unsigned head; /* bytes of a binary record before its pixels */
};

static const struct layout cifar10[] = {
	{ "cifar-10-batches-bin", false,
	  "data_batch_1.bin|data_batch_2.bin|data_batch_3.bin|"
	  "data_batch_4.bin|data_batch_5.bin|",
	  "test_batch.bin|", "batches.meta.txt", NULL, NULL, NULL, 10, 1 },
	{ "cifar-10-batches-py", true,
	  "data_batch_1|data_batch_2|data_batch_3|data_batch_4|data_batch_5|",
	  "test_batch|", "batches.meta", "label_names", "labels", NULL, 10, 0 },
	{ .folder = NULL },
};

static const struct layout cifar100[] = {
	{ "cifar-100-binary", false, "train.bin|", "test.bin|",
	  "fine_label_names.txt", NULL, NULL, "coarse_label", 100, 2 },
	{ "cifar-100-python", true, "train|", "test|", "meta",
	  "fine_label_names", "fine_labels", "coarse_labels", 100, 0 },
	{ .folder = NULL },
};

/* Which of the layouts lies in the root, and below which folder. */
static const struct layout *find_layout(const struct tsi_root *r,
					const struct layout *all,
					const char **folder)
{
	char path[64];
	struct stat st;

	for (const struct layout *l = all; l->folder; l++)
		for (unsigned below = 0; below < 2; below++) {
			snprintf(path, sizeof(path), "%s%s%.*s",
				 below ? l->folder : "", below ? "/" : "",
				 (int)strcspn(l->test, "|"), l->test);
			*folder = below ? l->folder : "";
			if (!tsi_root_stat(r, path, &st) && S_ISREG(st.st_mode))
				return l;
		}
	return NULL;
}

static int open_layouts(const char *root, const struct layout *all,
			struct tsi_root *r)
{
	const char *folder;
	struct stat st;

	if (tsi_root_open(r, root))
		return tsi_err_sys("open the folder %s", root);
	if (find_layout(r, all, &folder))
		return 0;
	if (!tsi_root_stat(r,
			   all == cifar10 ? "cifar-10-python.tar.gz"
					  : "cifar-100-python.tar.gz",
			   &st))
		return tsi_err(TSOCK_EARG,
			       "%s holds the archive alone: unpack "
			       "it there (tar xf)",
			       root);
	return tsi_err(TSOCK_EARG,
		       "%s holds neither %s nor %s, nor their "
		       "files",
		       root, all[0].folder, all[1].folder);
}

/* "FOLDER/NAME" of the next of some names, which moves on; false: none. */
static bool next_path(const char **names, const char *folder, char path[96])
{
	size_t n = strcspn(*names, "|");

	if (!n)
		return false;
	snprintf(path, 96, "%s%s%.*s", folder, *folder ? "/" : "", (int)n,
		 *names);
	*names += n + 1;
	return true;
}

static int add_binary(struct tsi_batches *b, const struct layout *l,
		      unsigned file)
{
	uint64_t len = tsi_rows_len(b->rows, file);
	size_t record = l->head + PIXELS;
	uint8_t head[2];
	int err = 0;

	if (len % record)
		return tsi_err(TSOCK_EDATA,
			       "%s is truncated: its bytes are no whole "
			       "records of %zu",
			       tsi_rows_path(b->rows, file), record);
	for (uint64_t i = 0; i < len / record && !err; i++) {
		err = tsi_rows_read(b->rows, file, i * record, head, l->head,
				    "labels");
		if (!err)
			err = tsi_batches_label(b, head[l->head - 1], head[0]);
	}
	return err ? err
		   : tsi_rows_part(b->rows, b->pixels, file, l->head,
				   len / record);
}

/* The lines of a text file. */
static int read_lines(struct tsi_rows *rows, unsigned file)
{
	uint64_t len = tsi_rows_len(rows, file), to = 0;
	char *text = len < 65536 ? calloc(1, (size_t)len + 1) : NULL;
	uint32_t n = 0;
	int err;

	if (!text)
		return tsi_err(TSOCK_EDATA, "%s is no list of classes",
			       tsi_rows_path(rows, file));
	err = tsi_rows_read(rows, file, 0, text, (size_t)len, "names");
	for (uint64_t at = 0; at < len && !err;) {
		size_t line = strcspn(text + at, "\r\n");

		memmove(text + to, text + at, line);
		at += line + 1;
		if (!line)
			continue;
		to += line;
		text[to++] = '\0';
		n++;
	}
	if (!err)
		err = tsi_rows_classes(rows, text, n);
	free(text);
	return err;
}

static int read_names(struct tsi_rows *rows, const struct layout *l,
		      unsigned file)
{
	struct tsi_pickle *p;
	char *names = NULL;
	uint32_t n = 0;
	int err;

	if (!l->pickled)
		return read_lines(rows, file);
	err = tsi_pickle_open(rows, file, &p);
	if (!err)
		err = tsi_pickle_strings(p, l->key, &names, &n);
	if (!err)
		err = tsi_rows_classes(rows, names, n);
	free(names);
	tsi_pickle_close(p);
	return err;
}

static int add_files(struct tsi_batches *b, const struct layout *l,
		     const char *folder, bool held_out)
{
	const char *names = held_out ? l->test : l->train;
	char path[96];
	unsigned file;
	int err = 0;

	while (!err && next_path(&names, folder, path)) {
		err = tsi_rows_map(b->rows, path, &file);
		if (err)
			break;
		err = l->pickled ? tsi_batches_pickle(b, file, l->labels,
						      l->more, 0)
				 : add_binary(b, l, file);
	}
	if (err)
		return err;
	snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "",
		 l->names);
	err = tsi_rows_map(b->rows, path, &file);
	return err ? err : read_names(b->rows, l, file);
}

static int scan_layouts(const struct tsi_root *r, const struct layout *all,
			bool held_out, struct tsi_table *t)
{
	const char *folder;
	const struct layout *l = find_layout(r, all, &folder);
	struct tsi_batches b = { .rows = NULL };
	int err;

	if (!l)
		return tsi_err(TSOCK_EDATA, "the files of %.300s are gone",
			       tsi_root_name(r));
	err = tsi_batches_begin(&b, r, SIDE, l->head + PIXELS);
	if (!err)
		err = add_files(&b, l, folder, held_out);
	if (!err)
		err = tsi_batches_finish(&b, l->more ? "coarse_label" : NULL,
					 t);
	tsi_batches_end(&b);
	return err;
}

static int look(const char *root, const struct tsi_format_opts *o,
		struct tsi_samples *out)
{
	(void)root;
	(void)o;
	strcpy(out->train, "RandomCrop(32, padding=4) RandomHorizontalFlip()");
	strcpy(out->eval, "CenterCrop(32)");
	out->width = out->height = SIDE;
	return 0;
}

static int open_10(const char *root, struct tsi_root *r)
{
	return open_layouts(root, cifar10, r);
}

static int open_100(const char *root, struct tsi_root *r)
{
	return open_layouts(root, cifar100, r);
}

static int scan_10(const struct tsi_root *r, const struct tsi_format_opts *o,
		   struct tsi_table *t)
{
	return scan_layouts(r, cifar10, o->held_out, t);
}

static int scan_100(const struct tsi_root *r, const struct tsi_format_opts *o,
		    struct tsi_table *t)
{
	return scan_layouts(r, cifar100, o->held_out, t);
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

#define OF_BOTH \
	.splits_inside = true, .names_stream = true, .nameless = true, \
	.of_arrays = true, .keeps_index = true, .look = look, \
	.locate = tsi_rows_locate, .label = tsi_rows_label, .fields = fields, \
	.nfields = sizeof(fields) / sizeof(fields[0])

const struct tsi_format tsi_format_cifar10 = {
	OF_BOTH,         .name = "cifar10", .layout = "-cifar10",
	.open = open_10, .scan = scan_10,
};

const struct tsi_format tsi_format_cifar100 = {
	OF_BOTH,          .name = "cifar100", .layout = "-cifar100",
	.open = open_100, .scan = scan_100,
};
