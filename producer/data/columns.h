/* SPDX-License-Identifier: MIT */
/*
 * columns.h - the fields that a data set has beside images and classes: a value
 * for each row, of numbers or text.
 *
 * The values lie in memory that the columns own, or in files that are mapped.
 * The label is one of them, of any dtype and shape, and so are images that lie
 * there pixel by pixel.
 */
#ifndef TSI_DATA_COLUMNS_H
#define TSI_DATA_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tsock/common.h"

#define TSI_COLUMNS 8 /* beside the label */
#define TSI_OTHERS 11 /* images of a sample behind the first */

struct tsi_mapped;
struct tsi_documents;

/* What a row has of a sample's tokens, see documents.h. */
enum tsi_columns_run {
	TSI_COLUMNS_NO_RUN,
	TSI_COLUMNS_TOKENS, /* the tokens, and zeros behind them */
	TSI_COLUMNS_LENGTH, /* how many they are, int32 */
	TSI_COLUMNS_MARKS,  /* which documents they are of, int32 each */
};

/* Rows that lie behind one another, from the row first on. */
struct tsi_column_part {
	uint64_t first;
	const uint8_t *data;
};

struct tsi_column {
	struct tsock_field field; /* what consumers see */
	size_t bytes;             /* of a row there */
	const uint8_t *data;      /* the rows, or their text */
	/*
	 * Of text: where each row's begins, and the last one's end; of hot and
	 * ragged ones likewise.  Else NULL.
	 */
	const uint64_t *start;
	size_t item;    /* ragged: bytes of what start counts; 0: 1 byte */
	uint8_t pad[8]; /* ragged: the value that fills what a row leaves */
	/*
	 * In a file that may be cut short or written over: how many items there
	 * are, and in a row at most.  Columns without start are checked so, too.
	 */
	bool mapped;
	uint64_t end, most;
	bool length; /* a row is how many start counts, int32; data is NULL */
	enum tsi_columns_run run; /* data is NULL; of the columns' documents */
	bool narrow; /* data is uint32_t, a row is one of them as int64 */
	bool hot; /* data is uint32_t: which of a row's floats are 1, not 0 */
	/*
	 * Where a row begins every stride bytes, in one or more parts, whose
	 * rows ascend from 0; parts 0: every row of data has its bytes alone.
	 */
	size_t stride;
	struct tsi_column_part *part;
	unsigned parts;
	/*
	 * Set by tsi_columns_join(): the number + 1 of the field that comes first
	 * in the same records, and how many bytes before this one; 0: none does.
	 */
	unsigned behind;
	size_t at;
};

/*
 * Where the mask of a pack's sample lies, or another image; length 0: it has
 * none.
 */
struct tsi_columns_mask {
	uint64_t offset;
	uint32_t length;
	uint32_t shard;
};

struct tsi_columns {
	struct tsi_column label; /* bytes 0: there are no labels */
	bool classes;            /* labels are numbers of classes */
	struct tsi_column column[TSI_COLUMNS];
	unsigned n;
	/*
	 * Images as their pixels, u8 [height, width, channels]; bytes 0: there
	 * are none.  Planar: [channels, height, width] in the file.
	 */
	struct tsi_column pixels;
	bool planar;
	const struct tsi_columns_mask *mask; /* NULL: there are none */
	struct tsi_documents *documents;     /* NULL: no column is a run */
	/* The fields of images behind the first, which lie in files. */
	char other[TSI_OTHERS][sizeof(((struct tsock_field *)0)->name)];
	unsigned others;
	/* Where they lie in a pack; NULL: elsewhere. */
	const struct tsi_columns_mask *other_at[TSI_OTHERS];
	bool imageless;         /* the fields are all that samples have */
	uint64_t *row;          /* whose values row i has; NULL: its own */
	void *mem;              /* where they lie: free() */
	void *texts[2];         /* and what says where samples lie: free() */
	struct tsi_mapped *map; /* and the files that they lie in */
	unsigned maps;
	uint64_t hash; /* of all values, and of where the samples are */
};

/*
 * Row i has the values of row[i], which c owns from then on; hash is a number
 * for all values.
 */
void tsi_columns_set_rows(struct tsi_columns *c, uint64_t *row, uint64_t hash);

