/* SPDX-License-Identifier: MIT */
/*
 * cache_file.h - files that are kept beside a data set's scan, in the user's
 * folder of caches.
 *
 * A file appears whole or not at all, and is the user's alone.  What a crash of
 * the machine damages its reader must find by a checksum: nothing is synced.
 */
#ifndef TSI_DATA_CACHE_FILE_H
#define TSI_DATA_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct tsi_cache_name {
	const char *dir;  /* NULL: the user's own folder; "": nothing is kept */
	const char *root; /* the data set's absolute path */
	const char *select; /* that of the file that names its samples; NULL */
	const char *suffix; /* what the file is of */
};

/* The file's path; false: nothing is to be kept. */
bool tsi_cache_file_path(const struct tsi_cache_name *name, char *out,
			 size_t len);

/* A descriptor to read a file of this user's, or -1. */
int tsi_cache_file_open(const char *path);

/*
 * Let write() fill a file that then takes the place of path; its folders are
 * made.  False, and the old file stays, if anything fails, write() included;
 * errno says why.
 */
bool tsi_cache_file_replace(const char *path, bool (*write)(void *arg, int fd),
			    void *arg);

#endif
