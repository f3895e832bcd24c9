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
int tsi_check_root(const struct tsi_dataset *data);

/* The file of --select can be read, and its weights are numbers. */
int tsi_check_select(const char *path);

/* May it grow (--grows)?  What tsock-pack wrote doesn't. */
int tsi_check_grows(const struct tsi_dataset *data);

/*
 * Raise the limit of descriptors as far as allowed.  ESYS if it is too low
 * for so many threads.  *open_files is how many files of many samples may stay
 * open then.
 */
int tsi_check_descriptors(unsigned threads, unsigned *open_files);

/*
 * The ring fits into --memory (EARG), unless that is 0, and into what there is
 * (ENOMEM).
 */
int tsi_check_memory(uint64_t memory, const struct tsock_geometry *g);

/* io_uring is there, where nothing else was asked for: ENOTSUP otherwise. */
int tsi_check_reader(enum tsi_io_reader_kind kind);

/* The folder of the stream's socket can be made and is ours. */
int tsi_check_folder(const char *name);

/*
 * The memory that large images may use together, beside rings that use
 * ring_bytes at first: *bytes, which is --image-memory.  Where that is 0 it
 * becomes 2 GiB but at most --memory and half of what there is.  ENOMEM if
 * there is less than was asked for.
 */
int tsi_check_image_memory(uint64_t memory, uint64_t ring_bytes,
			   uint64_t *bytes);

/*
 * The memory that the index of JPEG files may use: *bytes, which is
 * --index-memory.  Where that is 0 it becomes 4 GiB but at most a sixteenth of
 * what there is.
 */
void tsi_check_index_memory(uint64_t *bytes);

/*
 * There is so much memory for --cache beside rings and large images: ENOMEM
 * otherwise.
 */
int tsi_check_cache(uint64_t bytes, uint64_t others);

/*
 * EEXIST if another producer has locked the stream's name, whether it answers
 * or not: then a start would fail.  Locks nothing.
 */
int tsi_check_name(const char *name);

/* Warn when train and val, side by side, have different classes. */
void tsi_check_splits(const struct tsi_dataset *data,
		      const struct tsi_index *x);

#endif
