/* SPDX-License-Identifier: MIT */
/*
 * table.h - what a producer knows of the samples of its data set, beside their
 * contents: labels, files and keys, in memory that all jobs share.  tsock.h
 * includes this header and states the rules that hold for all functions.
 *
 * A table has a row for each sample of the data set, in the data set's order:
 * row i is of the sample whose field "index" is i.
 */
#ifndef TSOCK_TABLE_H
#define TSOCK_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * LABELS  What the field "label" has, as numbers; a table of classes has int32,
 *         and -1 where samples have no classes.
 * FILES   The path of the sample's file, below the data set's root.  Samples
 *         may share a file.
 * KEYS    What the field "key" has: the path of the sample's file or, where a
 *         file holds many samples, the name in it, without its extension.
 *
 * Values are ABI: append, never renumber.
 */
enum tsock_table_kind {
	TSOCK_TABLE_LABELS = 1,
	TSOCK_TABLE_FILES = 2,
	TSOCK_TABLE_KEYS = 3,
};

typedef struct tsock_table tsock_table;

struct tsock_table_info {
	uint32_t size;    /* set it to sizeof(struct tsock_table_info) */
	uint32_t kind;    /* enum tsock_table_kind */
	uint64_t count;   /* rows */
	uint64_t bytes;   /* of data */
	const void *data; /* numbers: rows, one behind the other; else texts */
	const uint64_t *start; /* where in data each row's text begins, which a
				* zero ends; NULL: rows are numbers */
	struct tsock_field field; /* numbers: dtype and shape of a row */
	/*
	 * Texts: where in data the paths of folders begin, ascending, each of
	 * which a zero ends.  What begins behind one of them and before the
	 * next is a name in that folder, or in the root if its path is empty.
	 * NULL: texts are whole.
	 */
	const uint64_t *folder;
	uint64_t folders;
};

/*
 * Ask the producer of a stream for a table, waiting at most timeout_ms (-1
 * waits).  identity is what tsock_identity() says of the stream that is meant;
 * NULL: any.  Nothing is copied: the memory is the producer's, mapped
 * read-only, and stays as it is when the producer ends.  Needs no consumer
 * handle, and makes none.
 * Fails with ENOPROD (nobody serves the stream, or its producer doesn't
 * answer), ELOST (another stream is served by now), ENOTSUP (the producer has
 * no such table: its samples have no labels or no names, a program serves them,
 * or it is of an earlier release), EARG, ENOMEM, EPROTO.
 */
TSOCK_API int tsock_table_open(const char *name, const char *identity,
			       uint32_t kind, int timeout_ms,
			       tsock_table **out);

/* Where the rows are.  The pointers are valid until tsock_table_close().  Any
 * thread, and in a forked child. */
TSOCK_API int tsock_table_get_info(const tsock_table *t,
				   struct tsock_table_info *out);

/*
 * The text of a row, FOLDER/NAME where the folder's path is stored once: *len
 * bytes with a zero behind them, valid until this thread's next call of this
 * function or tsock_table_close(); NULL, and a message, where there is no such
 * row, or rows are numbers.  len may be NULL.  Any thread, and in a forked
 * child.
 */
TSOCK_API const char *tsock_table_text(const tsock_table *t, uint64_t row,
				       size_t *len);

/* Unmap a table.  NULL is allowed. */
TSOCK_API void tsock_table_close(tsock_table *t);

/* ------------------------------------------------------------------------
 * For programs that serve a stream
 */

/*
 * A table that a server's function describes, and then fills in.
 *
 * The function is called with kind set, and says count and bytes, text (1: rows
 * are texts), and for numbers field.  Then it is called again, with data and,
 * for texts, start pointing to memory of the server's, which it fills.  Or, at
 * the first call, it sets fd to memory that has all that already: a memfd with
 * the seals SHRINK, GROW, SEAL and FUTURE_WRITE, of length bytes, with data_at
 * and start_at, and for names in folders (see struct tsock_table_info) with
 * folders of them at folders_at; the server makes a copy of the descriptor.
 */
struct tsock_serve_table {
	uint32_t size; /* sizeof(struct tsock_serve_table) */
	uint32_t kind; /* enum tsock_table_kind */
	uint64_t count;
	uint64_t bytes;
	uint32_t text;
	int32_t fd; /* -1: the server makes the memory */
	uint64_t length;
	uint64_t data_at;  /* aligned for its dtype */
	uint64_t start_at; /* a multiple of 8 */
	void *data;
	uint64_t *start;
	struct tsock_field field;
	uint64_t folders_at; /* a multiple of 8 */
	uint64_t folders;    /* 0: texts are whole */
};

#ifdef __cplusplus
}
#endif

#endif
