/* SPDX-License-Identifier: MIT */
/*
 * unread.c - the files of samples in tar files that nothing reads.
 */
#include "data/webdataset/unread.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What is between two endings, and can't be in one. */
#define BETWEEN "+"
#define NOT_IN_ONE "+,:="

static bool has(const struct tsi_unread *u, const char *ending, size_t len)
{
	const char *at = u->endings;

	while (*at) {
		size_t n = strcspn(at, BETWEEN);

		if (n == len && !memcmp(at, ending, n))
			return true;
		at += n + (at[n] != '\0');
	}
	return false;
}

/* What there is no room for is left out. */
static void add(struct tsi_unread *u, const char *ending, size_t len)
{
	size_t at = strlen(u->endings);

	if (!has(u, ending, len) && at + 1 + len < sizeof(u->endings))
		snprintf(u->endings + at, sizeof(u->endings) - at, "%s%.*s",
			 at ? BETWEEN : "", (int)len, ending);
}

static bool is_array(const char *suffix)
{
	size_t n = strlen(suffix);

	return n >= 3 && !strcmp(suffix + n - 3, "npy") &&
	       (n == 3 || suffix[n - 4] == '.');
}

void tsi_unread_note(struct tsi_unread *u, const char *suffix)
{
	char ending[32]; /* the longest that --labels takes */
	int len = snprintf(ending, sizeof(ending), ".%s", suffix);

	if ((strcmp(suffix, "txt") && !is_array(suffix)) ||
	    (size_t)len >= sizeof(ending) ||
	    ending[strcspn(ending, NOT_IN_ONE)])
		return;
	add(u, ending, (size_t)len);
}

void tsi_unread_add(struct tsi_unread *u, const struct tsi_unread *other)
{
	const char *at = other->endings;

	while (*at) {
		size_t n = strcspn(at, BETWEEN);

		add(u, at, n);
		at += n + (at[n] != '\0');
	}
}
