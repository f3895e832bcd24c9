/* SPDX-License-Identifier: MIT */
/*
 * badfiles.h - which files of a data set are bad, and for which samples.
 *
 * What the scan and the workers have found out, so that no worker has to find
 * it out again.  A sample whose file is bad is made from the first of its
 * substitutes (substitute.h) that is good for it; without this memory every
 * sample would read and decode those before it, too.  Remembered is, per file,
 * that it is bad for every sample (missing, unreadable, no image, nothing
 * decodable), or how many of its rows can be decoded: whether a sample's crop
 * needs more is arithmetic.  Both are functions of the file's bytes, so
 * remembering changes no sample.
 *
 * A file is looked at again (one stat) whenever the sample comes that is made
 * from it by the order: if the file has changed since, it is forgotten and
 * tried anew.  Until then, other samples pass it by.  What the scan found stays
 * bad until the next start.
 *
 * Workers share this memory without a lock.  It is in proportion to the bad
 * files; of a data set without any, all that a sample costs is a load.  Which
 * files are bad for people is on another list (badlist.h).
 */
#ifndef TSI_RUN_BADFILES_H
#define TSI_RUN_BADFILES_H

#include <stdbool.h>
#include <stdint.h>

#include "data/index.h"
#include "image/load.h"

struct tsi_badfiles;

/*
 * The scan's bad files are known from the start.  Fails with ENOMEM.  x must
 * outlive it.
 */
int tsi_badfiles_create(const struct tsi_index *x, struct tsi_badfiles **out);

/* NULL is allowed. */
void tsi_badfiles_destroy(struct tsi_badfiles *b);

enum tsi_badness {
	TSI_BAD_NOT,   /* nothing is known */
	TSI_BAD_BELOW, /* for samples that need more of its rows than *out */
	TSI_BAD_WHOLE, /* for every sample */
};

/* What is known of file i. */
enum tsi_badness tsi_badfiles_look(const struct tsi_badfiles *b, uint64_t i,
				   struct tsi_image_extent *out);

/* All files of file i's class are bad for every sample. */
bool tsi_badfiles_class_lost(const struct tsi_badfiles *b, uint64_t i);

/* File i was bad, and has changed since. */
bool tsi_badfiles_changed(const struct tsi_badfiles *b, uint64_t i);

/*
 * Remember that file i is bad for every sample or, with an extent, below its
 * rows.  read_ns is when it was read, by tsi_badfiles_now(): a file that has
 * changed since then is tried again.
 */
void tsi_badfiles_remember(struct tsi_badfiles *b, uint64_t i,
			   const struct tsi_image_extent *extent,
			   int64_t read_ns);
int64_t tsi_badfiles_now(void);

/* Know nothing about file i any more, or of any but what the scan found. */
void tsi_badfiles_forget(struct tsi_badfiles *b, uint64_t i);
void tsi_badfiles_forget_all(struct tsi_badfiles *b);

#endif
