/* SPDX-License-Identifier: MIT */
/*
 * path.c - a path below a root, kept as two strings.
 */
#include "base/path.h"

#include <string.h>

/* As much as there is room for behind len bytes; the new length. */
static size_t append(char to[TSI_PATH], size_t len, const char *text)
{
	size_t n = strnlen(text, TSI_PATH - 1 - len);

	memcpy(to + len, text, n);
	return len + n;
}

size_t tsi_path_begin(const char *folder, char to[TSI_PATH])
{
	if (!folder || !*folder)
		return 0;
	return append(to, append(to, 0, folder), "/");
}

const char *tsi_path_join(const char *folder, const char *name,
			  char to[TSI_PATH])
{
	size_t len = tsi_path_begin(folder, to);

	if (!len)
		return name;
	to[append(to, len, name)] = '\0';
	return to;
}

size_t tsi_path_folder(const uint64_t *folder, size_t n, uint64_t at)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (folder[mid] <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : n;
}
