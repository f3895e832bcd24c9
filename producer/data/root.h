/* SPDX-License-Identifier: MIT */
/*
 * root.h - the folder that a data set lies in.
 *
 * All other paths of a data set are relative to it; "" is the root itself.
 */
#ifndef TSI_DATA_ROOT_H
#define TSI_DATA_ROOT_H

#include <sys/stat.h>

struct tsi_root {
	char *path; /* absolute */
	int fd;
};

/* No folder yet: it may be opened, and closed in any case. */
void tsi_root_init(struct tsi_root *r);

/* Open the folder at path.  -1 and errno: it can't be opened. */
int tsi_root_open(struct tsi_root *r, const char *path);

void tsi_root_close(struct tsi_root *r);

/* The absolute path. */
const char *tsi_root_path(const struct tsi_root *r);

/* For openat(). */
int tsi_root_fd(const struct tsi_root *r);

/* openat() and fstatat() of a path below the root. */
int tsi_root_openat(const struct tsi_root *r, const char *path, int flags);
int tsi_root_stat(const struct tsi_root *r, const char *path, struct stat *st);

#endif
