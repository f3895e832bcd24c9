/* SPDX-License-Identifier: MIT */
/*
 * table.h - the rows of a data set and their strings: what a scan finds, and
 * what the cache keeps of it.
 *
 * A row is a sample: the path of its file, the range of the file and the
 * sample's own name if the file holds more than this sample, the size, the
 * label.  All columns lie in one block, in memory as in the cache file.  Beside
 * the block there is a list of the rows that turned out to be bad.
 *
 * Where folders hold many files, a folder's path stands once in `paths`, before
 * the names of its files; `folder` says where.  So rows may be in any order.
 *
 * A table knows nothing of the data set that it describes but names, and does
 * no input or output.
 */
#ifndef TSI_DATA_TABLE_H
#define TSI_DATA_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "data/block.h"
#include "data/columns.h"
#include "data/stamp.h"

/* Where the bytes of a sample are; only what is a whole file has a folder. */
struct tsi_location {
	const char *folder; /* relative to the root; NULL or "": the root */
	const char *file;   /* in the folder */
	const char *member; /* its name in the file; NULL: it has none */
	uint64_t offset;    /* in the file */
	uint64_t length;    /* 0: the whole file */
	uint64_t size;      /* bytes when it was scanned: a hint */
};

/* The path of the file, written to to if it isn't in memory as a whole. */
static inline const char *tsi_location_path(const struct tsi_location *at,
					    char to[TSI_PATH])
{
	return tsi_path_join(at->folder, at->file, to);
}

struct tsi_table_bad {
	uint64_t index;
	char *reason;
};

/* How long a table's columns are. */
struct tsi_table_lengths {
	uint64_t count;
	uint64_t paths_len;
	uint64_t names_len;
	uint64_t folders; /* that are stored once; 0: paths are whole */
	uint32_t classes;
	uint32_t stamps;
	bool ranged; /* rows are ranges of files */
	bool named;  /* and have names of their own */
	bool bare;   /* no columns of rows: the format has them elsewhere */
};

struct tsi_table {
	struct tsi_table_lengths n;
	/* The columns, in one block. */
	void *block;
	struct tsi_block made;   /* how the block was */
	uint64_t *path;          /* [count], in paths */
	uint64_t *class_name;    /* [classes], in names */
	struct tsi_stamp *stamp; /* [stamps], of what the scan read */
	uint64_t *offset;        /* [count], if ranged */
	uint64_t *length;        /* [count], if ranged */
	uint64_t *member;        /* [count], if named; in paths */
	uint64_t *folder;        /* [folders], in paths, ascending */
	uint32_t *size;          /* [count] */
	uint32_t *label;         /* [count] */
	char *paths;             /* each ended by a NUL; rows may share one */
	char *names;             /* the root's path, classes, stamps' paths */
	struct tsi_columns *columns; /* further fields; NULL: none */
	/* Bad rows; in the order of rows once they are sorted. */
	struct tsi_table_bad *bad;
	uint64_t nbad;
	uint64_t bad_cap;
};

/* Bytes of the block for these lengths, which must be sane already. */
uint64_t tsi_table_block_len(const struct tsi_table_lengths *n);

/* Point the columns into a block of these lengths, which t owns from now on. */
void tsi_table_set_block(struct tsi_table *t, const struct tsi_table_lengths *n,
			 void *block);

/* Free all that t holds, and make it empty. */
void tsi_table_clear(struct tsi_table *t);

/* Rows; classes, and what class i is called. */
uint64_t tsi_table_count(const struct tsi_table *t);
uint32_t tsi_table_classes(const struct tsi_table *t);
const char *tsi_table_class(const struct tsi_table *t, uint32_t i);

/* Have rows names of their own?  Are folders of files stored once? */
bool tsi_table_named(const struct tsi_table *t);
bool tsi_table_foldered(const struct tsi_table *t);

/* Bytes of row i's file or range: a hint, kept as UINT32_MAX at most. */
void tsi_table_set_size(struct tsi_table *t, uint64_t i, uint64_t size);

/* Further fields of the rows, which t owns from then on; NULL: none. */
void tsi_table_set_columns(struct tsi_table *t, struct tsi_columns *c);
const struct tsi_columns *tsi_table_columns(const struct tsi_table *t);

