/* SPDX-License-Identifier: MIT */
/*
 * classes.h - the classes that labels name, and their numbers.
 */
#ifndef TSI_DATA_LABELS_CLASSES_H
#define TSI_DATA_LABELS_CLASSES_H

#include "data/labels/list.h"
#include "data/labels/words.h"

struct tsi_labels_classes {
	struct tsi_words words; /* names */
	uint32_t *number;       /* of each word */
	char **name;            /* [n], by their numbers; in mem */
	uint32_t n;
	bool numbers;         /* labels are numbers of classes */
	uint64_t *translated; /* word of a label that is a number; or NULL */
	uint64_t translations;
	/* Memory that the above lies in. */
	struct tsi_textfile file;
	uint64_t hash; /* of the file's bytes; 0: there is none */
	char **mem;
	uint64_t mems, mems_cap;
};

/*
 * The classes of all labels of l, which are items of its first label's column.
 * Their numbers are
 *     those in the labels, if these are whole numbers;
 *     the lines of spec's file of classes, from 0;
 *     the order of the names of the folders in "train" beside root, where the
 *     labels name these folders;
 *     else the order of the names.
 * root may be NULL.  Fails with EDATA, naming the line, ENOTSUP, ESYS, ENOMEM;
 * there is nothing to free then.
 */
int tsi_labels_classes_find(const struct tsi_labels_list *l,
			    const struct tsi_labels_spec *spec,
			    const char *root, struct tsi_labels_classes *out);
void tsi_labels_classes_free(struct tsi_labels_classes *c);

/* The number of a label's class, of the list that it was made for. */
uint32_t tsi_labels_classes_number(const struct tsi_labels_classes *c,
				   const struct tsi_labels_item *it);

/* Read the text of spec's file of classes, whose path is that of the labels
 * unless it is absolute.  EDATA, ENOMEM. */
int tsi_labels_classes_file(const struct tsi_labels_spec *spec,
			    struct tsi_textfile *out);

/* ---- for how they get their numbers ---- */

/* Add a name, if it isn't there, and *id is its word.  ENOTSUP, ENOMEM. */
int tsi_labels_classes_add(struct tsi_labels_classes *c, const char *text,
			   size_t len, uint64_t *id, bool *added);

/* Number them as they came, or by their names.  ENOMEM. */
int tsi_labels_classes_in_order(struct tsi_labels_classes *c);
int tsi_labels_classes_by_name(struct tsi_labels_classes *c);

/* The classes are the numbers below n.  ENOTSUP, ENOMEM. */
int tsi_labels_classes_up_to(struct tsi_labels_classes *c, uint32_t n);

/* Read and number those of spec's file, of which c->file is the text. */
int tsi_labels_classes_read(struct tsi_labels_classes *c,
			    const struct tsi_labels_list *l,
			    const struct tsi_labels_spec *s);

#endif
