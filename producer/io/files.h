/* SPDX-License-Identifier: MIT */
/*
 * files.h - files of many samples, which stay open: tar files, and those of a
 * pack.
 *
 * Any number of readers share them, in any threads.  The first `most` files are
 * kept and none of them makes place for another: samples come in random order,
 * so any file is as likely as another to be the next.
 */
#ifndef TSI_IO_FILES_H
#define TSI_IO_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_io_files;
struct tsi_io_file; /* one of them, and a reader's right to read it */

/*
 * Keep so many files open at most.  A path is looked at again check_ms after
 * its last look: if it leads to another file by then, that one is opened.
 * Fails with TSOCK_ENOMEM.
 */
int tsi_io_files_create(unsigned most, int64_t check_ms,
			struct tsi_io_files **out);
/* NULL is allowed.  What was taken has been given back. */
void tsi_io_files_destroy(struct tsi_io_files *f);

/* The file, to be given back; NULL: it isn't open. */
struct tsi_io_file *tsi_io_files_take(struct tsi_io_files *f, int dirfd,
				      const char *path);

/*
 * Keep this file, just opened as fd, and take it.  NULL: it isn't kept, and the
 * descriptor stays the caller's.  align: see direct.h.
 */
struct tsi_io_file *tsi_io_files_keep(struct tsi_io_files *f, int dirfd,
				      const char *path, int fd, size_t align);

/* Give a file back; forget: it is opened anew for the next one that takes
 * it. */
void tsi_io_files_give(struct tsi_io_files *f, struct tsi_io_file *file,
		       bool forget);

/* Its descriptor, as long as it is taken. */
int tsi_io_file_fd(const struct tsi_io_file *file);

/* How its reads are aligned, as it was kept. */
size_t tsi_io_file_align(const struct tsi_io_file *file);

#endif