/*
 * The classes are n, of these names, from now on, and row i is of class
 * label[i].  Fails with ENOMEM; t is unchanged then.
 */
int tsi_table_set_classes(struct tsi_table *t, char *const *name, uint32_t n,
			  const uint32_t *label);

/* What the table has of the file or folder of this path; NULL: nothing. */
const struct tsi_stamp *tsi_table_stamp(const struct tsi_table *t,
					const char *path);

/* Mark row i bad; the reason is copied.  Fails with ENOMEM. */
int tsi_table_add_bad(struct tsi_table *t, uint64_t i, const char *reason);
void tsi_table_sort_bad(struct tsi_table *t);
/* No row is bad any more. */
void tsi_table_forget_bad(struct tsi_table *t);

/* Bad rows; the index of the k-th of them. */
uint64_t tsi_table_bad_count(const struct tsi_table *t);
uint64_t tsi_table_bad_at(const struct tsi_table *t, uint64_t k);

/* Why row i of a sorted list is bad; NULL: it is good. */
const char *tsi_table_bad_reason(const struct tsi_table *t, uint64_t i);

/*
 * Leave n of the rows, those of these numbers, each of which comes once, in
 * this order.  The list of bad rows is sorted before and after.  Fails with
 * ENOMEM; t is unchanged then.
 */
int tsi_table_choose(struct tsi_table *t, const uint64_t *rows, uint64_t n);

/* Location and label of row i, as a format's operations. */
void tsi_table_locate(const struct tsi_table *t, uint64_t i,
		      struct tsi_location *out);
int64_t tsi_table_label(const struct tsi_table *t, uint64_t i);

/* Where a column of rows lies in a block that other processes can map. */
struct tsi_table_shared {
	int fd;                       /* the table's own */
	uint64_t length;              /* of its memory */
	uint64_t at;                  /* of the column there */
	uint64_t texts_at, texts_len; /* of what a column of texts points to */
	uint64_t folders_at, folders; /* of where folders' paths are there */
};

/*
 * The paths of rows, each ended by a NUL, or their labels (uint32_t).  False:
 * the table has no such column, or its block is private.
 */
bool tsi_table_share_paths(const struct tsi_table *t,
			   struct tsi_table_shared *out);
bool tsi_table_share_labels(const struct tsi_table *t,
			    struct tsi_table_shared *out);

/*
 * A number for which rows there are, where their bytes lie, how many they are,
 * and which of them are bad: equal tables have equal ones.  The list of bad
 * rows is sorted.
 */
uint64_t tsi_table_fingerprint(const struct tsi_table *t);

/*
 * How a scan fills a table: it adds up the lengths (names_len with the root's
 * path and each name's NUL), begins, and puts exactly that much.
 */
struct tsi_table_writer {
	struct tsi_table *table;
	uint64_t rows;
	uint64_t paths;
	uint64_t names;
	uint64_t folders;
	uint32_t classes;
	uint32_t stamps;
};

/* Make the columns and put the root's path.  Fails with ENOMEM. */
int tsi_table_begin(struct tsi_table_writer *w, struct tsi_table *t,
		    const struct tsi_table_lengths *n, const char *root);
void tsi_table_put_class(struct tsi_table_writer *w, const char *name);
/* The path in stamp is filled in; NULL: the last class's name, kept once. */
void tsi_table_put_stamp(struct tsi_table_writer *w, const char *path,
			 const struct tsi_stamp *stamp);
/*
 * The folder of the paths that are put from now on; "": the root.  In a table
 * with folders it comes before the first path.
 */
void tsi_table_put_folder(struct tsi_table_writer *w, const char *path);
/* A name in that folder, or a path; returns it for tsi_table_put_row(). */
uint64_t tsi_table_put_path(struct tsi_table_writer *w, const char *path);
/* offset and length are for a ranged table; length 0: the whole file. */
void tsi_table_put_row(struct tsi_table_writer *w, uint64_t path,
		       uint32_t label, uint64_t offset, uint64_t length);
/* The name of the row that was put last, in a table with names. */
void tsi_table_put_member(struct tsi_table_writer *w, const char *name);

#endif
