/*
 * reader_impl.h - what both makes of reader share: slots and their buffers.
 *
 * A slot goes FREE -> QUEUED -> DONE -> TAKEN -> FREE.  While it is QUEUED it
 * belongs to the backend, else to the reader's own thread.
 */
#ifndef TSI_IO_READER_IMPL_H
#define TSI_IO_READER_IMPL_H

#include <sys/types.h>

#include "base/regular.h"
#include "io/reader.h"

enum tsi_rstate {
	TSI_RFREE,
	TSI_RQUEUED,
	TSI_RDONE,
	TSI_RTAKEN,
};

struct tsi_rslot {
	enum tsi_rstate state;
	uint64_t tag;
	const char *path;
	int dirfd;
	int fd;
	int err;
	uint8_t *buf;
	size_t cap;
	size_t len;
	size_t expect; /* the size that fstat said */
	size_t asked;  /* by the read in flight */
	struct tsi_fs_seen seen;
};

struct tsi_file_reader_ops {
	const char *name;
	/* Begin slot i; may be put off until pump. */
	void (*start)(struct tsi_file_reader *r, unsigned i);
	/* Turn finished slots DONE; with block wait until something happens. */
	int (*pump)(struct tsi_file_reader *r, bool block);
	/* End everything and free r, by tsi_file_reader_free_slots() and free(). */
	void (*destroy)(struct tsi_file_reader *r);
};

/* The backends have it as their first member. */
struct tsi_file_reader {
	const struct tsi_file_reader_ops *ops;
	struct tsi_rslot *slot;
	unsigned depth;
	unsigned pending;
	char why[160];
};

/* ENOTSUP with a message when the kernel or the build has no io_uring. */
int tsi_file_reader_uring_create(unsigned depth, struct tsi_file_reader **out);
int tsi_file_reader_pread_create(unsigned depth, struct tsi_file_reader **out);

int tsi_file_reader_make_slots(struct tsi_file_reader *r, unsigned depth);
void tsi_file_reader_free_slots(struct tsi_file_reader *r);

/* The errno of a file that isn't one to be read; *size is what fstat said. */
int tsi_file_check(int fd, struct tsi_fs_seen *seen, size_t *size);

#define TSI_READER_OFLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/*
 * The steps of one read, for a backend to string together.  Each returns an
 * errno; TSI_RMORE asks for another read of s->asked bytes at s->len.
 */
#define TSI_RMORE (-1)
int tsi_rslot_opened(struct tsi_rslot *s, int fd);
int tsi_rslot_got(struct tsi_rslot *s, size_t n);

#endif
