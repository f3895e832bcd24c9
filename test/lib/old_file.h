/* SPDX-License-Identifier: MIT */
/*
 * old_file.h - a file of a data set that hasn't only just changed, which would
 * be waited for.
 */
#ifndef TEST_LIB_OLD_FILE_H
#define TEST_LIB_OLD_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Write the file, in place of what it was; false: errno says why not. */
bool old_file_write(const char *path, const void *bytes, size_t n);

#endif
