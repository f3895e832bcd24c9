/* SPDX-License-Identifier: MIT */
/*
 * fully.h - read() and write() until all bytes are through.
 *
 * A call that a signal interrupts is made again, and so is one that did less
 * than it was asked for.  For files and blocking descriptors; any thread.
 */
#ifndef TSI_BASE_FULLY_H
#define TSI_BASE_FULLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Up to len bytes (at most SSIZE_MAX), from where the descriptor is, or from
 * offset at.  How many they are: fewer only at the file's end.  -1: errno says
 * why, and what is in *to is undefined.
 */
ssize_t tsi_fully_read(int fd, void *to, size_t len);
ssize_t tsi_fully_pread(int fd, void *to, size_t len, uint64_t at);

/* Exactly len bytes; false: there are fewer, or errno says why. */
static inline bool tsi_fully_read_all(int fd, void *to, size_t len)
{
	return tsi_fully_read(fd, to, len) == (ssize_t)len;
}

/*
 * All len bytes.  False: errno says why, ENOSPC where a write took nothing;
 * some may have been written.
 */
bool tsi_fully_write(int fd, const void *from, size_t len);
bool tsi_fully_pwrite(int fd, const void *from, size_t len, uint64_t at);

#endif
