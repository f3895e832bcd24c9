/* SPDX-License-Identifier: MIT */
/*
 * side.h - labels and fields in files of their own: that of a/b/NAME.jpg is
 * DIR/a/b/NAME.label, and in tar files that of KEY.jpg is KEY.cls beside it.
 */
#ifndef TSI_DATA_LABELS_SIDE_H
#define TSI_DATA_LABELS_SIDE_H

#include "data/labels/list.h"

struct tsi_format;
struct tsi_table;

/*
 * Read those of all samples from the folder of spec, or from the tar files in
 * it that are called as those of the samples: row i is sample i's, whose cells
 * are NULLs where there is no file.  Fails with EDATA, naming the sample, ESYS,
 * ENOMEM; there is nothing to free then.
 */
int tsi_labels_side_read(const struct tsi_labels_spec *spec,
			 const struct tsi_format *f, const struct tsi_table *t,
			 unsigned threads, struct tsi_labels_list *out);

/* ---- for where the files are ---- */

/* What a column has: all files of an ending, or a value of JSON in them. */
struct tsi_labels_part {
	char ending[32];
	const char *value; /* a path, see json.h; NULL: all of the text */
	struct tsi_labels_array *array; /* the list's; NULL: it is text */
};

struct tsi_labels_side {
	const struct tsi_format *format;
	const struct tsi_table *table;
	struct tsi_labels_list *l;
	struct tsi_labels_part part[TSI_LABELS_PARTS + TSI_COLUMNS];
	unsigned parts;
	int fd; /* of the folder */
};

#define TSI_LABELS_SIDE_MOST (1 << 20) /* bytes of a file */

/*
 * Sample i's file of part k, which is overwritten; text[len] is, too.  file is
 * what messages call it.
 */
int tsi_labels_side_take(struct tsi_labels_side *s, uint64_t i, unsigned k,
			 const char *file, char *text, size_t len);

/* Those of samples that lie in tar files. */
int tsi_labels_shards_read(struct tsi_labels_side *s, unsigned threads);

#endif
