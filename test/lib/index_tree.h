/* SPDX-License-Identifier: MIT */
/*
 * index_tree.h - a folder of made-up files for tests of the index.
 */
#ifndef TEST_LIB_INDEX_TREE_H
#define TEST_LIB_INDEX_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data/index.h"
#include "tsock/tsock.h"

extern char tree_top[64];       /* a scratch folder, gone after the test */
extern char tree_cache[80];     /* where scans are cached */
extern _Atomic int tree_probed; /* calls of the probe */

/* Paths are relative to the tree.  A file with this text, and its folders. */
void tree_put(const char *path, const char *text);

/* Remove a file or an empty folder. */
void tree_drop(const char *path);

/* A link at path. */
void tree_link(const char *target, const char *path);

/* An empty folder. */
void tree_folder(const char *path);

/* Options for an index of the tree: no cache, four threads, a counting
 * probe. */
struct tsi_index_opts tree_options(void);

/* The index, or fail. */
struct tsi_index *tree_open(struct tsi_index_opts o);

/* The file's path below the tree, until the next call but one. */
const char *tree_path(const struct tsi_index *x, uint64_t i);

/* The size of a file, which is a sample of its own. */
uint64_t tree_size_of(const struct tsi_index *x, uint64_t i);

/* A scratch folder for a test, and its end. */
int tree_setup(void **state);

int tree_teardown(void **state);

#endif
