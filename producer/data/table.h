/*
 * table.h - the rows of a data set and their strings: what a scan finds, and
 * what the cache keeps of it.
 *
 * A row is a sample: the path of its file, the file's size, its label.  All
 * columns lie in one block, in memory as in the cache file.  Beside the block
 * there is a list of the rows that turned out to be bad.
 *
 * A table knows nothing of the folder that it describes but names, and does no
 * input or output.
 */
#ifndef TSI_DATA_TABLE_H
#define TSI_DATA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The folder that all paths are relative to. */
struct tsi_root {
	char *path; /* absolute */
	int fd;
};

/* A folder as it was when it was scanned. */
struct tsi_table_dir {
	uint64_t path; /* in names; the root is "" */
	int64_t mtime_ns;
	uint64_t ino;
};

#define TSI_TABLE_NO_MTIME INT64_MIN /* it kept changing: never up to date */

struct tsi_table_bad {
	uint64_t index;
	char *reason;
};

struct tsi_table {
	/* How long the columns are. */
	uint64_t count;
	uint64_t paths_len;
	uint64_t names_len;
	uint32_t classes;
	uint32_t dirs;
	/* The columns, in one block. */
	void *block;
	uint64_t *path;            /* [count], in paths */
	uint64_t *class_name;      /* [classes], in names */
	struct tsi_table_dir *dir; /* [dirs] */
	uint32_t *size;            /* [count] */
	uint32_t *label;           /* [count] */
	char *paths; /* every path, in order, each ended by a NUL */
	char *names; /* the root's path, classes, folders */
	/* Bad rows; in the order of rows once they are sorted. */
	struct tsi_table_bad *bad;
	uint64_t nbad;
	uint64_t bad_room;
};

/* Bytes of the block for the lengths in t, which must be sane already. */
uint64_t tsi_table_block_len(const struct tsi_table *t);

/* Point the columns into t->block. */
void tsi_table_set_columns(struct tsi_table *t);

/* Free all that t holds, and make it empty. */
void tsi_table_clear(struct tsi_table *t);

/* Mark row i bad; the reason is copied.  Fails with ENOMEM. */
int tsi_table_add_bad(struct tsi_table *t, uint64_t i, const char *reason);
void tsi_table_sort_bad(struct tsi_table *t);

/* The entry of row i in the sorted list of bad rows; NULL: the row is good. */
const struct tsi_table_bad *tsi_table_find_bad(const struct tsi_table *t,
					       uint64_t i);

static inline const char *tsi_table_path(const struct tsi_table *t, uint64_t i)
{
	return t->paths + t->path[i];
}

/* A folder's mtime in nanoseconds. */
struct stat;
int64_t tsi_table_mtime_ns(const struct stat *st);

#endif
