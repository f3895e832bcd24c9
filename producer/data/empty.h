/* SPDX-License-Identifier: MIT */
/*
 * empty.h - classes whose folders hold no images.
 */
#ifndef TSI_DATA_EMPTY_H
#define TSI_DATA_EMPTY_H

#include "data/format.h"

/*
 * EDATA if a class of t, which is the table of a format with a folder per
 * class, has no sample, as torchvision has it: the message says what its
 * folder holds instead, and what to do.  ENOMEM.
 */
int tsi_empty_check(const struct tsi_format *f, const struct tsi_root *r,
		    const struct tsi_table *t);

#endif
