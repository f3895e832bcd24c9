/* SPDX-License-Identifier: MIT */
/*
 * classes.c - the classes that labels name, and their numbers.
 */
#include "data/labels/classes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/labels/kind.h"
#include "data/name.h"
#include "data/text.h"

static int no_memory(void)
{
	return tsi_err(TSOCK_ENOMEM, "no memory for classes");
}

/* A copy that lives as long as the classes. */
static int keep(struct tsi_labels_classes *c, const char *text, size_t len,
		char **out)
{
	int err =
		tsi_text_grow(&c->mem, c->mems, &c->mems_cap, sizeof(*c->mem));

	if (err)
		return err;
	*out = strndup(text, len);
	if (!*out)
		return no_memory();
	c->mem[c->mems++] = *out;
	return 0;
}

int tsi_labels_classes_add(struct tsi_labels_classes *c, const char *text,
			   size_t len, uint64_t *id, bool *added)
{
	char *copy;
	int err;

	*added = false;
	*id = tsi_words_find(&c->words, text, len);
	if (*id != TSI_WORDS_NONE)
		return 0;
	if (c->words.n == TSI_LABELS_CLASSES_END)
		return tsi_err(TSOCK_ENOTSUP,
			       "the labels have more than %u classes: if they "
			       "are texts, add :as=text behind the file",
			       TSI_LABELS_CLASSES_END);
	err = keep(c, text, len, &copy);
	return err ? err : tsi_words_add(&c->words, copy, len, id, added);
}

/* ---- numbers of names ---- */

static int make_numbers(struct tsi_labels_classes *c)
{
	c->n = (uint32_t)c->words.n;
	c->number = malloc(c->words.n * sizeof(*c->number) + 1);
	c->name = malloc(c->words.n * sizeof(*c->name) + 1);
	return c->number && c->name ? 0 : no_memory();
}

int tsi_labels_classes_in_order(struct tsi_labels_classes *c)
{
	int err = make_numbers(c);

	for (uint32_t i = 0; i < c->n && !err; i++) {
		c->number[i] = i;
		c->name[i] = (char *)c->words.word[i].text;
	}
	return err;
}

static int by_name(const void *a, const void *b)
{
	return tsi_name_cmp(*(char *const *)a, *(char *const *)b);
}

int tsi_labels_classes_by_name(struct tsi_labels_classes *c)
{
	int err = tsi_labels_classes_in_order(c);

	if (err)
		return err;
	qsort(c->name, c->n, sizeof(*c->name), by_name);
	for (uint32_t i = 0; i < c->n; i++)
		c->number[tsi_words_find(&c->words, c->name[i],
					 strlen(c->name[i]))] = i;
	return 0;
}

/* ---- labels that are numbers ---- */

int tsi_labels_classes_up_to(struct tsi_labels_classes *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		char text[16];
		bool added;
		uint64_t id;
		int err = tsi_labels_classes_add(
			c, text, (size_t)snprintf(text, sizeof(text), "%u", i),
			&id, &added);

		if (err)
			return err;
	}
	return tsi_labels_classes_in_order(c);
}
uint32_t tsi_labels_classes_number(const struct tsi_labels_classes *c,
				   const struct tsi_labels_item *it)
{
	if (!c->numbers)
		return c->number[tsi_words_find(&c->words, it->text, it->len)];
	if (c->translated)
		return c->number[c->translated[tsi_labels_kind_class(it)]];
	return (uint32_t)tsi_labels_kind_class(it);
}

void tsi_labels_classes_free(struct tsi_labels_classes *c)
{
	tsi_words_free(&c->words);
	for (uint64_t i = 0; i < c->mems; i++)
		free(c->mem[i]);
	free(c->mem);
	free(c->number);
	free(c->name);
	free(c->translated);
	tsi_textfile_free(&c->file);
	*c = (struct tsi_labels_classes){ .n = 0 };
}
