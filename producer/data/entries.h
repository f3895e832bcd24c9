/* SPDX-License-Identifier: MIT */
/*
 * entries.h - the entries of a folder, as readdir() gives them: fdopendir()
 * makes three more system calls, which for small folders is a lot.
 */
#ifndef TSI_DATA_ENTRIES_H
#define TSI_DATA_ENTRIES_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_entries {
	int fd;
	size_t at, len;
	uint64_t buf[4096];
};

/* The folder that is open as fd, which remains the caller's. */
void tsi_entries_begin(struct tsi_entries *e, int fd);

/*
 * The next entry but "." and "..", valid until the next call; NULL at the end,
 * with errno 0, or by an error.
 */
const struct dirent *tsi_entries_next(struct tsi_entries *e);

#endif
