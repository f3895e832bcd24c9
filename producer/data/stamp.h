/* SPDX-License-Identifier: MIT */
/*
 * stamp.h - what a folder or file was when a scan read it, so that a later
 * start sees whether it has changed since.
 */
#ifndef TSI_DATA_STAMP_H
#define TSI_DATA_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct tsi_stamp {
	uint64_t path; /* in the table's names; the root is "" */
	int64_t mtime_ns;
	uint64_t ino;
};

/*
 * Take the stamp of the file or folder that fd is open at, all but its path.
 * If the file has only just changed, wait for the clock's next tick, so that
 * any later change gives it another stamp; if it goes on changing, its stamp is
 * never up to date.  Returns -1 with errno set when the file can't be asked.
 */
int tsi_stamp_take(int fd, struct stat *st, struct tsi_stamp *out);

/* The file or folder is as it was when the stamp was taken. */
bool tsi_stamp_holds(const struct tsi_stamp *s, const struct stat *now);

#endif
