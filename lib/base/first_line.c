/* SPDX-License-Identifier: MIT */
/*
 * first_line.c - the first line of a small file of the kernel's.
 */
#include "base/first_line.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool tsi_first_line(char *line, size_t n, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int len;
	FILE *f;
	bool ok;

	line[0] = '\0';
	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, (int)n, f) != NULL;
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return ok;
}
