/* SPDX-License-Identifier: MIT */
/*
 * check.h - what can be checked before anything starts: folders, descriptors,
 * the two splits.
 */
#ifndef TSI_CLI_CHECK_H
#define TSI_CLI_CHECK_H

#include "cli/options.h"
#include "data/index.h"
#include "tsock/tsock.h"

/* /dev/null for each of the first three descriptors that is closed. */
void tsi_check_stdio(void);

/* The data set's folder is there and can be read: EDATA otherwise. */
int tsi_check_root(const struct tsi_options *o);

/*
 * Raise the limit of descriptors as far as allowed.  ESYS if it is too low
 * for so many threads.
 */
int tsi_check_descriptors(unsigned threads);

/*
 * The ring fits into --memory (EARG) and into what there is (ENOMEM).
 */
int tsi_check_memory(const struct tsi_options *o,
		     const struct tsock_geometry *g);

/* io_uring is there, where nothing else was asked for: ENOTSUP otherwise. */
int tsi_check_reader(const struct tsi_options *o);

/* The folder of the sockets can be made and is ours; nothing is made. */
int tsi_check_folder(const struct tsi_options *o);

/*
 * The memory that large images may use together, beside rings that use
 * ring_bytes at first: --image-memory, else 2 GiB but at most --memory and
 * half of what there is.  ENOMEM if there is less than was asked for.
 */
int tsi_check_image_memory(const struct tsi_options *o, uint64_t ring_bytes,
			   uint64_t *bytes);

/*
 * EEXIST if a producer answers to the stream's name.  Asked so that a long scan
 * is not in vain; the lock on the name, which follows the scan, decides.
 */
int tsi_check_name(const struct tsi_options *o);

/* Warn when train and val, side by side, have different classes. */
void tsi_check_splits(const struct tsi_options *o, const struct tsi_index *x);

#endif
