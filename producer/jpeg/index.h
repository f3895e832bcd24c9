/* SPDX-License-Identifier: MIT */
/*
 * index.h - where the rows of MCUs, and some columns, begin in the JPEG
 * files of a data set, so that a crop is entered at its first row and left of
 * its first column, instead of at the file's beginning.
 *
 * Entries are recorded when a file is first decoded, as far down as its crop
 * needs, and further down when a later crop needs more.  A row's entry says,
 * too, that all rows above it are undamaged.  An entry takes 8 bytes: one for
 * each row of MCUs, and one for every TSI_JPEG_INDEX_STEP MCUs of a row if
 * there is memory for that.  Rows go first: columns get what the rows of files
 * that weren't seen yet will leave, by what those seen took.  Where the rows of
 * all files need more memory than there is, those files get it that have the
 * most bytes to skip for it, as far as the files asked for show what others are
 * like.
 *
 * A file is known by its number, and by a check value of its bytes: one that
 * was changed since is recorded anew.
 *
 * Any number of threads may use an index.  What is recorded is never moved
 * before the index is destroyed, so nothing is locked: one thread at a time
 * appends to a file's entries, the others see those that were there.
 */
#ifndef TSI_JPEG_INDEX_H
#define TSI_JPEG_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "jpeg/entropy.h"

#define TSI_JPEG_INDEX_STEP 8

struct tsi_jpeg_index;
/* The entries of one file. */
struct tsi_jpeg_known;

/*
 * For files 0 to files - 1; entries take at most memory bytes, 8 for each file
 * included.  Fails with TSOCK_ENOMEM.
 */
int tsi_jpeg_index_create(uint64_t files, uint64_t memory,
			  struct tsi_jpeg_index **out);
/* NULL is allowed. */
void tsi_jpeg_index_destroy(struct tsi_jpeg_index *x);

/* Bytes that are used. */
uint64_t tsi_jpeg_index_memory(const struct tsi_jpeg_index *x);

/*
 * The entries of a file of len bytes that have this check value, or none yet.
 * NULL: there is no memory for them.  Valid until the index is destroyed.
 */
struct tsi_jpeg_known *tsi_jpeg_index_find(struct tsi_jpeg_index *x,
					   uint64_t file, uint64_t check,
					   const struct tsi_jpeg_frame *f,
					   uint64_t len);

/* Rows that are known to be undamaged, from the first one on. */
uint32_t tsi_jpeg_known_rows(const struct tsi_jpeg_known *k);

/* The next row can't be read by our decoder. */
bool tsi_jpeg_known_ends(const struct tsi_jpeg_known *k);

/* Columns between two entries of a row; 0: there are none. */
uint32_t tsi_jpeg_known_step(const struct tsi_jpeg_known *k);

/*
 * Where to begin to read MCUs [left, right) of a row, which may be the first
 * one that isn't known; then left is 0.  Sets all of *out but its row.
 */
void tsi_jpeg_known_start(const struct tsi_jpeg_known *k, uint32_t row,
			  uint32_t left, uint32_t right,
			  struct tsi_jpeg_piece *out);

/* Begin to append rows; false: another thread does. */
bool tsi_jpeg_known_claim(struct tsi_jpeg_known *k);

/*
 * Append the first row that isn't known: the entries of its columns, and of the
 * row behind it, as tsi_jpeg_entropy_record() gives them.
 */
void tsi_jpeg_known_append(struct tsi_jpeg_known *k,
			   const struct tsi_jpeg_entry *column,
			   const struct tsi_jpeg_entry *next);

/* End appending.  ends: the next row can't be read. */
void tsi_jpeg_known_release(struct tsi_jpeg_known *k, bool ends);

/* A file's entries, to be kept elsewhere: see index_file.h. */
struct tsi_jpeg_kept {
	uint64_t check;  /* of the file's bytes */
	uint32_t across; /* MCUs */
	uint32_t down;
	uint32_t rows; /* that are known, at most down */
	uint32_t step; /* columns between two entries, as above */
	bool ends;
	/* From the first row's second one to the row behind the last. */
	const uint64_t *entry;
};

/* How many there are in e->entry. */
uint64_t tsi_jpeg_kept_entries(const struct tsi_jpeg_kept *e);

uint64_t tsi_jpeg_index_files(const struct tsi_jpeg_index *x);

/*
 * Rows that were recorded, of files that have changed since, too: a number that
 * grows with the index and never shrinks.  Looks at every file.
 */
uint64_t tsi_jpeg_index_rows(const struct tsi_jpeg_index *x);

/*
 * A file's entries as they are just now; they stay until the index is
 * destroyed.  False: it has none.
 */
bool tsi_jpeg_index_get(const struct tsi_jpeg_index *x, uint64_t file,
			struct tsi_jpeg_kept *out);

/*
 * Take in entries that were kept, without those of columns if there is no
 * memory for them.  A file's own entries stay if it has some.  TSOCK_ENOMEM:
 * there is no memory for this file's; TSOCK_EDATA: no index can have had them.
 * Sets no message.
 */
int tsi_jpeg_index_put(struct tsi_jpeg_index *x, uint64_t file,
		       const struct tsi_jpeg_kept *e);

#endif
