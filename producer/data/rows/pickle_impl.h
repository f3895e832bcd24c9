/* SPDX-License-Identifier: MIT */
/*
 * pickle_impl.h - what a pickle was found to hold, for pickle.c, pickle_stack.c
 * and pickle_built.c alone.
 */
#ifndef TSI_DATA_ROWS_PICKLE_IMPL_H
#define TSI_DATA_ROWS_PICKLE_IMPL_H

#include <stdbool.h>

#include "data/rows/pickle.h"

#define TSI_PICKLE_NAME 80 /* bytes of a module and a name */

enum kind {
	NOTHING, /* None, or what isn't looked at */
	MARK,
	NUMBER,
	STRING, /* bytes of the file */
	LIST,   /* also tuples and dictionaries, whose keys alternate */
	GLOBAL,
	DTYPE,
	ARRAY,
};

struct value {
	enum kind kind;
	uint64_t a; /* number; offset; number of a list, global or array */
	uint64_t b; /* bytes of a string */
};

struct list {
	struct value *item;
	uint64_t n, room;
};

struct tsi_pickle {
	const struct tsi_rows *rows;
	unsigned file;
	uint64_t at;     /* in the file */
	uint64_t values; /* that were pushed */
	struct list stack;
	struct list memo;
	struct list *list;
	uint64_t lists, list_room;
	char (*global)[TSI_PICKLE_NAME];
	uint64_t globals, global_room;
	struct tsi_pickle_array *array;
	uint64_t arrays, array_room;
	struct value top; /* what was built */
};

/* A short string's text; longer ones are cut.  EDATA: it is none. */
int tsi_pickle_text(const struct tsi_pickle *p, const struct value *v,
		    char to[TSI_PICKLE_NAME]);

/* Set the error, EDATA: the file, and what is wrong with it. */
int tsi_pickle_fail(const struct tsi_pickle *p, const char *what);
int tsi_pickle_odd(const struct tsi_pickle *p);

/*
 * The stack: everything that follows fails with EDATA (too little is on it, the
 * file ends) or ENOMEM.
 */
int tsi_pickle_push(struct tsi_pickle *p, struct value v);
int tsi_pickle_push_list(struct tsi_pickle *p); /* an empty one */
int tsi_pickle_pop(struct tsi_pickle *p, struct value *v);

/*
 * Put the values from the first-th on, or above the last mark, into the list
 * below them; or make a new list of them.  marks: that lie below the first.
 */
int tsi_pickle_extend(struct tsi_pickle *p, uint64_t first, uint64_t marks);
int tsi_pickle_extend_marked(struct tsi_pickle *p);
int tsi_pickle_gather(struct tsi_pickle *p, uint64_t first, uint64_t marks);
int tsi_pickle_gather_marked(struct tsi_pickle *p);

/* The top of the stack is the memo's k-th value from now on; push that one. */
int tsi_pickle_memo(struct tsi_pickle *p, uint64_t k);
int tsi_pickle_recall(struct tsi_pickle *p, uint64_t k);

/* The file's next bytes, or the number in them. */
int tsi_pickle_take(struct tsi_pickle *p, void *to, size_t n);
int tsi_pickle_number(struct tsi_pickle *p, unsigned bytes, uint64_t *out);

/*
 * Push the string, of a length of so many bytes, or the integer that comes
 * next; a long integer is of one byte and so many more.
 */
int tsi_pickle_push_string(struct tsi_pickle *p, unsigned bytes);
int tsi_pickle_push_int(struct tsi_pickle *p, unsigned bytes, bool is_signed);
int tsi_pickle_push_long(struct tsi_pickle *p);

#endif
