/* SPDX-License-Identifier: MIT */
/*
 * logline.h - a log line as it is written: time, level and program.
 */
#ifndef TSI_CLI_LOGLINE_H
#define TSI_CLI_LOGLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

/*
 * Into buf, with its newline, cut if it must be.  For the journal, which has
 * times of its own, its "<N>" in place of time and level.  Returns the length.
 */
size_t tsi_logline(char *buf, size_t size, bool journal, const struct tm *when,
		   int level, const char *line);

/* Is that file the journal that $JOURNAL_STREAM (or NULL) names? */
bool tsi_logline_journal(const char *stream, const struct stat *st);

#endif
