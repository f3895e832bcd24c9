/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - the samples that a worker has begun and not finished.
 */
#include "run/jobs.h"

#include <string.h>

#include "data/format.h"
#include "run/worker.h"

struct tsi_job *tsi_jobs_free(struct tsi_job *job)
{
	while (job->used)
		job++;
	memset(job, 0, sizeof(*job));
	return job;
}

struct tsi_job *tsi_jobs_of(struct tsi_job *job, uint64_t seq)
{
	while (!job->used || job->seq != seq)
		job++;
	return job;
}

const struct tsi_job *tsi_jobs_first(const struct tsi_job *job, unsigned depth)
{
	const struct tsi_job *first = NULL;

	for (unsigned i = 0; i < depth; i++)
		if (job[i].used && (!first || job[i].seq < first->seq))
			first = &job[i];
	return first;
}

struct tsi_job *tsi_jobs_first_kept(struct tsi_job *job, unsigned depth)
{
	struct tsi_job *first = NULL;

	for (unsigned i = 0; i < depth; i++) {
		struct tsi_job *j = &job[i];

		if (j->used && j->kept && (!first || j->seq < first->seq))
			first = j;
	}
	return first;
}

/* Zeros behind it, at least one. */
static void put_key(const struct tsi_index *x, uint64_t file,
		    const struct tsi_slots *to)
{
	size_t len;
	const char *key = tsi_index_key(x, file, &len);

	memcpy(to->key, key, len);
	memset(to->key + len, 0, to->key_width - len);
}

/* What the data set has beside images and classes. */
static void put_columns(const struct tsi_columns *c, uint64_t file,
			const struct tsi_slots *to)
{
	if (tsi_columns_label(c))
		tsi_columns_put_label(c, file, to->label);
	else
		*to->label = -1;
	for (unsigned k = 0; k < tsi_columns_count(c); k++)
		tsi_columns_put(c, k, file, to->column[k]);
}

void tsi_jobs_describe(const struct tsi_job *j, const struct tsi_index *x,
		       const struct tsi_box *box, const struct tsi_slots *to)
{
	const struct tsi_columns *c = tsi_index_columns(x);

	if (c)
		put_columns(c, j->target.file, to);
	else
		*to->label = tsi_format_unlabelled(tsi_index_format(x))
				     ? -1
				     : tsi_index_label(x, j->target.file);
	*to->index = (int64_t)j->target.file;
	if (to->weight)
		*to->weight = tsi_index_weight(x, j->target.file);
	if (to->key)
		put_key(x, j->target.file, to);
	to->box[0] = box->top;
	to->box[1] = box->left;
	to->box[2] = box->height;
	to->box[3] = box->width;
	to->box[4] = box->flip;
}
