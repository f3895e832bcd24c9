/* SPDX-License-Identifier: MIT */
#include "test/lib/epoch_job.h"

#include <stdio.h>
#include <string.h>

#define EXPECT(j, x) \
	do { \
		if (!(x)) { \
			snprintf((j)->failed, sizeof((j)->failed), \
				 "line %d: %s (%.150s)", __LINE__, #x, \
				 tsock_errmsg()); \
			return; \
		} \
	} while (0)

void epoch_job_read(struct epoch_job *j, tsock *t, uint64_t *next)
{
	uint64_t done = 0, batches = 0, want = j->n;
	tsock_batch *b;
	int err;

	if (j->flags & TSOCK_DROP_LAST)
		want -= j->n % j->batch;
	EXPECT(j, tsock_begin(t) == 0);
	while ((err = tsock_next(t, 20000, &b)) == 0) {
		uint64_t n = tsock_batch_count(b);

		if (*next == UINT64_MAX)
			*next = tsock_batch_seq(b);
		EXPECT(j, tsock_batch_seq(b) == *next + done);
		EXPECT(j,
		       n == (want - done < j->batch ? want - done : j->batch));
		EXPECT(j, tsock_batch_epoch(b) == tsock_epoch(t));
		EXPECT(j, inproc_good(b, j->n));
		if (j->scribble)
			memset(tsock_batch_data_mut(b, 0), 0xaa,
			       n * INPROC_BYTES);
		tsock_batch_release(b);
		done += n;
		batches++;
	}
	EXPECT(j, err == TSOCK_EEPOCH);
	EXPECT(j, tsock_next(t, 0, &b) == TSOCK_EEPOCH);
	EXPECT(j, done == want);
	EXPECT(j, batches == tsock_epoch_batches(t));
	*next += j->n;
}

static void *consume(void *arg)
{
	struct epoch_job *j = arg;
	tsock *t = inproc_join(j->batch, j->flags);
	uint64_t next = UINT64_MAX;

	for (unsigned e = 0; e < j->epochs && !j->failed[0]; e++)
		epoch_job_read(j, t, &next);
	tsock_close(t);
	return NULL;
}

void epoch_job_start(struct epoch_job *j)
{
	assert_int_equal(pthread_create(&j->thread, NULL, consume, j), 0);
}

void epoch_job_finish(struct epoch_job *j)
{
	pthread_join(j->thread, NULL);
	if (j->failed[0])
		fail_msg("batch size %u: %s", j->batch, j->failed);
}

void epoch_job_run_all(struct epoch_job *j, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		epoch_job_start(&j[i]);
	for (unsigned i = 0; i < n; i++)
		epoch_job_finish(&j[i]);
}
