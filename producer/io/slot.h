/* SPDX-License-Identifier: MIT */
/*
 * slot.h - one read: of which file and range, how far, into which buffer.
 *
 * A slot goes FREE -> QUEUED -> DONE -> TAKEN -> FREE.  While it is QUEUED it
 * belongs to a backend, else to the reader and its thread.
 */
#ifndef TSI_IO_SLOT_H
#define TSI_IO_SLOT_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/path.h"
#include "io/files.h"
#include "io/reader.h"

enum tsi_io_state {
	TSI_IO_FREE,
	TSI_IO_QUEUED,
	TSI_IO_DONE,
	TSI_IO_TAKEN,
};

struct tsi_io_slot {
	enum tsi_io_state state;
	struct tsi_read_request what;
	int fd;
	size_t align; /* of reads; 1: any */
	int err;
	uint8_t *buf;
	size_t cap;
	size_t skew;    /* bytes of the buffer before those of the range */
	size_t len;     /* bytes of the buffer that have come */
	size_t again;   /* bytes behind len that had come, and are read again */
	size_t expect;  /* bytes of the range, or of the file by fstat */
	size_t asked;   /* by the read in flight */
	uint64_t shift; /* from a place in the buffer to that in the file */
	/* What is read now if parts are: the head, or the part before next. */
	size_t goal; /* where it ends in the buffer; 0: the whole is read */
	unsigned next, parts;
	struct tsi_read_part part[TSI_READER_PARTS];
	struct tsi_fs_seen seen;
	struct tsi_io_files *files; /* NULL: none stay open */
	struct tsi_io_file *file;   /* of these, whose descriptor fd is */
};

#define TSI_IO_OFLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* An array of free slots; NULL when there is no memory. */
struct tsi_io_slot *tsi_io_slots_create(unsigned depth);
/* Ranges are read from files that stay open, as many as there is place for. */
void tsi_io_slots_use_files(struct tsi_io_slot *slot, unsigned depth,
			    struct tsi_io_files *files);
/* NULL is allowed. */
void tsi_io_slots_destroy(struct tsi_io_slot *slot, unsigned depth);

/* A slot that is FREE, or the one that is DONE with the lowest tag; or NULL. */
struct tsi_io_slot *tsi_io_slots_free(struct tsi_io_slot *slot, unsigned depth);
struct tsi_io_slot *tsi_io_slots_done(struct tsi_io_slot *slot, unsigned depth);

/* Queue a free slot to read this. */
void tsi_io_slot_begin(struct tsi_io_slot *s, const struct tsi_read_request *q);

/* Take what a slot that is DONE has read, all but the slot's number. */
void tsi_io_slot_take(struct tsi_io_slot *s, struct tsi_read *out);

/* What was taken is used up: the slot is FREE. */
void tsi_io_slot_release(struct tsi_io_slot *s);

/* ------------------------------------------------------------------------
 * For a backend, whose slots are QUEUED
 */

bool tsi_io_slot_is_queued(const struct tsi_io_slot *s);

/* What is to be read, and the descriptor of its file; -1: none is open. */
const struct tsi_read_request *tsi_io_slot_what(const struct tsi_io_slot *s);
int tsi_io_slot_fd(const struct tsi_io_slot *s);

/*
 * The steps of one read, for a backend to string together: its file is open
 * already (or else TSI_IO_CLOSED, and it is to be opened), its file was opened,
 * n bytes of it have come, a read has failed.  Each returns an errno, one of
 * the reader's errors, or TSI_IO_MORE, which asks for a read of
 * tsi_io_slot_piece().
 */
#define TSI_IO_MORE (-1)
#define TSI_IO_CLOSED (-3)
int tsi_io_slot_is_open(struct tsi_io_slot *s);
int tsi_io_slot_opened(struct tsi_io_slot *s, int fd);
int tsi_io_slot_got(struct tsi_io_slot *s, size_t n);
int tsi_io_slot_failed(struct tsi_io_slot *s, int err);

/* The next read of an open file. */
struct tsi_io_piece {
	int fd;
	uint8_t *to;
	size_t len;
	uint64_t at; /* in the file */
};
struct tsi_io_piece tsi_io_slot_piece(const struct tsi_io_slot *s);

/*
 * There are no more steps, by this error or 0.  Returns the descriptor that is
 * to be closed, or -1.
 */
int tsi_io_slot_ended(struct tsi_io_slot *s, int err);

/* A read that has ended is the reader's again: the slot is DONE. */
void tsi_io_slot_hand_over(struct tsi_io_slot *s);

/* ------------------------------------------------------------------------
 * Files, also without a slot
 */

/* The path of a request's file, perhaps in text. */
static inline const char *tsi_io_slot_path(const struct tsi_read_request *q,
					   char text[TSI_PATH])
{
	return tsi_path_join(q->folder, q->path, text);
}

/* Open the file of a request; -1 and errno. */
int tsi_io_slot_open_file(const struct tsi_read_request *q);

/*
 * The error of a file that isn't one to be read, or is shorter than the range;
 * else *expect is how many bytes there are to read, and *align how its reads
 * are aligned (direct.h).
 */
int tsi_io_slot_check_file(int fd, const struct tsi_read_request *q,
			   struct tsi_fs_seen *seen, size_t *expect,
			   size_t *align);

/* Memory that reads of this alignment can go to, for free(); NULL: none. */
uint8_t *tsi_io_slot_memory(size_t size, size_t align);

#endif
