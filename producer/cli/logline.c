/* SPDX-License-Identifier: MIT */
/*
 * logline.c - a log line as it is written: time, level and program.
 */
#include "cli/logline.h"

#include <stdio.h>

static const struct {
	const char *word;
	int syslog;
} levels[] = {
	{ "error", 3 },
	{ "warning", 4 },
	{ "info", 6 },
	{ "debug", 7 },
};

size_t tsi_logline(char *buf, size_t size, bool journal, const struct tm *when,
		   int level, const char *line)
{
	char at[32] = "";
	int n;

	if (journal) {
		n = snprintf(buf, size, "<%d>tsock-producer: %s\n",
			     levels[level & 3].syslog, line);
	} else {
		strftime(at, sizeof(at), "%Y-%m-%d %H:%M:%S", when);
		n = snprintf(buf, size, "tsock-producer: %s %s: %s\n", at,
			     levels[level & 3].word, line);
	}
	if (n < 0 || size == 0)
		return 0;
	if ((size_t)n < size)
		return (size_t)n;
	if (size > 1)
		buf[size - 2] = '\n';
	return size - 1;
}

bool tsi_logline_journal(const char *stream, const struct stat *st)
{
	unsigned long long dev, inode;
	char more;

	return stream &&
	       sscanf(stream, "%llu:%llu%c", &dev, &inode, &more) == 2 &&
	       dev == (unsigned long long)st->st_dev &&
	       inode == (unsigned long long)st->st_ino;
}
