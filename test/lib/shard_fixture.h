/* SPDX-License-Identifier: MIT */
/*
 * shard_fixture.h - data sets of tar shards, in the folder of worker_fixture.h.
 */
#ifndef TEST_LIB_SHARD_FIXTURE_H
#define TEST_LIB_SHARD_FIXTURE_H

#include "test/lib/tar_gen.h"
#include "test/lib/worker_fixture.h"

int shard_setup(void **state);

/* Write what was made, and begin anew. */
void shard_write_tar(struct tar_gen *t, const char *name);

void shard_add(struct tar_gen *t, const char *name);

/* The data set of one shard, or of all that were written. */
struct tsi_index *shard_open_index(void);

struct tsi_index *shard_open_one(struct tar_gen *t);

void shard_expect(const struct tsi_index *x, uint64_t i, const char *name,
		  int64_t label);

/* Three samples, of which the label comes first. */
void shard_three(struct tar_gen *t);

#endif
