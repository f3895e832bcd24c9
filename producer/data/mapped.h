/* SPDX-License-Identifier: MIT */
/*
 * mapped.h - files that are mapped into memory, of which parts are copied.
 *
 * Where a file was cut short after it was mapped, a read of what it lost raises
 * SIGBUS: these functions turn that into a result.  Nothing else may read the
 * memory.  The first mapping sets the process's handler of SIGBUS, which
 * passes on what isn't its own.
 */
#ifndef TSI_DATA_MAPPED_H
#define TSI_DATA_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/root.h"
#include "data/stamp.h"

struct tsi_mapped {
	const uint8_t *mem; /* len bytes */
	uint64_t len;
	char *path; /* below the root */
};

/*
 * Map a file below the root, and stamp it.  Fails with EDATA (it can't be
 * opened, or is no regular file or empty), ESYS, ENOMEM; m is empty then.
 */
int tsi_mapped_open(const struct tsi_root *root, const char *path,
		    struct tsi_mapped *m, struct tsi_stamp *stamp);

/* Bytes that the caller has in memory, as if mapped: never closed. */
struct tsi_mapped tsi_mapped_memory(const void *mem, uint64_t len);

/* Where it lies, its bytes then, and its path. */
const uint8_t *tsi_mapped_at(const struct tsi_mapped *m, uint64_t offset);
uint64_t tsi_mapped_len(const struct tsi_mapped *m);
const char *tsi_mapped_path(const struct tsi_mapped *m);

/* An empty one is allowed. */
void tsi_mapped_close(struct tsi_mapped *m);

/* A part of a record, and where the first record's goes. */
struct tsi_mapped_piece {
	uint8_t *to;
	size_t at, len;
};

/*
 * Copy parts of n records of mapped files, each part of one record behind that
 * of the one before; false: a file no longer has all of a record, *bad.  Any
 * thread.
 */
bool tsi_mapped_gather(const uint8_t *const *from, unsigned n,
		       const struct tsi_mapped_piece *piece, unsigned pieces,
		       unsigned *bad);

/*
 * Copy len bytes of a mapped file; false: the file no longer has them all, and
 * to has some of them.  Any thread.
 */
bool tsi_mapped_copy(void *to, const void *from, size_t len);

/*
 * Call look(arg), which may read mapped files; false: one no longer has what it
 * read, and the call was left there.  It has nothing that would have to be
 * undone, as locks and memory would, and calls none of these functions.
 */
bool tsi_mapped_look(void (*look)(void *arg), void *arg);

#endif
