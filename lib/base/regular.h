/* SPDX-License-Identifier: MIT */
/*
 * regular.h - is a file a regular one, whose reading neither blocks nor
 * consumes?
 *
 * Reading a FIFO, a socket or a device may block for ever, or take away bytes
 * that were meant for another reader.  So may reading files that the kernel
 * makes up, although stat() calls them regular (/proc/kmsg, trace_pipe).
 */
#ifndef TSI_BASE_REGULAR_H
#define TSI_BASE_REGULAR_H

#include <stdbool.h>
#include <sys/types.h>

/* "a FIFO", "a socket", "a folder", ...; NULL for a regular file. */
const char *tsi_regular_kind(mode_t mode);

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
bool tsi_regular_made_up(struct tsi_fs_seen *seen, dev_t dev, int fd);

/* Is the answer known to be no?  This needs no descriptor. */
static inline bool tsi_regular_seen(const struct tsi_fs_seen *seen, dev_t dev)
{
	return seen->known && seen->dev == dev;
}

/* Why such a file is a bad one, for a message. */
#define TSI_REGULAR_MADE_UP \
	"is made up by the kernel (as in /proc and /sys), not a file to read"

#endif
