/* SPDX-License-Identifier: MIT */
/*
 * file_reader.h - files of known bytes in a scratch folder, and readers of the
 * backend that is under test.
 */
#ifndef TEST_LIB_FILE_READER_H
#define TEST_LIB_FILE_READER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "io/reader.h"

extern int files_dirfd;                    /* the folder */
extern enum tsi_io_reader_kind files_kind; /* of the readers that are made */
extern bool files_direct;                  /* how reads are asked for */

/* A file of len bytes that the seed decides. */
void files_put(const char *name, size_t len, unsigned seed);

/* The read gave these bytes of files_put()'s file. */
void files_check(const struct tsi_read *r, uint64_t offset, uint64_t length,
		 unsigned seed);

/* A reader; skips the test where there is no io_uring. */
struct tsi_io_reader *files_reader(unsigned depth);

/* Descriptors that this process has open. */
int files_open_fds(void);

/* The scratch folder for a group of tests, and its end. */
int files_setup(void **state);
int files_teardown(void **state);

/* Run a suite by the chosen backend in a folder of its own. */
#define files_run(name, suite) \
	cmocka_run_group_tests_name(name, suite, files_setup, files_teardown)

/* Run the tests by both backends, through the page cache and past it. */
#define files_run_all(failed, suite) \
	do { \
		files_kind = TSI_READER_PREAD; \
		(failed) += files_run("pread", suite); \
		files_kind = TSI_READER_URING; \
		(failed) += files_run("io_uring", suite); \
		files_direct = true; \
		(failed) += files_run("io_uring, direct", suite); \
		files_kind = TSI_READER_PREAD; \
		(failed) += files_run("pread, direct", suite); \
		files_direct = false; \
	} while (0)

#endif
