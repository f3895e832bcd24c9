/* SPDX-License-Identifier: MIT */
/*
 * stamps.h - whether a table's files have changed since it was written.
 */
#ifndef TSI_DATA_COLUMNAR_STAMPS_H
#define TSI_DATA_COLUMNAR_STAMPS_H

#include <stdint.h>

#include "data/columnar/file.h"
#include "data/root.h"

/*
 * Compare the sizes and times of 4,096 files at most, evenly spread, with the
 * table's column files.stamp, if it has that.  File i is called paths + at[i].
 * Fails with EDATA: one has changed, or can't be opened.
 */
int tsi_columnar_check_stamps(const struct tsi_root *root,
			      const struct tsi_columnar *c, const char *paths,
			      const uint64_t *at, uint64_t files);

#endif
