/*
 * index_impl.h - the tables of an index, for the files that make it: scan
 * (from the tree), probe (from the files), cache (from disk).
 *
 * All tables lie in one block, in memory as in the cache file.
 */
#ifndef TSI_DATA_INDEX_IMPL_H
#define TSI_DATA_INDEX_IMPL_H

#include <pthread.h>

#include "data/index.h"

/* A folder as it was when it was scanned. */
struct tsi_index_dir {
	uint64_t path; /* in names; the root is "" */
	int64_t mtime_ns;
	uint64_t ino;
};

#define TSI_INDEX_NO_MTIME INT64_MIN /* it kept changing: never up to date */

struct tsi_index_bad {
	uint64_t index;
	char *reason;
};

struct tsi_index {
	char *root;
	int dirfd;
	bool cached;
	uint64_t fingerprint;
	/* How long the tables are. */
	uint64_t count;
	uint64_t paths_len;
	uint64_t names_len;
	uint32_t classes;
	uint32_t dirs;
	/* The tables, in one block. */
	void *block;
	uint64_t *path;            /* [count], in paths */
	uint64_t *class_name;      /* [classes], in names */
	struct tsi_index_dir *dir; /* [dirs] */
	uint32_t *size;            /* [count] */
	uint32_t *label;           /* [count] */
	char *paths; /* every path, in order, each ended by a NUL */
	char *names; /* the root's path, classes, folders */
	/* Bad files, by index; the lock is for the probing threads. */
	pthread_mutex_t lock;
	struct tsi_index_bad *bad;
	uint64_t nbad;
	uint64_t bad_room;
};

/* Bytes of the block for the lengths in x; they must be sane already. */
uint64_t tsi_index_block_len(const struct tsi_index *x);

/* Point the tables into x->block. */
void tsi_index_set_tables(struct tsi_index *x);

/* Fill the tables from the tree, all sizes 0. */
int tsi_index_scan(struct tsi_index *x, unsigned threads);

/*
 * Look at n files, those in which or (NULL) the first n: sizes and the list of
 * bad ones, which starts empty.
 */
int tsi_index_probe(struct tsi_index *x, const struct tsi_index_opts *opts,
		    const uint64_t *which, uint64_t n);

/* A scan's threads. */
unsigned tsi_index_threads(const struct tsi_index_opts *opts);

/*
 * Fill the tables from the cache.  False when there is no cache for this tree
 * as it is now.  *bad gets the indices that were bad, *nbad of them: free().
 */
bool tsi_index_load(struct tsi_index *x, const struct tsi_index_opts *opts,
		    uint64_t **bad, uint64_t *nbad);

/* Write the cache; what goes wrong is logged. */
void tsi_index_save(const struct tsi_index *x,
		    const struct tsi_index_opts *opts);

/* A folder's mtime in nanoseconds. */
struct stat;
int64_t tsi_index_mtime_ns(const struct stat *st);

/*
 * Like strcmp(), but in the order in which Python sorts file names: by code
 * point, where a byte that isn't UTF-8 counts as U+DC00 plus the byte.
 */
int tsi_index_name_cmp(const char *a, const char *b);

#endif
