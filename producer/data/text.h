/* SPDX-License-Identifier: MIT */
/*
 * text.h - arrays and strings that grow while something is collected.
 */
#ifndef TSI_DATA_TEXT_H
#define TSI_DATA_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Strings one after the other, known by their offset. */
struct tsi_text {
	char *base;
	size_t len;
	size_t cap;
};

/*
 * Append "folder/name" or, without a folder, "name"; *at becomes its offset.
 * folder lies in the same text.
 */
int tsi_text_add(struct tsi_text *t, const char *folder, const char *name,
		 uint64_t *at);

/* Make sure that one more item fits into the array that p points to. */
int tsi_text_grow(void *p, uint64_t used, uint64_t *cap, size_t item);

#endif
