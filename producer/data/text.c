/* SPDX-License-Identifier: MIT */
/*
 * text.c - arrays and strings that grow while something is collected.
 */
#include "data/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int tsi_text_grow(void *p, uint64_t used, uint64_t *cap, size_t item)
{
	void *array;
	uint64_t more = *cap * 2 + 16;

	if (used < *cap)
		return 0;
	memcpy(&array, p, sizeof(array));
	array = realloc(array, more * item);
	if (!array)
		return tsi_err(TSOCK_ENOMEM, "no memory to index the data set");
	memcpy(p, &array, sizeof(array));
	*cap = more;
	return 0;
}

int tsi_text_add(struct tsi_text *t, const char *folder, const char *name,
		 uint64_t *at)
{
	size_t n = folder ? strlen(folder) : 0;
	size_t m = strlen(name) + 1;
	size_t need = t->len + n + 1 + m;
	char *p;

	if (need > t->cap) {
		size_t cap = need * 2 + 4096;
		/* folder may lie in the text, which moves. */
		size_t where = folder ? (size_t)(folder - t->base) : 0;

		p = realloc(t->base, cap);
		if (!p)
			return tsi_err(TSOCK_ENOMEM,
				       "no memory to index the data set");
		t->base = p;
		t->cap = cap;
		folder = folder ? p + where : NULL;
	}
	p = t->base + t->len;
	*at = t->len;
	if (folder) {
		memcpy(p, folder, n);
		p[n] = '/';
		p += n + 1;
	}
	memcpy(p, name, m);
	t->len = (size_t)(p - t->base) + m;
	return 0;
}
