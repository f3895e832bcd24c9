/* SPDX-License-Identifier: MIT */
/*
 * beside.h - further files of samples that lie in tar files: KEY.cls or
 * KEY.seg.png for KEY.jpg, in the same tar file or in one of the same name in
 * another folder.
 */
#ifndef TSI_DATA_BESIDE_H
#define TSI_DATA_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/webdataset/tar.h"

/* A file that was found. */
struct tsi_beside_file {
	struct tsi_tar *tar;
	const char *path; /* the tar file's */
	const char *name; /* in it */
	uint64_t offset, size;
	bool sparse; /* it isn't stored as it is */
};

/* Whose files are wanted, and who takes them; several threads call. */
struct tsi_beside {
	uint64_t rows;
	/* Row i's tar file, and its key of *len bytes; rows of one file follow
	 * one another. */
	const char *(*path)(void *arg, uint64_t i);
	const char *(*key)(void *arg, uint64_t i, size_t *len);
	/* A file of row i, whose name ends in ending[k]. */
	int (*take)(void *arg, uint64_t i, unsigned k,
		    const struct tsi_beside_file *f);
	const char *const *ending; /* ".cls" */
	unsigned endings;
	void *arg;
	int fd;             /* of the folder */
	const char *folder; /* its path, for messages */
	const char *what;   /* "labels" */
};

/*
 * Read the headers of all tar files.  Damage ends a tar file, as it did when its
 * samples were found.  Fails with EDATA (a tar file isn't there, or has two
 * samples of one key), ESYS, ENOMEM, and as take() does.
 */
int tsi_beside_read(const struct tsi_beside *b, unsigned threads);

#endif
