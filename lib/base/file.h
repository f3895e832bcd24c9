/* SPDX-License-Identifier: MIT */
/*
 * file.h - files: all of what is read and written, the first line of a small
 * one, and which are regular ones, whose reading neither blocks nor consumes.
 *
 * Reading a FIFO, a socket or a device may block for ever, or take away bytes
 * that were meant for another reader.  So may reading files that the kernel
 * makes up, although stat() calls them regular (/proc/kmsg, trace_pipe).
 */
#ifndef TSI_BASE_FILE_H
#define TSI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- read() and write() until all bytes are through ----
 *
 * A call that a signal interrupts is made again, and so is one that did less
 * than it was asked for.  For files and blocking descriptors; any thread.
 */

/*
 * Up to len bytes (at most SSIZE_MAX), from where the descriptor is, or from
 * offset at.  How many they are: fewer only at the file's end.  -1: errno says
 * why, and what is in *to is undefined.
 */
ssize_t tsi_file_read(int fd, void *to, size_t len);
ssize_t tsi_file_pread(int fd, void *to, size_t len, uint64_t at);

/* Exactly len bytes; false: there are fewer, or errno says why. */
static inline bool tsi_file_read_all(int fd, void *to, size_t len)
{
	return tsi_file_read(fd, to, len) == (ssize_t)len;
}

/*
 * All len bytes.  False: errno says why, ENOSPC where a write took nothing;
 * some may have been written.
 */
bool tsi_file_write(int fd, const void *from, size_t len);
bool tsi_file_pwrite(int fd, const void *from, size_t len, uint64_t at);

/* ---- small files of the kernel, as in /proc and /sys ---- */

/*
 * The first line without its newline, cut off at n - 1 bytes; n >= 1.  The path
 * is that of format, at most PATH_MAX - 1 bytes.  False, with an empty line:
 * there is no such file, or nothing in it.
 */
bool tsi_file_first_line(char *line, size_t n, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- which files can be read ---- */

/* "a FIFO", "a socket", "a folder", ...; NULL for a regular file. */
const char *tsi_file_kind(mode_t mode);

/* The last file system that was found not to be made up by the kernel. */
struct tsi_fs_seen {
	dev_t dev;
	bool known;
};

/*
 * Is fd, which may be an O_PATH one, in a file system that the kernel makes up:
 * procfs, sysfs, cgroups, tracing and the like?  The kernel is asked when dev,
 * which fstat() returned, differs from the last file's, and not for each file:
 * on a network the question takes a while.
 */
bool tsi_file_made_up(struct tsi_fs_seen *seen, dev_t dev, int fd);

/* Is the answer known to be no?  This needs no descriptor. */
static inline bool tsi_file_seen(const struct tsi_fs_seen *seen, dev_t dev)
{
	return seen->known && seen->dev == dev;
}

/* Why such a file is a bad one, for a message. */
#define TSI_FILE_MADE_UP \
	"is made up by the kernel (as in /proc and /sys), not a file to read"

#endif
