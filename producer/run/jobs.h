/* SPDX-License-Identifier: MIT */
/*
 * jobs.h - the samples that a worker has begun and not finished.
 *
 * Plain values, used by one thread.
 */
#ifndef TSI_RUN_JOBS_H
#define TSI_RUN_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "data/index.h"
#include "io/reader.h"
#include "pixel/image.h"
#include "run/sampler.h"
#include "run/target.h"

struct tsi_slots;

struct tsi_job {
	bool used;
	uint64_t seq;
	struct tsi_target target; /* the file that is read for it */
	bool kept;   /* its target was in the cache, and isn't read */
	bool copied; /* it is read from a copy of its shard */
	struct tsi_maker_need need; /* of the target */
	uint64_t read_bytes;
	uint32_t reads;
};

/* An unused one of these depth jobs, made empty; there always is one. */
struct tsi_job *tsi_jobs_free(struct tsi_job *job);

/* The job of this sample, which there is. */
struct tsi_job *tsi_jobs_of(struct tsi_job *job, uint64_t seq);

/*
 * The read of j's target: of a copy of its shard if there is one.  Has a read
 * of a copy failed by this error?  Then the next request is of the source.
 */
struct tsi_read_request
tsi_jobs_request(struct tsi_job *j, const struct tsi_sampler *s, bool direct);
bool tsi_jobs_copy_failed(const struct tsi_job *j, const struct tsi_sampler *s,
			  int err);

/* The one with the lowest number, of one or more. */
const struct tsi_job *tsi_jobs_first(const struct tsi_job *job, unsigned depth);

/* The job with the lowest number among those that need no read, or NULL. */
struct tsi_job *tsi_jobs_first_kept(struct tsi_job *job, unsigned depth);

/*
 * The fields of j's sample but what it has of a file: an image of this box.  Fails as
 * tsi_columns_put() does.
 */
int tsi_jobs_describe(const struct tsi_job *j, const struct tsi_index *x,
		      const struct tsi_box *box, const struct tsi_slots *to);

#endif
