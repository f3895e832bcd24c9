/* SPDX-License-Identifier: MIT */
/*
 * spelling.c - words that differ by a typing error or two.
 */
#include "base/spelling.h"

#include <string.h>

#define WORD_MAX 32

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters to put in, leave out, change, or swap with the next. */
static size_t distance(const char *a, size_t alen, const char *b, size_t blen)
{
	size_t d[3][WORD_MAX + 1] = { { 0 } };

	for (size_t j = 0; j <= blen; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= alen; i++) {
		size_t *now = d[i % 3];
		size_t *last = d[(i + 2) % 3];
		size_t *before = d[(i + 1) % 3];

		now[0] = i;
		for (size_t j = 1; j <= blen; j++) {
			now[j] = least(last[j], now[j - 1]) + 1;
			now[j] = least(now[j],
				       last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				now[j] = least(now[j], before[j - 2] + 1);
		}
	}
	return d[alen % 3][blen];
}

bool tsi_spelling_near(const char *a, size_t alen, const char *b, size_t blen)
{
	size_t longer = alen > blen ? alen : blen;

	if (longer > WORD_MAX || longer < 2)
		return false;
	return distance(a, alen, b, blen) <= (longer < 6 ? 1u : 2u);
}

const char *tsi_spelling_word(const char *word, const char *list, size_t *len)
{
	for (;;) {
		size_t n = strcspn(list, "|");

		if (tsi_spelling_near(word, strlen(word), list, n)) {
			*len = n;
			return list;
		}
		if (!list[n])
			return NULL;
		list += n + 1;
	}
}
