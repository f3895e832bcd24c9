/* SPDX-License-Identifier: MIT */
/*
 * reader.h - files, or ranges of them, into memory, several ahead of need.
 *
 * One reader per worker thread, used by that thread alone.  Two backends
 * behave alike: io_uring, and a few threads that call pread() where the kernel
 * or a container forbids io_uring.  A reader never looks into the bytes, never
 * retries an error, and never reads anything but regular files: opening a
 * FIFO or a device does not block and gives TSI_READER_ODD, a file of /proc or
 * the like TSI_READER_MADE_UP, a folder EISDIR, more than TSI_READER_MAX bytes
 * EFBIG, a file that ends before the range does TSI_READER_TRUNCATED.
 *
 * What is read ahead has to fit into memory eight times per worker, so a file
 * or range of more than TSI_READER_AHEAD bytes is only looked at: its size
 * comes back, and a caller that has the memory reads it by tsi_io_read().
 */
#ifndef TSI_IO_READER_H
#define TSI_IO_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSI_READER_MAX ((size_t)1 << 30) /* bytes of one read */
#define TSI_READER_AHEAD ((size_t)4 << 20)
#define TSI_READER_MAX_DEPTH 1024
#define TSI_READER_HEAD 4096 /* bytes by which parts are chosen */
#define TSI_READER_PARTS 12

/* Errors beyond those of the system. */
#define TSI_READER_ODD 4096
#define TSI_READER_MADE_UP 4097
#define TSI_READER_TRUNCATED 4098

struct tsi_io_files;
struct tsi_io_reader;

enum tsi_io_reader_kind {
	TSI_READER_AUTO, /* io_uring, else pread */
	TSI_READER_URING,
	TSI_READER_PREAD,
};

/* Not read: larger than TSI_READER_AHEAD. */
#define TSI_READ_LARGE (-2)

struct tsi_read_part {
	uint64_t offset; /* in the file */
	size_t length;
};

/* What to read; all that is 0 is left out. */
struct tsi_read_request {
	int dirfd;
	/*
	 * Relative to dirfd, or to a folder there, which only whole files have;
	 * both live until the read is taken.
	 */
	const char *folder, *path;
	/* The range; length 0: the whole file, and offset is 0 then. */
	uint64_t offset;
	uint64_t length;
	/*
	 * Which parts of a whole file are wanted, by its first bytes,
	 * TSI_READER_HEAD of them, and its size: writes up to TSI_READER_PARTS,
	 * ascending, behind the first bytes and within the file.  Returns how
	 * many; 0: all of the file.  It may be called by any thread until the
	 * read is taken, or not at all.
	 */
	unsigned (*choose)(void *arg, const uint8_t *head, uint64_t size,
			   struct tsi_read_part *to);
	void *arg;
	bool direct; /* past the page cache, if the file system can */
	/*
	 * How much memory is worth keeping; what is read may be smaller or
	 * larger.
	 */
	uint64_t size_hint;
	uint64_t tag; /* the caller's number for this read */
};

struct tsi_read {
	uint64_t tag;
	const uint8_t *data; /* never NULL when err is 0 */
	size_t len;
	/* The file's size, if data is its head and the parts; 0: all of it is. */
	uint64_t of;
	int err;       /* 0, an errno, or one of ours */
	size_t size;   /* with TSI_READ_LARGE: bytes; a file's may change */
	unsigned slot; /* used by the reader */
};

/*
 * depth: reads that may be submitted and not yet recycled.  Fails with EARG,
 * ENOTSUP (io_uring was asked for and isn't there), ENOMEM, ESYS.
 */
int tsi_io_reader_create(enum tsi_io_reader_kind kind, unsigned depth,
			 struct tsi_io_reader **out);

/*
 * Keep files of which ranges are read open, among these, which must outlive the
 * reader.  Before the first read.
 */
void tsi_io_reader_use_files(struct tsi_io_reader *r,
			     struct tsi_io_files *files);

/* Was this built with io_uring? */
bool tsi_io_reader_has_uring(void);

/* "io_uring" or "pread". */
const char *tsi_io_reader_name(const struct tsi_io_reader *r);

/* Why AUTO did not choose io_uring; NULL when it did. */
const char *tsi_io_reader_why(const struct tsi_io_reader *r);

/* strerror() for what a read's err may be. */
const char *tsi_io_reader_strerror(int err);

/* It says something about the file; other errors are the machine's. */
bool tsi_io_reader_blames_file(int err);

/*
 * Begin a read.  The kernel hears of it at the next tsi_io_reader_next() at
 * the latest: submit several, then call that.
 * Fails with EAGAIN when depth reads are submitted and not recycled, EARG (an
 * offset without a length).
 */
int tsi_io_reader_submit(struct tsi_io_reader *r,
			 const struct tsi_read_request *q);

/*
 * Take the finished read with the lowest tag; wait: until one finishes.
 * Its data stays valid until tsi_io_reader_recycle().  EAGAIN when none is
 * finished, or (with wait) none is pending.
 */
int tsi_io_reader_next(struct tsi_io_reader *r, bool wait,
		       struct tsi_read *out);

/* Give a taken read's memory back to the reader. */
void tsi_io_reader_recycle(struct tsi_io_reader *r,
			   const struct tsi_read *read);

/*
 * Read a file or range here and now, into a new block at *data, which is the
 * caller's to free.  Returns what struct tsi_read's err may be; EFBIG: more
 * than max bytes.
 */
int tsi_io_read(const struct tsi_read_request *q, size_t max, uint8_t **data,
		size_t *len);

/* Drops pending reads (what the kernel has begun is waited for).  NULL ok. */
void tsi_io_reader_destroy(struct tsi_io_reader *r);

#endif
