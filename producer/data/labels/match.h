/* SPDX-License-Identifier: MIT */
/*
 * match.h - which row of a list is a sample's.
 *
 * A list calls a sample, in the order in which these are tried,
 *     by its path below the data set's root, or by an absolute one;
 *     by that path behind the root folder's own name;
 *     by its path without an extension;
 *     by the last part of its path, if no other sample has that;
 *     by that part without an extension, likewise;
 *     by the path of an audio file with another extension.
 * In tar files a sample's path is its key.
 */
#ifndef TSI_DATA_LABELS_MATCH_H
#define TSI_DATA_LABELS_MATCH_H

#include "data/labels/list.h"

struct tsi_format;
struct tsi_table;

/*
 * Set row[i] to the list's row of sample i; where there is none, to l->rows.
 * *surplus: rows of the list that are no sample's.  Fails with EDATA (two rows
 * of a sample differ; numbers without names are too many or too few), naming
 * the line, and ENOMEM.
 */
int tsi_labels_match(const struct tsi_labels_list *l,
		     const struct tsi_format *f, const struct tsi_table *t,
		     const char *root, uint64_t *row, uint64_t *surplus);

#endif
