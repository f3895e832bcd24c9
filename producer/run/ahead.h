/* SPDX-License-Identifier: MIT */
/*
 * ahead.h - the files of the samples that come next are read ahead of the
 * workers, where the disk makes that worthwhile: see io/readahead.h.
 */
#ifndef TSI_RUN_AHEAD_H
#define TSI_RUN_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "run/sampler.h"

struct tsi_ahead;
struct tsi_image_cache;

struct tsi_ahead_opts {
	uint64_t bytes;  /* at most; 0: nothing is read ahead */
	uint64_t epochs; /* of the stream; 0: it never ends */
};

/*
 * Files whose images are in the cache (which may be NULL) are left out.
 * *out is NULL where nothing is read ahead: on SSDs and unknown disks.  The sampler and the cache must
 * outlive it.  Fails with TSOCK_ENOMEM, TSOCK_ESYS (no thread).
 */
int tsi_ahead_open(struct tsi_sampler *s, const struct tsi_image_cache *cache,
		   const struct tsi_ahead_opts *opts, struct tsi_ahead **out);

/* A worker has begun this sequence number.  Any thread.  NULL is allowed. */
void tsi_ahead_tell(struct tsi_ahead *a, uint64_t seq);

/* How it reads, for a message; NULL if it is NULL. */
const char *tsi_ahead_how(const struct tsi_ahead *a);

/* Read nothing more ahead.  Returns at once.  NULL is allowed. */
void tsi_ahead_stop(struct tsi_ahead *a);

/* No worker tells it anything any more.  NULL is allowed. */
void tsi_ahead_close(struct tsi_ahead *a);

#endif
