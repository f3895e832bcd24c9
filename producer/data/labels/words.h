/* SPDX-License-Identifier: MIT */
/*
 * words.h - a set of texts, numbered in the order in which they came.
 */
#ifndef TSI_DATA_LABELS_WORDS_H
#define TSI_DATA_LABELS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSI_WORDS_NONE UINT64_MAX

struct tsi_word {
	const char *text; /* the caller's */
	size_t len;
};

struct tsi_words {
	struct tsi_word *word;
	uint64_t n, cap;
	uint64_t *slot; /* a word's number + 1; 0: free */
	uint64_t slots; /* a power of two, or 0 */
};

/* The number of a text; TSI_WORDS_NONE: it isn't one of them. */
uint64_t tsi_words_find(const struct tsi_words *w, const char *text,
			size_t len);

/*
 * Add a text, which has to stay where it is, if it isn't there: *id is its
 * number in any case, and *added says which.  Fails with ENOMEM.
 */
int tsi_words_add(struct tsi_words *w, const char *text, size_t len,
		  uint64_t *id, bool *added);

void tsi_words_free(struct tsi_words *w);

#endif
