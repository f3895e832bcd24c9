/* SPDX-License-Identifier: MIT */
/*
 * record_file.h - the layout of NAME.readers (serve/record.h), the file beside
 * the sockets that says who reads the stream, and how a reader that leaves takes
 * itself off it.
 *
 * A reader writes one word of its row, and the producer that has given it the row
 * writes all others.  That word names the reader that the row is of: in a row
 * that was given to another reader meanwhile it says nothing.
 */
#ifndef TSI_WIRE_RECORD_FILE_H
#define TSI_WIRE_RECORD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/address.h"
#include "wire/msg.h"

#define TSI_RECORD_FILE_MAGIC UINT64_C(0x6461657220636f74) /* "toc read" */
#define TSI_RECORD_FILE_VERSION 3
#define TSI_RECORD_ROWS 512 /* readers, and those that have still to return */
#define TSI_RECORD_PATH 128

struct tsi_record_head {
	uint64_t magic;
	uint32_t version, rows;
	uint64_t stream;
	uint64_t processes; /* the pid namespace: what pids mean */
	uint64_t lineage;   /* of the stream: see struct tsi_msg_stream */
	uint64_t reserved[3];
};

/* A reader, as the record has it. */
struct tsi_reader_row {
	uint32_t pid;             /* 0: not known */
	uint32_t together;        /* 1: ranks of its job were still to begin,
				   * at the mark */
	uint64_t born;            /* when its process began; 0: not known */
	uint64_t mark;            /* its tail, when it was last looked at */
	uint8_t nonce[TSI_NONCE]; /* of its connection */
	uint8_t was[TSI_NONCE];   /* of the one before, as its JOIN says, which
				   * it names if the reply never came; or
				   * zeros */
};

struct tsi_record_row {
	uint32_t used; /* 0 or 1 */
	uint32_t left; /* the reader writes the first bytes of the nonce; the
			* producer writes 0 when it gives the row away */
	struct tsi_reader_row reader;
};

_Static_assert(sizeof(struct tsi_record_head) == 64, "the record's version");
_Static_assert(sizeof(struct tsi_record_row) == 64, "the record's version");

/* False: no folder of sockets has so long a path, and *path leads nowhere. */
bool tsi_record_file_path(const char *folder, const char *name,
			  char path[TSI_RECORD_PATH]);

/* Has the row's reader taken itself off? */
bool tsi_record_file_has_left(const struct tsi_record_row *row);

/*
 * By a reader that leaves: a producer that comes after the one it reads, or
 * read, is to wait neither for the claim of that nonce nor for one that was
 * asked for as by it.  True: the record had some.  The producer that made the
 * claim doesn't look, and one that has begun meanwhile may have read the file
 * before.
 */
bool tsi_record_file_leave(const struct tsi_address *a, const uint8_t *nonce);

/*
 * For a process that stops a stream without a producer: how many live processes
 * wait for the next one, with their numbers in buf, as in "17, 18 and 3 more";
 * -1: there is no record.
 */
int tsi_record_file_readers(const struct tsi_address *a, char *buf,
			    size_t size);

/* Nobody is waited for any longer. */
void tsi_record_file_remove(const struct tsi_address *a);

#endif
