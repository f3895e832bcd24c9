/* SPDX-License-Identifier: MIT */
/*
 * epoch_job.h - consumers of the stream that inproc.h serves, in threads of
 * this process: each reads whole epochs, and checks every sample.
 */
#ifndef TEST_LIB_EPOCH_JOB_H
#define TEST_LIB_EPOCH_JOB_H

#include "test/lib/inproc.h"

/* A thread may not call cmocka's assertions: it notes what failed. */
struct epoch_job {
	pthread_t thread;
	uint64_t n; /* samples of an epoch of the stream */
	uint32_t batch, flags;
	unsigned epochs;   /* to read */
	unsigned scribble; /* not 0: write over every batch */
	char failed[256];  /* "" if all was as it should be */
};

/*
 * Read one epoch: every sample once, in order, in batches as large as they go.
 * *next is the sequence number of its first sample, UINT64_MAX if any will do,
 * and then that of the next epoch's.
 */
void epoch_job_read(struct epoch_job *j, tsock *t, uint64_t *next);

/* Start a thread that joins, reads j->epochs epochs and leaves. */
void epoch_job_start(struct epoch_job *j);

/* Wait for its end, and fail if anything was wrong. */
void epoch_job_finish(struct epoch_job *j);

/* Several at once. */
void epoch_job_run_all(struct epoch_job *j, unsigned n);

#endif
