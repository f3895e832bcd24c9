/* SPDX-License-Identifier: MIT */
/*
 * warnings.c - what a program has to say to all readers of its stream.
 */
#include "serve/warnings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tsi_warnings_fini(struct tsi_warnings *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		free(w->warning[i].text);
	w->n = 0;
}

bool tsi_warnings_add(struct tsi_warnings *w, uint32_t kind, const char *text)
{
	char *copy = w->n < TSI_WARNINGS ? strdup(text) : NULL;

	if (!copy)
		return false;
	w->warning[w->n].kind = kind;
	w->warning[w->n++].text = copy;
	return true;
}

bool tsi_warnings_get(const struct tsi_warnings *w, uint32_t i,
		      struct tsi_msg_warning_data *out)
{
	if (i >= w->n)
		return false;
	memset(out, 0, sizeof(*out));
	out->number = i;
	out->kind = w->warning[i].kind;
	snprintf(out->text, sizeof(out->text), "%s", w->warning[i].text);
	return true;
}
