/* SPDX-License-Identifier: MIT */
/*
 * root.h - the folder that a data set lies in.
 *
 * All other paths of a data set are relative to it; "" is the root itself.
 * A data set may be some files of its folder only: then the root has a pattern
 * too, which says which ("shard-{000..099}.tar").
 */
#ifndef TSI_DATA_ROOT_H
#define TSI_DATA_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct tsi_root {
	char *given; /* by which it was opened */
	char *path;  /* absolute */
	char *name;  /* path, or path/pattern */
	int fd;
};

/* No folder yet: it may be opened, and closed in any case. */
void tsi_root_init(struct tsi_root *r);

/* Open the folder at path.  -1 and errno: it can't be opened. */
int tsi_root_open(struct tsi_root *r, const char *path);

/*
 * Open the folder above the last '/' of path (the current one if there is
 * none), and take what stands behind that '/' for the pattern.  -1 and errno.
 */
int tsi_root_open_pattern(struct tsi_root *r, const char *path);

void tsi_root_close(struct tsi_root *r);

/* The absolute path of the folder; its pattern, or NULL. */
const char *tsi_root_path(const struct tsi_root *r);
const char *tsi_root_pattern(const struct tsi_root *r);

/* What tells this data set from others: the path, or path/pattern. */
const char *tsi_root_name(const struct tsi_root *r);

/* Are the two the same folder, by whatever path? */
bool tsi_root_equal(const struct tsi_root *a, const struct tsi_root *b);

/*
 * Is there, by the path that it was opened by, another folder by now, or none?
 * Then *now is a number for what is there.
 */
bool tsi_root_replaced(const struct tsi_root *r, uint64_t *now);

/* For openat(). */
int tsi_root_fd(const struct tsi_root *r);

/* openat() and fstatat() of a path below the root. */
int tsi_root_openat(const struct tsi_root *r, const char *path, int flags);
int tsi_root_stat(const struct tsi_root *r, const char *path, struct stat *st);

#endif
