/* SPDX-License-Identifier: MIT */
/*
 * words.c - a set of texts: a hash table of their numbers.
 */
#include "data/labels/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/text.h"

/* The slot of a text, or the free one where it would be. */
static uint64_t *slot_of(const struct tsi_words *w, const char *text,
			 size_t len)
{
	uint64_t i = tsi_hash(text, len, 0) & (w->slots - 1);

	for (;; i = (i + 1) & (w->slots - 1)) {
		const struct tsi_word *at;

		if (!w->slot[i])
			return &w->slot[i];
		at = &w->word[w->slot[i] - 1];
		if (at->len == len && !memcmp(at->text, text, len))
			return &w->slot[i];
	}
}

uint64_t tsi_words_find(const struct tsi_words *w, const char *text, size_t len)
{
	uint64_t at = w->slots ? *slot_of(w, text, len) : 0;

	return at ? at - 1 : TSI_WORDS_NONE;
}

static int grow(struct tsi_words *w)
{
	struct tsi_words more = *w;

	more.slots = w->slots ? 2 * w->slots : 64;
	more.slot = calloc(more.slots, sizeof(*more.slot));
	if (!more.slot)
		return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	for (uint64_t i = 0; i < w->n; i++)
		*slot_of(&more, w->word[i].text, w->word[i].len) = i + 1;
	free(w->slot);
	w->slot = more.slot;
	w->slots = more.slots;
	return 0;
}

int tsi_words_add(struct tsi_words *w, const char *text, size_t len,
		  uint64_t *id, bool *added)
{
	uint64_t *slot;
	int err = 0;

	/* A third of the slots stays free. */
	if (w->n >= w->slots / 3 * 2)
		err = grow(w);
	if (err)
		return err;
	slot = slot_of(w, text, len);
	*added = !*slot;
	if (*added) {
		err = tsi_text_grow(&w->word, w->n, &w->cap, sizeof(*w->word));
		if (err)
			return err;
		w->word[w->n++] = (struct tsi_word){ text, len };
		*slot = w->n;
	}
	*id = *slot - 1;
	return 0;
}

void tsi_words_free(struct tsi_words *w)
{
	free(w->word);
	free(w->slot);
	*w = (struct tsi_words){ .word = NULL };
}
