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
#include "pixel/image.h"
#include "run/target.h"

struct tsi_slots;

struct tsi_job {
	bool used;
	uint64_t seq;
	struct tsi_target target; /* the file that is read for it */
	bool kept; /* its target was in the cache, and isn't read */
	uint64_t read_bytes;
	uint32_t reads;
};

/* An unused one of these depth jobs, made empty; there always is one. */
struct tsi_job *tsi_jobs_free(struct tsi_job *job);

/* The job of this sample, which there is. */
struct tsi_job *tsi_jobs_of(struct tsi_job *job, uint64_t seq);

/* The one with the lowest number, of one or more. */
const struct tsi_job *tsi_jobs_first(const struct tsi_job *job, unsigned depth);

/* The job with the lowest number among those that need no read, or NULL. */
struct tsi_job *tsi_jobs_first_kept(struct tsi_job *job, unsigned depth);

/* The fields of j's sample but its image, which has this box. */
void tsi_jobs_describe(const struct tsi_job *j, const struct tsi_index *x,
		       const struct tsi_box *box, const struct tsi_slots *to);

#endif
