/* SPDX-License-Identifier: MIT */
/*
 * preset.c - the table of presets, and their texts with sizes.
 */
#include "recipe/preset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ENTRY(name, in_order, text, help) { name, in_order, text },

static const struct tsi_preset presets[] = { TSI_PRESETS(ENTRY) };

static const char size_word[] = "SIZE", resize_word[] = "RESIZE";

const struct tsi_preset *tsi_preset_at(unsigned k)
{
	return k < sizeof(presets) / sizeof(presets[0]) ? &presets[k] : NULL;
}

static bool begins(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

bool tsi_preset_has_resize(const struct tsi_preset *p)
{
	return strstr(p->text, resize_word) != NULL;
}

bool tsi_preset_has_size(const struct tsi_preset *p)
{
	for (const char *t = p->text; (t = strstr(t, size_word)) != NULL; t++)
		/* The end of RESIZE is none. */
		if (t < p->text + 2 || !begins(t - 2, resize_word))
			return true;
	return false;
}

int tsi_preset_recipe(const struct tsi_preset *p, uint32_t size,
		      uint32_t resize, struct tsi_recipe **out)
{
	char text[TSI_RECIPE_TEXT];
	size_t n = 0;

	for (const char *t = p->text; *t && n + 16 < sizeof(text);) {
		bool is_size = begins(t, size_word);

		if (is_size || begins(t, resize_word)) {
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "%" PRIu32,
					      is_size ? size : resize);
			t += strlen(is_size ? size_word : resize_word);
		} else {
			text[n++] = *t++;
		}
	}
	text[n] = 0;
	return tsi_recipe_read(text, out);
}
