/* SPDX-License-Identifier: MIT */
/*
 * values.h - a list's labels and fields as columns.
 */
#ifndef TSI_DATA_LABELS_VALUES_H
#define TSI_DATA_LABELS_VALUES_H

#include "data/columns.h"
#include "data/labels/classes.h"
#include "data/labels/kind.h"

/*
 * Columns of the list's rows, and behind these of one more, which has no label
 * (-1, NaN, zeros).  kind is that of the labels, if l has any; classes are
 * those of CLASS and CLASSES.  Fails with EDATA, naming the line, ENOTSUP and
 * ENOMEM.
 */
int tsi_labels_values_make(const struct tsi_labels_list *l,
			   enum tsi_labels_kind kind,
			   const struct tsi_labels_classes *classes,
			   struct tsi_columns **out);

#endif
