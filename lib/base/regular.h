/*
 * regular.h - is this a file whose bytes lie somewhere, to be read at leisure?
 *
 * Reading a FIFO, a socket or a device may block for ever, or take from
 * somebody else what they were to get; so may files that the kernel makes up,
 * which call themselves regular (/proc/kmsg, trace_pipe).
 */
#ifndef TSI_BASE_REGULAR_H
#define TSI_BASE_REGULAR_H

#include <stdbool.h>
#include <sys/types.h>

/* "a FIFO", "a socket", "a folder", ...; NULL for a regular file. */
const char *tsi_regular_kind(mode_t mode);

/* The last file system that was seen to be none that the kernel makes up. */
struct tsi_fs_seen {
	dev_t dev;
	bool known;
};

/*
 * Is fd, which may be an O_PATH one, in a file system of the kernel's own
 * making: procfs, sysfs, cgroups, tracing and their like?  Asked once for each
 * file system that differs from the last, not for each file: on a network it
 * takes a while.  dev is what fstat said.
 */
bool tsi_regular_made_up(struct tsi_fs_seen *seen, dev_t dev, int fd);

/* The answer is known to be no: it needs no descriptor. */
static inline bool tsi_regular_seen(const struct tsi_fs_seen *seen, dev_t dev)
{
	return seen->known && seen->dev == dev;
}

/* Why such a file is bad. */
#define TSI_REGULAR_MADE_UP \
	"is made up by the kernel (as in /proc and /sys), not a file to read"

#endif
