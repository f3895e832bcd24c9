/* SPDX-License-Identifier: MIT */
/*
 * shard_store.h - a local folder with whole copies of large files that lie on a
 * slow file system, for this run and later ones.
 *
 * A copy's name is made of the source's path, size and time of modification, so
 * that a source that changed has no copy.  A copy is written under another
 * name, flushed and renamed: under its own name it is whole, whoever was killed.
 * Any number of processes may share the folder.  Among the copies those that
 * weren't used for longest are displaced where room is needed, but none that
 * was used within the last TSI_SHARD_KEEP_S seconds.
 */
#ifndef TSI_IO_SHARD_STORE_H
#define TSI_IO_SHARD_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TSI_SHARD_KEEP_S 300
#define TSI_SHARD_NAME 48 /* bytes of a copy's name, with its NUL */

struct tsi_shard_store;

/* A file of a data set: below a folder, whose path tells it from others. */
struct tsi_shard_source {
	const char *root;
	int dirfd;
	const char *path;
};

enum tsi_shard_fetched {
	TSI_SHARD_THERE,  /* there is a copy */
	TSI_SHARD_LATER,  /* another process copies it now */
	TSI_SHARD_FULL,   /* what was used of late leaves no room for it */
	TSI_SHARD_NOT,    /* the source can't be copied */
	TSI_SHARD_BROKEN, /* nothing can be written there; the error says why */
};

/*
 * Use a folder, which is made if it isn't there, for so many bytes; 0: all of
 * its disk that is free by now, but a twentieth of the disk.  Fails with ESYS,
 * ENOMEM.
 */
int tsi_shard_store_open(const char *folder, uint64_t bytes,
			 struct tsi_shard_store **out);

/* NULL is allowed. */
void tsi_shard_store_close(struct tsi_shard_store *s);

/* The folder, in which copies have their names. */
int tsi_shard_store_fd(const struct tsi_shard_store *s);

/*
 * See that there is a copy, and what it is called.  Takes as long as the file
 * is read; ends soon, with LATER, once *stop is set.  One thread at a time.
 */
enum tsi_shard_fetched tsi_shard_store_fetch(struct tsi_shard_store *s,
					     const struct tsi_shard_source *of,
					     const atomic_bool *stop,
					     char name[TSI_SHARD_NAME]);

/* The copy was used just now. */
void tsi_shard_store_touch(const struct tsi_shard_store *s, const char *name);

#endif
