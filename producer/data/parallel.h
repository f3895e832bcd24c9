/* SPDX-License-Identifier: MIT */
/*
 * parallel.h - a loop over many small pieces of work by several threads.
 */
#ifndef TSI_DATA_PARALLEL_H
#define TSI_DATA_PARALLEL_H

#include <stdint.h>

/*
 * Call fn(arg, first, last) for pieces of at most chunk that make up 0 .. n-1,
 * in up to threads threads, this one among them.  After a failure no new piece
 * is begun.  Pieces begin in their order, so that of all that fail the first one
 * has been tried: its failure is returned with its message, whichever thread was
 * faster.
 */
int tsi_parallel(unsigned threads, uint64_t n, uint64_t chunk,
		 int (*fn)(void *arg, uint64_t first, uint64_t last),
		 void *arg);

#endif
