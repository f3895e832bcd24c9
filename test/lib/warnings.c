/* SPDX-License-Identifier: MIT */
#include "test/lib/warnings.h"

#include <unistd.h>

static int ends[2];

static void pass(void *arg, int level, const char *line)
{
	(void)arg;
	if (level == TSOCK_LOG_WARN)
		dprintf(ends[1], "%s\n", line);
}

void warnings_begin(void)
{
	assert_int_equal(pipe(ends), 0);
}

void warnings_pass(tsock_server *s, const struct source *src)
{
	(void)s;
	(void)src;
	tsock_set_logger(pass, NULL);
}

FILE *warnings_file(void)
{
	FILE *f = fdopen(ends[0], "r");

	close(ends[1]);
	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	return f;
}
