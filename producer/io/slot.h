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
#include <stddef.h>
#include <stdint.h>

#include "base/regular.h"

enum tsi_io_state {
	TSI_IO_FREE,
	TSI_IO_QUEUED,
	TSI_IO_DONE,
	TSI_IO_TAKEN,
};

struct tsi_io_slot {
	enum tsi_io_state state;
	uint64_t tag;
	const char *path;
	uint64_t offset; /* of the range in the file */
	uint64_t length; /* of the range; 0: the whole file */
	int dirfd;
	int fd;
	int err;
	uint8_t *buf;
	size_t cap;
	size_t len;
	size_t expect; /* bytes of the range, or of the file by fstat */
	size_t asked;  /* by the read in flight */
	struct tsi_fs_seen seen;
};

#define TSI_IO_OFLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* An array of free slots; NULL when there is no memory. */
struct tsi_io_slot *tsi_io_slots_create(unsigned depth);
/* NULL is allowed. */
void tsi_io_slots_destroy(struct tsi_io_slot *slot, unsigned depth);

/*
 * Queue a free slot, whose tag, dirfd, path and range are set.  The hint says
 * how large a buffer is worth keeping.
 */
void tsi_io_slot_begin(struct tsi_io_slot *s, size_t size_hint);

/*
 * The steps of one read, for a backend to string together: its file is open,
 * n bytes of it have come.  Each returns an errno, one of the reader's errors,
 * or TSI_IO_MORE, which asks for another read of s->asked bytes
 * at tsi_io_slot_at(s) into s->buf + s->len.
 */
#define TSI_IO_MORE (-1)
int tsi_io_slot_opened(struct tsi_io_slot *s, int fd);
int tsi_io_slot_got(struct tsi_io_slot *s, size_t n);

/* Where in the file the next read begins. */
static inline uint64_t tsi_io_slot_at(const struct tsi_io_slot *s)
{
	return s->offset + s->len;
}

/*
 * The error of a file that isn't one to be read, or is shorter than the range;
 * else *expect is how many bytes there are to read.
 */
int tsi_io_slot_check_file(int fd, uint64_t offset, uint64_t length,
			   struct tsi_fs_seen *seen, size_t *expect);

#endif
