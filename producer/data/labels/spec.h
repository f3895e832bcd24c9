/* SPDX-License-Identifier: MIT */
/*
 * spec.h - what --labels says: a file, and how to read it.
 *
 *     FILE
 *     FILE:path=COLUMN,label=COLUMN+COLUMN,fields=COLUMN+COLUMN,as=KIND,
 *          classes=FILE
 *
 * Of a folder's files COLUMN is their ending, ".txt", or a value in those of
 * JSON, ".json.meta.label".
 */
#ifndef TSI_DATA_LABELS_SPEC_H
#define TSI_DATA_LABELS_SPEC_H

#include "data/columns.h"

/* What labels are; AUTO: what they look like. */
enum tsi_labels_kind {
	TSI_LABELS_AUTO,
	TSI_LABELS_CLASS,   /* a class of each sample, by its name or number */
	TSI_LABELS_CLASSES, /* any number of classes of each */
	TSI_LABELS_INT,     /* int64, as they are */
	TSI_LABELS_FLOAT,   /* float32, one or a vector of one length */
	TSI_LABELS_TEXT,    /* text */
};
#define TSI_LABELS_KINDS "class|classes|int|float|text"

#define TSI_LABELS_PARTS 256 /* columns that make up a vector */

struct tsi_labels_spec {
	char *mem; /* where the strings lie */
	const char *file;
	const char *path; /* the column of names; NULL: found by its name */
	const char *label[TSI_LABELS_PARTS];
	unsigned labels; /* 0: found by its name */
	const char *field[TSI_COLUMNS];
	unsigned fields;
	const char *classes; /* file of the classes' names; NULL: none */
	enum tsi_labels_kind as;
};

/* Fails with EARG and ENOMEM; there is nothing to free then. */
int tsi_labels_spec_parse(const char *text, struct tsi_labels_spec *out);
void tsi_labels_spec_free(struct tsi_labels_spec *s);

#endif
