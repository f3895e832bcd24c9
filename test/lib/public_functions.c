/* SPDX-License-Identifier: MIT */
#include "test/lib/public_functions.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define HEADERS "include/tsock/*.h"

/* The name before a '(' at the beginning of a declaration; its length. */
static size_t declared(const char *line, const char **name)
{
	const char *end = strchr(line, '('), *p = end;

	while (p && p > line && strchr(" *", p[-1]) == NULL)
		p--;
	*name = p;
	return p && !strncmp(p, "tsock_", 6) ? (size_t)(end - p) : 0;
}

/* Those of one header. */
static size_t functions_of(const char *header,
			   void (*visit)(const char *name, size_t len))
{
	FILE *f = fopen(header, "r");
	bool due = false;
	size_t found = 0;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		const char *name;
		size_t len;

		/* One declared over two lines has its name on the second. */
		due = due || !strncmp(line, "TSOCK_API", 9);
		if (!due)
			continue;
		len = declared(line, &name);
		if (!len)
			continue;
		due = false;
		found++;
		visit(name, len);
	}
	fclose(f);
	return found;
}

size_t public_functions(void (*visit)(const char *name, size_t len))
{
	size_t found = 0;
	glob_t headers;

	assert_int_equal(glob(HEADERS, 0, NULL, &headers), 0);
	for (size_t i = 0; i < headers.gl_pathc; i++)
		found += functions_of(headers.gl_pathv[i], visit);
	globfree(&headers);
	return found;
}
