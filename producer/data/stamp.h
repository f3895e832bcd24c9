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
	uint64_t path; /* the table's: in names; the root is "" */
	int64_t mtime_ns;
	uint64_t ino;
};

/*
 * Take the stamp of what fd is open at, all but the path.  What has only just
 * changed is waited for, so that a change from now on gives it another stamp;
 * if it goes on changing, its stamp is never up to date.  -1: see errno.
 */
int tsi_stamp_take(int fd, struct stat *st, struct tsi_stamp *out);

/* What is there now is what the stamp was taken of. */
bool tsi_stamp_holds(const struct tsi_stamp *s, const struct stat *now);

#endif
