/* SPDX-License-Identifier: MIT */
/*
 * arena.c - memory for one image at a time.
 */
#include "pixel/arena.h"

#include <stdint.h>
#include <stdlib.h>

#define ALIGN 64
#define BLOCK_MIN ((size_t)1 << 18)

struct tsi_arena_block {
	struct tsi_arena_block *next;
	size_t len;
	/* Data starts ALIGN bytes behind the block's own address. */
};

static struct tsi_arena_block *block_create(size_t len)
{
	struct tsi_arena_block *b = aligned_alloc(ALIGN, ALIGN + len);

	if (!b)
		return NULL;
	b->next = NULL;
	b->len = len;
	return b;
}

void *tsi_arena_alloc(struct tsi_arena *a, size_t len)
{
	struct tsi_arena_block *b = a->block;
	void *p;

	if (len > SIZE_MAX / 4)
		return NULL;
	len = (len + 2 * ALIGN - 1) / ALIGN * ALIGN;
	if (!b || b->len - a->used < len) {
		b = block_create(len > BLOCK_MIN ? len : BLOCK_MIN);
		if (!b)
			return NULL;
		b->next = a->block;
		a->block = b;
		a->used = 0;
	}
	p = (char *)b + ALIGN + a->used;
	a->used += len;
	a->total += len;
	return p;
}

void tsi_arena_fini(struct tsi_arena *a)
{
	while (a->block) {
		struct tsi_arena_block *next = a->block->next;

		free(a->block);
		a->block = next;
	}
	a->used = 0;
	a->total = 0;
}

void tsi_arena_reset(struct tsi_arena *a, size_t keep)
{
	size_t total = (a->total + BLOCK_MIN - 1) / BLOCK_MIN * BLOCK_MIN;

	/* One block as large as all of them, for the next image. */
	if (a->block && (a->block->next || a->block->len > keep)) {
		tsi_arena_fini(a);
		if (total <= keep)
			a->block = block_create(total);
	}
	a->used = 0;
	a->total = 0;
}
