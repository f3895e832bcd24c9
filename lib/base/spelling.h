/* SPDX-License-Identifier: MIT */
/*
 * spelling.h - which word was probably meant.
 */
#ifndef TSI_BASE_SPELLING_H
#define TSI_BASE_SPELLING_H

#include <stdbool.h>
#include <stddef.h>

/* Do a and b differ by no more than one or two typing errors? */
bool tsi_spelling_near(const char *a, size_t alen, const char *b, size_t blen);

/*
 * The word that a misspelt one is near to, among words separated by '|'; its
 * length in *len.  NULL when none is.
 */
const char *tsi_spelling_word(const char *word, const char *list, size_t *len);

#endif
