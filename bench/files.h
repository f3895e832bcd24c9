/* SPDX-License-Identifier: MIT */
/*
 * files.h - the files of a folder in memory, as several benchmarks take them.
 */
#ifndef BENCH_FILES_H
#define BENCH_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file's bytes, to free().  Ends the program where it can't be read. */
uint8_t *bench_file_read(const char *path, size_t *len);

/*
 * Read the files below a folder in the order of their names, so that two runs
 * see the same ones, until take() has taken as many as most.  Hidden names are
 * passed over.  take() gets a file's bytes, which are free()d unless it returns
 * true, and the number of those taken before.  Returns how many it took, and in
 * *left_out, unless that is NULL, how many it didn't.  Ends the program where a
 * file or folder can't be read.
 */
size_t bench_files_read(const char *folder, size_t most,
			bool (*take)(void *arg, size_t i, uint8_t *data,
				     size_t len),
			void *arg, size_t *left_out);

#endif
