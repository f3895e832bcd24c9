/* SPDX-License-Identifier: MIT */
/*
 * path.h - a path below a root, kept as two strings.
 *
 * Thousands of files lie in one folder, whose path is stored once.
 */
#ifndef TSI_BASE_PATH_H
#define TSI_BASE_PATH_H

#include <stddef.h>
#include <stdint.h>

#define TSI_PATH 4352 /* bytes: more than PATH_MAX and a name */

/*
 * folder/name, written to to; or name itself, where folder is NULL or empty.
 * What is longer than TSI_PATH - 1 bytes, which no system call takes, is cut off.
 */
const char *tsi_path_join(const char *folder, const char *name,
			  char to[TSI_PATH]);

/* Only what comes before the name, without a NUL: so many bytes. */
size_t tsi_path_begin(const char *folder, char to[TSI_PATH]);

/*
 * The last of n ascending numbers that isn't above at; n: there is none.  By
 * where folders' paths begin among the names of files, that is the folder of a
 * name.
 */
size_t tsi_path_folder(const uint64_t *folder, size_t n, uint64_t at);

#endif
