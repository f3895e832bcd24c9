/* SPDX-License-Identifier: MIT */
/*
 * pattern.h - the names that a pattern with braces stands for, as the shell and
 * the webdataset package expand it.
 *
 * "train-{000..146}.tar" stands for 147 names, with as many digits as are
 * written; "{a,b}.tar" for two.  Several braces give all combinations, the last
 * one changing fastest; braces within braces are not known.
 */
#ifndef TSI_DATA_WEBDATASET_PATTERN_H
#define TSI_DATA_WEBDATASET_PATTERN_H

#include "data/text.h"

/* Names of one pattern, and bytes of one name. */
#define TSI_PATTERN_NAMES 1000000u
#define TSI_PATTERN_NAME 256

/*
 * Append the names to t, and their offsets there to *at, an array that grows:
 * *n of them so far, room for *cap.  Fails with EARG (no such pattern, or it
 * stands for too much), ENOMEM.
 */
int tsi_pattern_expand(const char *pattern, struct tsi_text *t, uint64_t **at,
		       uint64_t *n, uint64_t *cap);

#endif
