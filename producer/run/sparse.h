/* SPDX-License-Identifier: MIT */
/*
 * sparse.h - notes on a few of up to 2^64 items.
 *
 * A tree whose leaves are blocks of neighbouring items.  A block is allocated,
 * with all bytes zero, when the first note on one of its items is made, and
 * stays at its address until the table is destroyed.  So memory is in
 * proportion to the blocks with notes: a block, and at most 2 KiB for each
 * factor of 256 in the number of blocks.  While there is no note at all, a
 * look-up is one load.
 *
 * Any thread may look up, make and visit blocks at any time; what is in a block
 * is the caller's to order, with atomics or a lock.
 */
#ifndef TSI_RUN_SPARSE_H
#define TSI_RUN_SPARSE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TSI_SPARSE_FAN 8 /* bits of an item's number that choose a child */

struct tsi_sparse_node {
	_Atomic(void *) child[1 << TSI_SPARSE_FAN];
};

struct tsi_sparse {
	unsigned bits; /* a block has 2^bits items */
	size_t bytes;  /* and so many bytes */
	unsigned top;  /* by how much the root shifts numbers; bits: it is a
			* block */
	_Atomic(void *) root;
};

/* A table of n items, without notes, by blocks of 2^bits items. */
void tsi_sparse_init(struct tsi_sparse *t, uint64_t n, unsigned bits,
		     size_t block_bytes);

void tsi_sparse_fini(struct tsi_sparse *t);

/* The child on the way to item i, of a node that shifts its number so far. */
static inline _Atomic(void *) *tsi_sparse_child(struct tsi_sparse_node *at,
						unsigned shift, uint64_t i)
{
	return &at->child[i >> shift & ((1 << TSI_SPARSE_FAN) - 1)];
}

/*
 * The block that item i < n is in; NULL if it was never made.  Inline, since
 * every sample asks.
 */
static inline void *tsi_sparse_find(const struct tsi_sparse *t, uint64_t i)
{
	/* Each acquire pairs with the release of tsi_sparse_make(): what it
	 * leads to is zeroed by then. */
	void *at = atomic_load_explicit(&t->root, memory_order_acquire);
	unsigned shift = t->top;

	while (at && shift != t->bits) {
		shift -= TSI_SPARSE_FAN;
		at = atomic_load_explicit(tsi_sparse_child(at, shift, i),
					  memory_order_acquire);
	}
	return at;
}

/* The same, which is made if need be; NULL: there is no memory for it. */
void *tsi_sparse_make(struct tsi_sparse *t, uint64_t i);

/* Call fn for each block, in the order of the items, with its first item. */
void tsi_sparse_each(const struct tsi_sparse *t,
		     void (*fn)(void *arg, uint64_t first, void *block),
		     void *arg);

#endif
