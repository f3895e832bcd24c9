/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - the samples that a worker has begun and not finished.
 */
#include "run/jobs.h"

#include <string.h>

#include "run/row.h"
#include "run/schema.h"
#include "run/shard_cache.h"

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

int tsi_jobs_describe(const struct tsi_job *j, const struct tsi_index *x,
		      const struct tsi_box *box, const struct tsi_slots *to)
{
	if (to->box) {
		to->box[0] = box->top;
		to->box[1] = box->left;
		to->box[2] = box->height;
		to->box[3] = box->width;
		to->box[4] = box->flip;
	}
	return tsi_row_put(x, j->target.file, to);
}

struct tsi_read_request
tsi_jobs_request(struct tsi_job *j, const struct tsi_sampler *s, bool direct)
{
	const struct tsi_index *x = tsi_sampler_index(s);
	struct tsi_read_request q;
	struct tsi_location at;

	tsi_index_locate_bytes(x, j->target.file, &at);
	q = (struct tsi_read_request){
		.dirfd = tsi_index_dirfd(x),
		.folder = at.folder,
		.path = at.file,
		.offset = at.offset,
		.length = at.length,
		.direct = direct,
		.size_hint = at.size,
		.tag = j->seq,
	};
	j->copied = tsi_shard_cache_use(tsi_sampler_shards(s), &q);
	return q;
}

bool tsi_jobs_copy_failed(const struct tsi_job *j, const struct tsi_sampler *s,
			  int err)
{
	char text[TSI_PATH];

	return j->copied &&
	       tsi_shard_cache_failed(tsi_sampler_shards(s),
				      tsi_index_path(tsi_sampler_index(s),
						     j->target.file, text),
				      err);
}
