/* SPDX-License-Identifier: MIT */
/*
 * index.h - which samples a data set has, in the order of its format.
 *
 * When a data set is scanned, up to 1,024 of its files or ranges, evenly spread
 * over all samples, are opened; of the others the names alone are known, but
 * for those that may not be regular files, each of which is looked at, and for
 * some more where a class seems to be bad as a whole, or has files whose names
 * say so (doubt.h).  A sample that can't be read, or that the caller's sniff()
 * rejects, keeps its number and is marked bad; others are presumed to be.  An
 * index never changes after it was opened, and
 * never decodes anything.  Whether the data set has changed since can be asked
 * at the price of a look at each folder.
 */
#ifndef TSI_DATA_INDEX_H
#define TSI_DATA_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/documents.h"
#include "data/table.h"

struct stat;
struct tsi_format;
struct tsi_index; /* immutable: any thread may read */

struct tsi_index_opts {
	/* Where the root is a pack, it is read as one whatever is said here. */
	const struct tsi_format *format;
	const char *schema; /* of a sample, see format.h; NULL: wasn't given */
	bool held_out;      /* the part for evaluation */
	struct tsi_documents_opts documents; /* of tokens */
	const char *root; /* the data set itself, say DIR/train */
	/* A file that names the samples to take, see select.h; NULL: all. */
	const char *select;
	bool named;            /* samples' names will be asked for */
	const char *labels;    /* see labels/spec.h; NULL: those it has */
	bool rescan;           /* don't read the cache, but write it */
	const char *cache_dir; /* NULL: the user's own; "": no cache */
	unsigned threads;      /* that scan and probe; 0 means 4 */
	/*
	 * Look at a sample's first len bytes (whole: there are no more).
	 * Called by several threads at once.  Returns 0 when the sample is
	 * good, EDATA with a message when it is not, EAGAIN to be called with
	 * more bytes.  NULL: every sample whose file can be opened is good.
	 */
	int (*sniff)(void *arg, const void *data, size_t len, bool whole);
	void *sniff_arg;
	/*
	 * A number, below UINT32_MAX, for what sniff() calls good: a scan that
	 * was kept with another number isn't taken.
	 */
	uint32_t sniffs;
	/* Is a file of this name one that sniff() would reject?  Or NULL. */
	bool (*foreign)(const char *name);
	bool look_at_all; /* at every sample, also if the scan was kept */
	bool allow_empty; /* classes without a sample are no error */
	/* A file that can't be read by EIO is bad, with a warning. */
	bool survive_eio;
};

/*
 * Scan the data set, or take the scan from the cache when nothing that the
 * scan read has changed since.  The cache ($XDG_CACHE_HOME/tsock, else
 * ~/.cache/tsock) is a convenience: that it can't be read or written is no
 * error.
 * Fails as the format's open() and scan() and a selection do, and with ESYS
 * (EIO of a file unless it is survived, too few descriptors), ENOMEM.
 */
int tsi_index_open(const struct tsi_index_opts *opts, struct tsi_index **out);

/* NULL is allowed. */
void tsi_index_close(struct tsi_index *x);

/* Samples, bad ones included. */
uint64_t tsi_index_count(const struct tsi_index *x);

/* Each sample was looked at, now or by the scan that was kept. */
bool tsi_index_looked_at_all(const struct tsi_index *x);

uint32_t tsi_index_classes(const struct tsi_index *x);
const char *tsi_index_class(const struct tsi_index *x, uint32_t i);

/* Samples of class i; they are counted once they are asked for.  Any thread. */
uint64_t tsi_index_class_files(const struct tsi_index *x, uint32_t i);

/* Samples have no classes: their labels are -1, or no numbers of classes. */
bool tsi_index_unlabelled(const struct tsi_index *x);

int64_t tsi_index_label(const struct tsi_index *x, uint64_t i);
/* Those of the samples from sample i on, at most TSI_INDEX_RUN; how many. */
#define TSI_INDEX_RUN 1024u
unsigned tsi_index_label_run(const struct tsi_index *x, uint64_t i,
			     int64_t to[TSI_INDEX_RUN]);

/* The file's path below the root, in x or in text; the root's descriptor. */
const char *tsi_index_path(const struct tsi_index *x, uint64_t i,
			   char text[TSI_PATH]);
int tsi_index_dirfd(const struct tsi_index *x);

/* stat() of a file that lies there; -1 and errno. */
int tsi_index_stat(const struct tsi_index *x, const struct tsi_location *at,
		   struct stat *out);

/* The format that it was read as. */
const struct tsi_format *tsi_index_format(const struct tsi_index *x);

