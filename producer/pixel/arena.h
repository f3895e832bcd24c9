/* SPDX-License-Identifier: MIT */
/*
 * arena.h - memory for one image at a time, kept from image to image.
 *
 * Allocation moves a pointer, freeing happens all at once; after the first
 * few images one block holds everything and malloc is not called again.
 */
#ifndef TSI_PIXEL_ARENA_H
#define TSI_PIXEL_ARENA_H

#include <stddef.h>

struct tsi_arena_block;

struct tsi_arena {
	struct tsi_arena_block *block; /* newest first */
	size_t used;                   /* of the newest block */
	size_t total;                  /* handed out since the last reset */
};

/* len bytes aligned to 64, with 64 readable bytes behind; NULL: no memory. */
void *tsi_arena_alloc(struct tsi_arena *a, size_t len);

/* Forget all that was handed out; keep at most keep bytes. */
void tsi_arena_reset(struct tsi_arena *a, size_t keep);

void tsi_arena_fini(struct tsi_arena *a);

#endif
