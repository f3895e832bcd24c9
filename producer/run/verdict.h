/* SPDX-License-Identifier: MIT */
/*
 * verdict.h - how many bad files are too many, and what is said of them.
 *
 * Too many are those of a class that has no other file, and more than a share
 * of the whole data set.  A user who sets the share accepts everything below it,
 * lost classes included.
 *
 * Pure: of numbers and names.
 */
#ifndef TSI_RUN_VERDICT_H
#define TSI_RUN_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --allow-bad */
struct tsi_tolerance {
	double share; /* 0 to 1 */
	bool given;
};

/* Files, and those of them that are bad: of a class, or of the data set. */
struct tsi_bad_files {
	const char *name; /* the class's, or the root */
	uint64_t files, bad;
	uint64_t looked;    /* of the bad ones; the others are presumed to be */
	const char *first;  /* what the first one is called ... */
	const char *reason; /* ... and why it is bad */
};

/* The lost classes: the first of them, and how many there are. */
struct tsi_lost_classes {
	const char *name;
	uint32_t n;
};

/* Does a data set, or a sample of it, have more than may pass? */
bool tsi_verdict_too_many(const struct tsi_tolerance *t, uint64_t bad,
			  uint64_t files);

/*
 * Does a sample of a data set show without doubt (by three standard deviations)
 * that the whole has more than may pass?
 */
bool tsi_verdict_surely_too_many(const struct tsi_tolerance *t, uint64_t bad,
				 uint64_t looked);

/* Why a data set can't be served as it is: a sentence. */
void tsi_verdict_refuse(const struct tsi_bad_files *all,
			const struct tsi_lost_classes *lost, char *to,
			size_t len);

/* What jobs are told while it is served: of a lost class, of the data set. */
void tsi_verdict_warn_class(const struct tsi_bad_files *class_,
			    const struct tsi_bad_files *all, char *to,
			    size_t len);
void tsi_verdict_warn_share(const struct tsi_bad_files *all, char *to,
			    size_t len);

#endif
