/* SPDX-License-Identifier: MIT */
/*
 * shards.c - labels and fields in tar files, beside their images.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/beside.h"
#include "data/format.h"
#include "data/labels/side.h"
#include "data/table.h"

static const char *path_of(void *arg, uint64_t row)
{
	const struct tsi_labels_side *s = arg;
	struct tsi_location at;

	tsi_format_locate(s->format, s->table, row, &at);
	return at.file;
}

static const char *key_of(void *arg, uint64_t row, size_t *len)
{
	const struct tsi_labels_side *s = arg;
	const char *key = tsi_labels_list_cell(s->l, row, 0);

	*len = strlen(key);
	return key;
}

static int take_part(void *arg, uint64_t row, unsigned k,
		     const struct tsi_beside_file *f)
{
	struct tsi_labels_side *s = arg;
	char file[TSI_TAR_NAME + PATH_MAX], *text;
	size_t len = (size_t)f->size;
	int got, err = 0;

	if (f->sparse || f->size > TSI_LABELS_SIDE_MOST)
		return tsi_labels_list_bad(s->l, row,
					   "%s is a sparse file, or has more "
					   "than %d bytes",
					   f->name, TSI_LABELS_SIDE_MOST);
	text = malloc(len + 1);
	if (!text)
		return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	got = tsi_tar_read(f->tar, f->offset, text, len);
	text[len] = '\0';
	snprintf(file, sizeof(file), "%s: %s", f->path, f->name);
	if (got > 0)
		err = tsi_labels_side_take(s, row, k, file, text, len);
	free(text);
	return got < 0 ? got : err;
}

int tsi_labels_shards_read(struct tsi_labels_side *s, unsigned threads)
{
	const char *ending[TSI_LABELS_PARTS + TSI_COLUMNS];
	struct tsi_beside b = {
		.rows = s->l->rows,
		.path = path_of,
		.key = key_of,
		.take = take_part,
		.ending = ending,
		.endings = s->parts,
		.arg = s,
		.fd = s->fd,
		.folder = s->l->file.path,
		.what = "labels",
	};

	for (unsigned k = 0; k < s->parts; k++)
		ending[k] = s->part[k].ending;
	return tsi_beside_read(&b, threads);
}
