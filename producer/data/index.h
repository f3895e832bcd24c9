/*
 * index.h - which files an ImageFolder tree holds, in torchvision's order.
 *
 * ROOT/<class>/.../<image>.  Classes are the folders in ROOT (symbolic links
 * to folders too), sorted by code point; the files of a class are those of
 * every folder below it, folders sorted by their whole path, names sorted
 * within a folder, with an image's extension (.jpg .jpeg .png .ppm .bmp .pgm
 * .tif .tiff .webp, any case).  So sample i here is sample i of
 * torchvision.datasets.ImageFolder(ROOT), with the same label.
 *
 * A file that can't be read, or that the caller's probe rejects, keeps its
 * place and is marked bad.  An index never changes after it was opened, and
 * never decodes anything.
 */
#ifndef TSI_DATA_INDEX_H
#define TSI_DATA_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_index; /* immutable: any thread may read */

struct tsi_index_opts {
	const char *root;      /* the ImageFolder itself, say DIR/train */
	bool rescan;           /* don't read the cache, but write it */
	const char *cache_dir; /* NULL: the user's own; "": no cache */
	unsigned threads;      /* that scan and probe; 0 means 4 */
	/*
	 * Look at a file's first len bytes (whole: there are no more).  Called
	 * by several threads at once.  Returns 0 when the file is good, EDATA
	 * with a message when it is not, EAGAIN to be called with more bytes.
	 * NULL: every file that can be opened is good.
	 */
	int (*probe)(void *arg, const void *data, size_t len, bool whole);
	void *probe_arg;
	/* A file that can't be read by EIO is bad, with a warning. */
	bool survive_eio;
};

/*
 * Scan the tree, or take the scan from the cache when no folder of the tree
 * has changed since.  The cache ($XDG_CACHE_HOME/tsock, else ~/.cache/tsock)
 * is a convenience: that it can't be read or written is no error.
 * Fails with EARG (no such root), EDATA (no classes, no files, classes
 * without files), ESYS (a folder can't be read, EIO of a file unless it is
 * survived, too few descriptors), ENOMEM.
 */
int tsi_index_open(const struct tsi_index_opts *opts, struct tsi_index **out);

/* NULL is allowed. */
void tsi_index_close(struct tsi_index *x);

/* Files, bad ones included. */
uint64_t tsi_index_count(const struct tsi_index *x);

uint32_t tsi_index_classes(const struct tsi_index *x);
const char *tsi_index_class(const struct tsi_index *x, uint32_t i);

int64_t tsi_index_label(const struct tsi_index *x, uint64_t i);

/* Relative to the root, whose descriptor is good for openat(). */
const char *tsi_index_path(const struct tsi_index *x, uint64_t i);
int tsi_index_dirfd(const struct tsi_index *x);

/* The root's absolute path. */
const char *tsi_index_root(const struct tsi_index *x);

/* Bytes when it was scanned: a hint; at most UINT32_MAX. */
uint64_t tsi_index_size(const struct tsi_index *x, uint64_t i);

bool tsi_index_bad(const struct tsi_index *x, uint64_t i);

/* Why file i is bad; NULL when it is good. */
const char *tsi_index_bad_reason(const struct tsi_index *x, uint64_t i);

uint64_t tsi_index_bad_count(const struct tsi_index *x);

/* The k-th bad file's index, ascending. */
uint64_t tsi_index_bad_at(const struct tsi_index *x, uint64_t k);

/* A hash of all paths, labels and sizes, in order. */
uint64_t tsi_index_fingerprint(const struct tsi_index *x);

/* It came from the cache. */
bool tsi_index_cached(const struct tsi_index *x);

#endif
