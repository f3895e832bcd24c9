/* SPDX-License-Identifier: MIT */
/*
 * tar.h - the members of a tar file, one after the other: their names and where
 * their bytes are.
 *
 * Formats: v7, ustar (POSIX.1-1988, with prefix), GNU (long names, base-256
 * numbers, sparse headers) and pax (POSIX.1-2001: path and size of a member;
 * global headers are passed over).  Only headers are read.  What no tar program
 * writes is an error that names the file and the offset; no header makes this
 * read outside of the file, or need more than TSI_TAR_EXTRA bytes for one.
 */
#ifndef TSI_DATA_WEBDATASET_TAR_H
#define TSI_DATA_WEBDATASET_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSI_TAR_NAME 4096       /* bytes of the longest name, with its NUL */
#define TSI_TAR_EXTRA (1 << 20) /* bytes of the longest pax header */
#define TSI_TAR_WINDOW (16 << 10)

struct tsi_tar {
	const char *path; /* for messages */
	int fd;
	uint64_t len;  /* of the file */
	uint64_t next; /* where the next header is */
	bool any;      /* a header was good */
	/* The bytes of the file from offset on. */
	uint64_t offset;
	size_t have;
	uint8_t window[TSI_TAR_WINDOW];
};

struct tsi_tar_member {
	char name[TSI_TAR_NAME];
	uint64_t header; /* offset of its first header */
	uint64_t offset; /* of its bytes */
	uint64_t size;   /* may lead beyond the end of a file that was cut */
	bool regular;    /* a file; else a folder, a link, a device ... */
	bool sparse;     /* a file that isn't stored as it is */
};

/* Begin; fd is open at a file of len bytes, path is what messages call it. */
void tsi_tar_init(struct tsi_tar *t, const char *path, int fd, uint64_t len);

/*
 * The next member.  1, or 0 at the end.  EDATA: no tar file, or a damaged one,
 * from here on; ESYS: it can't be read.
 */
int tsi_tar_next(struct tsi_tar *t, struct tsi_tar_member *m);

/* The file ended without the two empty blocks that end a tar file. */
bool tsi_tar_unended(const struct tsi_tar *t);

/*
 * After the end mark: does the file hold anything but zeros behind it?  1 or 0,
 * and *at is where the mark is; ESYS.
 */
int tsi_tar_behind(struct tsi_tar *t, uint64_t *at);

/*
 * Read len bytes from offset at.  1; 0: the file ends before; ESYS.
 */
int tsi_tar_read(struct tsi_tar *t, uint64_t at, void *to, size_t len);

#endif
