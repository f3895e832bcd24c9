/* SPDX-License-Identifier: MIT */
/*
 * sparse.c - notes on a few of up to 2^64 items.
 *
 * A node or a block is published by the one compare-and-swap that links it, and
 * nothing is unlinked before the end, so readers need no lock.
 */
#include "run/sparse.h"

#include <stdlib.h>

void tsi_sparse_init(struct tsi_sparse *t, uint64_t n, unsigned bits,
		     size_t block_bytes)
{
	uint64_t last = n ? (n - 1) >> bits : 0; /* block */

	*t = (struct tsi_sparse){ .bits = bits,
				  .bytes = block_bytes,
				  .top = bits };
	for (; last; last >>= TSI_SPARSE_FAN)
		t->top += TSI_SPARSE_FAN;
}

/* What slot leads to, which is made with so many bytes if there is nothing. */
static void *link(_Atomic(void *) *slot, size_t bytes)
{
	/* Pairs with the release below, of another thread. */
	void *there = atomic_load_explicit(slot, memory_order_acquire);
	void *made;

	if (there)
		return there;
	made = calloc(1, bytes);
	if (!made)
		return NULL;
	if (atomic_compare_exchange_strong_explicit(slot, &there, made,
						    memory_order_acq_rel,
						    memory_order_acquire))
		return made;
	/* Another thread was first. */
	free(made);
	return there;
}

void *tsi_sparse_make(struct tsi_sparse *t, uint64_t i)
{
	_Atomic(void *) *slot = &t->root;

	for (unsigned shift = t->top; shift != t->bits;) {
		struct tsi_sparse_node *at = link(slot, sizeof(*at));

		if (!at)
			return NULL;
		shift -= TSI_SPARSE_FAN;
		slot = tsi_sparse_child(at, shift, i);
	}
	return link(slot, t->bytes);
}

struct visitor {
	unsigned bits;
	void (*fn)(void *arg, uint64_t first, void *block);
	void *arg;
};

static void visit(const struct visitor *v, void *at, unsigned shift,
		  uint64_t first)
{
	struct tsi_sparse_node *node = at;

	if (shift == v->bits) {
		v->fn(v->arg, first, at);
		return;
	}
	shift -= TSI_SPARSE_FAN;
	for (uint64_t k = 0; k < 1 << TSI_SPARSE_FAN; k++) {
		/* Pairs with link()'s release. */
		void *below = atomic_load_explicit(&node->child[k],
						   memory_order_acquire);

		if (below)
			visit(v, below, shift, first + (k << shift));
	}
}

void tsi_sparse_each(const struct tsi_sparse *t,
		     void (*fn)(void *arg, uint64_t first, void *block),
		     void *arg)
{
	const struct visitor v = { t->bits, fn, arg };
	/* Pairs with link()'s release. */
	void *root = atomic_load_explicit(&t->root, memory_order_acquire);

	if (root)
		visit(&v, root, t->top, 0);
}

static void free_below(void *at, unsigned levels)
{
	struct tsi_sparse_node *node = at;

	for (unsigned k = 0; levels && at && k < 1 << TSI_SPARSE_FAN; k++)
		free_below(atomic_load(&node->child[k]), levels - 1);
	free(at);
}

void tsi_sparse_fini(struct tsi_sparse *t)
{
	free_below(atomic_load(&t->root), (t->top - t->bits) / TSI_SPARSE_FAN);
}
