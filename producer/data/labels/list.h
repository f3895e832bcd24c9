/* SPDX-License-Identifier: MIT */
/*
 * list.h - a file of labels as rows of texts: a name, its labels, and further
 * fields.
 *
 * It is one of
 *     CSV (RFC 4180), with ',', ';' or tabs between, with a header or without;
 *     a name and a label with a blank between;
 *     JSON objects, one a line;
 *     a number a line, for the samples in the order of their names.
 */
#ifndef TSI_DATA_LABELS_LIST_H
#define TSI_DATA_LABELS_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "data/labels/spec.h"
#include "data/textfile.h"

struct tsi_labels_array;

struct tsi_labels_list {
	struct tsi_textfile file;
	uint64_t hash;    /* of the file's bytes */
	unsigned columns; /* of a row: 1 + labels + fields */
	unsigned labels, fields;
	char **cell;    /* [rows][columns]; NULL: a JSON object lacks it */
	uint64_t *line; /* [rows] */
	uint64_t rows;
	bool in_order;   /* rows have no names, or are those of the data set */
	bool side;       /* a file each, of which file.path is the folder */
	bool first_word; /* of a label alone counts, as in Kaggle's */
	bool text;       /* the label's files are of text */
	bool several;    /* the label's column says that there are several */
	char separator;  /* of a label's items; '\0': it is one */
	const char *field[TSI_COLUMNS]; /* what they are called */
	char names[TSI_COLUMNS][32];
	/* Of a field that is no text; NULL: it is. */
	struct tsi_labels_array *array[TSI_COLUMNS];
};

/*
 * Read the file of spec.  Its stamp is taken before.  Fails with EDATA, naming
 * the line, ENOTSUP and ENOMEM; there is nothing to free then.
 */
int tsi_labels_list_read(const struct tsi_labels_spec *spec,
			 struct tsi_stamp *stamp, struct tsi_labels_list *out);
void tsi_labels_list_free(struct tsi_labels_list *l);

/* Cell k of row i: 0 is the name, then labels, then fields. */
static inline char *tsi_labels_list_cell(const struct tsi_labels_list *l,
					 uint64_t i, unsigned k)
{
	return l->cell[i * l->columns + k];
}

/* A walk over the items of a cell. */
struct tsi_labels_item {
	const char *text;
	size_t len;
	const char *rest; /* NULL: nothing */
	bool list;
};

/* Begin before the first item; NULL: a cell that isn't there has none. */
struct tsi_labels_item tsi_labels_list_items(const char *cell);

/* Go to the next item; false: there is none. */
bool tsi_labels_list_next(const struct tsi_labels_list *l,
			  struct tsi_labels_item *it);

/* A walk over all items of the first label's column, from { .l = l }. */
struct tsi_labels_walk {
	const struct tsi_labels_list *l;
	uint64_t row;
	bool begun;
	struct tsi_labels_item it;
};

/* Go to the next one; false: there is none. */
bool tsi_labels_list_walk(struct tsi_labels_walk *w);

/* "FILE, line 3: " of row i, then what is wrong; EDATA. */
int tsi_labels_list_bad(const struct tsi_labels_list *l, uint64_t i,
			const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- for the file's kinds ---- */

/* Columns that hold names and labels, of those at hand; -1: none does. */
int tsi_labels_list_name_column(char *const *names, unsigned n);
int tsi_labels_list_label_column(char *const *names, unsigned n);
int tsi_labels_list_text_column(char *const *names, unsigned n);
#define TSI_LABELS_USUAL 32 /* names that are looked for, at most */
unsigned tsi_labels_list_usual(const char **to, unsigned *names,
			       unsigned *labels);

/* What a label's column is called says more than that. */
void tsi_labels_list_note(struct tsi_labels_list *l, const char *label);

/* Fields of these columns are l's. */
int tsi_labels_list_fields(struct tsi_labels_list *l, const char *const *names,
			   unsigned n);

/* Room for one more row: its cells.  Fails with ENOMEM, ENOTSUP. */
int tsi_labels_list_add(struct tsi_labels_list *l, uint64_t line, char ***cell);

/* "FILE, line 3: ", then what is wrong; EDATA. */
int tsi_labels_list_wrong(const struct tsi_labels_list *l, uint64_t line,
			  const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int tsi_labels_csv_read(const struct tsi_labels_spec *spec, char *text,
			struct tsi_labels_list *l);
int tsi_labels_jsonl_read(const struct tsi_labels_spec *spec, char *text,
			  struct tsi_labels_list *l);

#endif
