/* SPDX-License-Identifier: MIT */
/*
 * record.h - who reads the stream, in a file that a producer's death leaves
 * behind.
 *
 * NAME.readers lies beside the sockets and is written while the name is locked.
 * It has a row for each reader, so the next producer of the same stream knows
 * whom to wait for; a reader that has taken itself off (wire/record_file.h) is
 * none.  A producer that ends without readers removes the file.  What is in it
 * is checked, and a file that makes no sense, or is of another stream, is as
 * good as none.  Specified in wire/README.md.
 */
#ifndef TSI_SERVE_RECORD_H
#define TSI_SERVE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/returners.h"
#include "wire/record_file.h"

/* What of a row has changed: what it says of its reader, or also whose it is. */
enum tsi_record_change {
	TSI_RECORD_SAME,
	TSI_RECORD_READER,
	TSI_RECORD_ROW,
};

/*
 * The rows are changed with the server's lock held, and what has changed is
 * collected.  One thread writes that to the file, without the lock: a file
 * system may be slow.
 */
struct tsi_record {
	/* Under the lock. */
	struct tsi_record_row row[TSI_RECORD_ROWS];
	enum tsi_record_change
		changed[TSI_RECORD_ROWS]; /* since tsi_record_collect() */
	bool any;                         /* of them, or the file's place */
	bool kept;                        /* there is, or was, a file */

	/* Used by the thread that writes. */
	int fd; /* -1: none is kept */
	char path[TSI_RECORD_PATH];
	uint64_t stream, lineage;
	bool anew; /* the file is to be made again */
	bool found;
	struct tsi_record_row due[TSI_RECORD_ROWS];
	enum tsi_record_change is_due[TSI_RECORD_ROWS];
};

/* None is kept. */
void tsi_record_init(struct tsi_record *r);

/*
 * Take over the record of the producer before, and keep it from now on, of a
 * stream that this number stands for.  Where somebody is in it, the stream has
 * the lineage that it had, else this one.  The name is locked.  Without a file that
 * can be written the stream is served all the same, with a warning: it is only
 * that nobody is waited for after a death.
 */
void tsi_record_open(struct tsi_record *r, const char *folder, const char *name,
		     uint64_t stream, uint64_t lineage);

/* Has a producer of this stream left one? */
bool tsi_record_found(const struct tsi_record *r);

/* The stream's lineage: without a record, the one that was given to open it. */
uint64_t tsi_record_lineage(const struct tsi_record *r);

/* The file was removed: the next write makes it anew, in this folder. */
void tsi_record_again(struct tsi_record *r, const char *folder,
		      const char *name);

/* The first row from number *i on: true, and *out is what it says. */
bool tsi_record_next(const struct tsi_record *r, unsigned *i,
		     struct tsi_reader_row *out);

/* A reader comes, is at another place, or is no more: by its nonce.  In the
 * file that is so after the next write. */
void tsi_record_put(struct tsi_record *r, const struct tsi_reader_row *row);
void tsi_record_mark(struct tsi_record *r, const uint8_t *nonce, uint64_t mark,
		     bool together);
/* It has its reply: what it was before no longer matters. */
void tsi_record_settle(struct tsi_record *r, const uint8_t *nonce);
void tsi_record_drop(struct tsi_record *r, const uint8_t *nonce);

/* By the thread that writes: does the file say that the row's reader has taken
 * itself off? */
bool tsi_record_has_left(const struct tsi_record *r, const uint8_t *nonce);

/* With the lock held: take what has changed; false: nothing has. */
bool tsi_record_collect(struct tsi_record *r);

/* By one thread at a time, without the lock: write what was collected.  Where
 * that fails there is no record from then on, and a warning says so. */
void tsi_record_write(struct tsi_record *r);

/* What is there stays, for the next producer; if keep is false, nothing does.
 * Nobody writes any more. */
void tsi_record_close(struct tsi_record *r, bool keep);

#endif
