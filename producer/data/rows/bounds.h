/* SPDX-License-Identifier: MIT */
/*
 * bounds.h - where the documents of a file of tokens begin.
 */
#ifndef TSI_DATA_ROWS_BOUNDS_H
#define TSI_DATA_ROWS_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/documents.h"
#include "data/rows/rows.h"

/* Where the tokens of a file lie, and what they are. */
struct tsi_bounds_file {
	unsigned file;
	uint64_t at, tokens; /* at least one */
	uint32_t dtype;
};

/* Numbers of tokens, ascending from 0; from malloc(). */
struct tsi_bounds {
	uint64_t *start;
	uint64_t n;
	bool told; /* the file has the token that tells documents apart */
};

/*
 * Can the tokens of this dtype be the one that tells documents apart?  Fails with
 * EARG: they are no integers, or smaller ones.
 */
int tsi_bounds_check(const struct tsi_documents_opts *o, uint32_t dtype);

/*
 * The bounds at each token that tells documents apart, for which the whole file
 * is read.  Fails with EDATA (the file is cut short meanwhile), ENOMEM.
 */
int tsi_bounds_find(const struct tsi_rows *rows,
		    const struct tsi_bounds_file *f,
		    const struct tsi_documents_opts *o, unsigned threads,
		    struct tsi_bounds *out);

#endif
