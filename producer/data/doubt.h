/* SPDX-License-Identifier: MIT */
/*
 * doubt.h - which rows of a scan are looked at besides those that are whatever
 * they are, and what is presumed of the others then.
 *
 * To open every file would take too long, so two things are asked of each
 * class.  Do its files have names of formats that aren't read (.webp where libwebp
 * lacks)?  Then
 * the first, the middle and the last of these are looked at, and where all
 * three are bad the others are presumed to be.  Was none good of those that
 * were looked at?  Then up to TSI_DOUBT_LOOKS more of the class are, and where
 * none of these is good either all of the class is presumed bad.
 *
 * The answers depend on the table alone, on a scan's and on a kept one's alike:
 * a row that was looked at has a size, or is bad.
 */
#ifndef TSI_DATA_DOUBT_H
#define TSI_DATA_DOUBT_H

#include <stdbool.h>
#include <stdint.h>

#include "data/table.h"

struct tsi_format;

#define TSI_DOUBT_LOOKS 64

/* What is presumed of the rows of a class that weren't looked at. */
enum tsi_doubt {
	TSI_DOUBT_NONE,
	TSI_DOUBT_NAMES, /* those of a foreign name are bad */
	TSI_DOUBT_ALL,   /* all are */
};

/* A table, and what its rows' names tell; foreign may be NULL. */
struct tsi_doubted {
	const struct tsi_format *format;
	const struct tsi_table *table; /* its list of bad rows is sorted */
	bool (*foreign)(const char *name);
};

/* Is row i's name that of a format that isn't read? */
bool tsi_doubt_foreign(const struct tsi_doubted *d, uint64_t i);

/*
 * Write to which[], which has room for all of them, the rows to look at in
 * their order, each once: some of all, evenly spread, the bad ones, and the
 * others.  Returns how many they are.
 */
uint64_t tsi_doubt_looks(const struct tsi_doubted *d, uint64_t some,
			 const uint64_t *others, uint64_t nothers,
			 uint64_t *which);

/*
 * Rows to look at for their names, and (after those) for their classes: *rows,
 * ascending, is from malloc().  *all: every row has a foreign name.  Fail with
 * ENOMEM.
 */
int tsi_doubt_names(const struct tsi_doubted *d, uint64_t **rows, uint64_t *n,
		    bool *all);
int tsi_doubt_classes(const struct tsi_doubted *d, uint64_t **rows,
		      uint64_t *n);

/*
 * When these were looked at: *judged, from malloc(), has an enum tsi_doubt for
 * each class; NULL: nothing is presumed of any.  Fails with ENOMEM.
 */
int tsi_doubt_judge(const struct tsi_doubted *d, uint8_t **judged);

/* Is row i, of this class when it was judged and not bad, presumed to be? */
bool tsi_doubt_presumes(const struct tsi_doubted *d, const uint8_t *judged,
			uint64_t class, uint64_t i);

#endif