/* NULL is allowed. */
void tsi_columns_destroy(struct tsi_columns *c);

/* The fields are all there: find those that lie in the same records. */
void tsi_columns_join(struct tsi_columns *c);

/* Row k has from now on what row rows[k] had.  Fails with ENOMEM. */
int tsi_columns_choose(struct tsi_columns *c, const uint64_t *rows, uint64_t n);

/* Which of the file's rows row i is. */
uint64_t tsi_columns_row(const struct tsi_columns *c, uint64_t i);

/* A number for the values of n rows, which goes on from h. */
uint64_t tsi_columns_fingerprint(const struct tsi_columns *c, uint64_t n,
				 uint64_t h);

/* The fields beside the label, and the label's; NULL: there are no labels. */
unsigned tsi_columns_count(const struct tsi_columns *c);
const struct tsock_field *tsi_columns_field(const struct tsi_columns *c,
					    unsigned k);
const struct tsock_field *tsi_columns_label(const struct tsi_columns *c);

/* The first class of row i, whose label is one, or hot ones; 0: it has none. */
uint32_t tsi_columns_class(const struct tsi_columns *c, uint64_t i);

/*
 * Are the labels numbers of classes, and is there nothing beside them?  Do
 * samples have classes, one or several each?
 */
bool tsi_columns_classes(const struct tsi_columns *c);
bool tsi_columns_classed(const struct tsi_columns *c);
bool tsi_columns_plain(const struct tsi_columns *c);

/*
 * The column of this name whose rows are single numbers, int64 or floats; NULL:
 * there is none.  Row i's there; not a number if its file was cut short.
 */
const struct tsi_column *tsi_columns_numbers(const struct tsi_columns *c,
					     const char *name);
float tsi_columns_number(const struct tsi_columns *c,
			 const struct tsi_column *k, uint64_t i);

/* Have samples no image? */
bool tsi_columns_imageless(const struct tsi_columns *c);

/* Where row i's mask lies; false: masks aren't in the data set. */
bool tsi_columns_mask(const struct tsi_columns *c, uint64_t i,
		      struct tsi_columns_mask *out);

/*
 * How many images a sample has behind the first (c may be NULL: none), and what
 * their fields are called.
 */
unsigned tsi_columns_others(const struct tsi_columns *c);
const char *tsi_columns_other(const struct tsi_columns *c, unsigned k);

/* Where image k behind the first of row i lies in a pack; false: it doesn't. */
bool tsi_columns_other_at(const struct tsi_columns *c, unsigned k, uint64_t i,
			  struct tsi_columns_mask *out);

/* Bytes of an image's pixels; 0: images lie in files of their own. */
size_t tsi_columns_pixels(const struct tsi_columns *c);

/* Their height, width and channels; true: each channel lies by itself. */
bool tsi_columns_image(const struct tsi_columns *c, uint32_t shape[3]);

/*
 * Write row i's value of field k, its label or its pixels to a slot.  Fails
 * with EDATA, if a file was cut short meanwhile, and names it.
 */
int tsi_columns_put(const struct tsi_columns *c, unsigned k, uint64_t i,
		    void *to);
int tsi_columns_put_label(const struct tsi_columns *c, uint64_t i, void *to);
/*
 * The same for n rows, TSI_COLUMNS_RUN at most, and all fields: each one's go to
 * to[k], and labels to to[TSI_COLUMNS], one behind the other; NULL: nowhere.
 */
#define TSI_COLUMNS_RUN 256u
int tsi_columns_put_rows(const struct tsi_columns *c, const uint64_t *rows,
			 unsigned n, void *const to[TSI_COLUMNS + 1]);

/*
 * Row i's value of a column as it lies there, without what put adds: *len bytes
 * of it, if there is room for so many; else nothing.  Fails as put does.
 */
int tsi_columns_take(const struct tsi_columns *c, const struct tsi_column *k,
		     uint64_t i, void *to, size_t room, size_t *len);

int tsi_columns_put_pixels(const struct tsi_columns *c, uint64_t i, void *to);

/* Fill a ragged field's place in a slot, of k's bytes, from a byte on. */
void tsi_column_fill(const struct tsi_column *k, void *place, size_t from);

#endif
