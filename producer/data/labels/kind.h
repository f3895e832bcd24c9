/* SPDX-License-Identifier: MIT */
/*
 * kind.h - what the values of a column are: numbers, vectors, classes, text.
 */
#ifndef TSI_DATA_LABELS_KIND_H
#define TSI_DATA_LABELS_KIND_H

#include "data/labels/list.h"

/* Numbers of classes are below this. */
#define TSI_LABELS_CLASSES_END 1000000u

enum tsi_labels_number {
	TSI_LABELS_NO_NUMBER,
	TSI_LABELS_WHOLE,
	TSI_LABELS_FRACTION, /* or whole, as in 1e3 and 2.0 */
};

enum tsi_labels_number tsi_labels_kind_number(const char *text, size_t len);

/* The number of a class that an item is; UINT64_MAX: it is none. */
uint64_t tsi_labels_kind_class(const struct tsi_labels_item *it);

/*
 * What the labels of l are, which have this many columns, at least one: that of
 * spec, or what they look like.  Sets what separates their items.  Fails with
 * EDATA.
 */
int tsi_labels_kind_find(struct tsi_labels_list *l, enum tsi_labels_kind as,
			 enum tsi_labels_kind *out);

/* What a field's column looks like: INT, FLOAT, or TEXT. */
enum tsi_labels_kind tsi_labels_kind_field(const struct tsi_labels_list *l,
					   unsigned column, char *separator);

#endif
