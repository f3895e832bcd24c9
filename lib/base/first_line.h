/* SPDX-License-Identifier: MIT */
/*
 * first_line.h - the first line of a small file of the kernel's, as in /proc
 * and /sys.
 */
#ifndef TSI_BASE_FIRST_LINE_H
#define TSI_BASE_FIRST_LINE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The line without its newline, cut off at n - 1 bytes; n >= 1.  The path is
 * that of format, at most PATH_MAX - 1 bytes.  False, with an empty line: there
 * is no such file, or nothing in it.
 */
bool tsi_first_line(char *line, size_t n, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
