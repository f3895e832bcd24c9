/* SPDX-License-Identifier: MIT */
/*
 * jobs_parts.h - what the files of the table of jobs have in common.
 */
#ifndef TSI_SERVE_JOBS_PARTS_H
#define TSI_SERVE_JOBS_PARTS_H

#include "serve/jobs.h"

#define JOIN_MS 10000 /* for all ranks to join when all have asked */

/* ---- jobs.c ---- */

void tsi_jobs_forget(struct tsi_jobs *t, struct tsi_job *k);

/* ---- in both ---- */

/* Are ranks waited for, so that its start is kept? */
static inline bool is_open(const struct tsi_job *k)
{
	return k->started && !k->settled && !k->let_go;
}

static inline bool is_waiting(const struct tsi_job *k)
{
	return !k->settled && !k->let_go;
}

static inline bool has_reader(const struct tsi_job *k)
{
	for (unsigned i = 0; i < k->world; i++)
		if (k->rank[i].reader >= 0)
			return true;
	return false;
}

static inline bool was_had(const struct tsi_job *k)
{
	for (unsigned i = 0; i < k->world; i++)
		if (k->rank[i].had)
			return true;
	return false;
}

static inline unsigned count_joined(const struct tsi_job *k)
{
	unsigned n = 0;

	for (unsigned i = 0; i < k->world; i++)
		n += k->rank[i].joined;
	return n;
}

/* The job that a reader began with, and its rank; NULL: all have joined. */
static inline struct tsi_job *find_reader(struct tsi_jobs *t, unsigned reader,
					  struct tsi_job_rank **rank)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		struct tsi_job *k = &t->job[i];

		for (unsigned r = 0; k->used && r < k->world; r++)
			if (k->rank[r].reader == (int)reader) {
				*rank = &k->rank[r];
				return k;
			}
	}
	return NULL;
}

#endif