/* The root's absolute path; with its pattern, if it has one. */
const char *tsi_index_root(const struct tsi_index *x);
const char *tsi_index_name(const struct tsi_index *x);

/*
 * What messages call sample i: its file or, where a file holds many samples,
 * "file: name", written to to[0..len).
 */
const char *tsi_index_sample(const struct tsi_index *x, uint64_t i, char *to,
			     size_t len);
#define TSI_INDEX_SAMPLE 512 /* bytes that show any but an overlong name */

/* The file that says which samples; NULL: all are taken. */
const char *tsi_index_select(const struct tsi_index *x);

/* The samples of the data set, those that aren't selected included. */
uint64_t tsi_index_all(const struct tsi_index *x);

/*
 * What the selection, or the data set's field weight, says of sample i; 1 where
 * it says nothing.
 */
float tsi_index_weight(const struct tsi_index *x, uint64_t i);

/* Are there any: a column, or another number than 1 in a selection? */
bool tsi_index_weighs(const struct tsi_index *x);

/* Are weights a field of their own: a selection's, not a column's? */
bool tsi_index_weight_is_field(const struct tsi_index *x);

/*
 * What sample i is called, see tsi_names_key(): *len bytes, not ended by a NUL,
 * in x or in text.
 */
const char *tsi_index_key(const struct tsi_index *x, uint64_t i,
			  char text[TSI_PATH], size_t *len);

/* A number for all weights, as tsi_index_fingerprint() is for the rest. */
uint64_t tsi_index_weights_fingerprint(const struct tsi_index *x);

/*
 * The file of their labels; NULL: they have those of the data set.  A number
 * for its bytes and how they are read.
 */
const char *tsi_index_labels(const struct tsi_index *x);
uint64_t tsi_index_labels_fingerprint(const struct tsi_index *x);

/* The fields that samples have beside image and class; NULL: none. */
const struct tsi_columns *tsi_index_columns(const struct tsi_index *x);

/*
 * Labels, files and keys of all samples, as far as they lie in memory that
 * other processes can map.
 */
bool tsi_index_share_labels(const struct tsi_index *x,
			    struct tsi_table_shared *out);
bool tsi_index_share_files(const struct tsi_index *x,
			   struct tsi_table_shared *out);
bool tsi_index_share_keys(const struct tsi_index *x,
			  struct tsi_table_shared *out);

/* The bytes of sample i; their size is at most UINT32_MAX. */
void tsi_index_locate(const struct tsi_index *x, uint64_t i,
		      struct tsi_location *out);
/* The same but for the name, which takes long the first time: for each sample. */
void tsi_index_locate_bytes(const struct tsi_index *x, uint64_t i,
			    struct tsi_location *out);

/* The bytes of image k behind the first, of those that the columns have. */
void tsi_index_locate_other(const struct tsi_index *x, unsigned k, uint64_t i,
			    struct tsi_location *out);

bool tsi_index_bad(const struct tsi_index *x, uint64_t i);

/* Why sample i is bad; NULL when it is good. */
const char *tsi_index_bad_reason(const struct tsi_index *x, uint64_t i);

uint64_t tsi_index_bad_count(const struct tsi_index *x);

/* The k-th bad sample's index, ascending. */
uint64_t tsi_index_bad_at(const struct tsi_index *x, uint64_t k);

/* Sample i is no bad one, but most likely it is: its class's others are. */
bool tsi_index_presumed(const struct tsi_index *x, uint64_t i);
bool tsi_index_presumes(const struct tsi_index *x); /* of any? */

/*
 * How many of the samples that the scan has looked at, *n of them, were bad.
 * Those that are not selected count, too.
 */
uint64_t tsi_index_looked(const struct tsi_index *x, uint64_t *n);

/*
 * A number for the samples' files: by the names and places of all, and by the
 * sizes of those that the scan looked at and by which of these are bad.  The
 * same whether or not the scan was kept.  With look_at_all it is another one.
 */
uint64_t tsi_index_fingerprint(const struct tsi_index *x);

/* Are both read from the same folder, whatever it was called then? */
bool tsi_index_same_folder(const struct tsi_index *x,
			   const struct tsi_index *y);

/*
 * Are the folders and files that the scan read as they were then, and is the
 * data set's folder still the one of its path?  If not, *now is a number for
 * what they are now: two looks that give the same one have seen the same.  Any
 * thread.
 */
bool tsi_index_look(const struct tsi_index *x, uint64_t *now);

/* It came from the cache. */
bool tsi_index_cached(const struct tsi_index *x);

#endif
