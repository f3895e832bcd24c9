/* SPDX-License-Identifier: MIT */
/*
 * target.h - which file a sample is made from: its own, or the next one that is
 * good for this sample.
 *
 * The search knows what the sampler remembers of bad files and where a sample's
 * crop ends; it reads no file.  What it arrives at doesn't depend on what is
 * remembered, only how many bad files are read on the way does.
 */
#ifndef TSI_RUN_TARGET_H
#define TSI_RUN_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image.h"
#include "run/sampler.h"

struct tsi_target {
	struct tsi_sample_id id; /* the sample: its draws decide its crop */
	uint64_t file;           /* index of the file that is to be read */
	uint64_t passed;         /* files from the sample's own to this one */
	unsigned failures;       /* reads of this file that failed */
	bool again;              /* all files are being tried once more */
};

/*
 * Begin with the own file of sample seq.  If that was bad and has changed
 * since, what is known of it is forgotten.  Fails as tsi_sampler_at() does.
 */
int tsi_target_first(struct tsi_target *t, struct tsi_sampler *s, uint64_t seq);

/* From what is known by now, the target is bad for its sample. */
bool tsi_target_is_bad(const struct tsi_target *t, const struct tsi_sampler *s,
		       const struct tsi_image *img);

/* The target is bad: the next file, whether that is good or not. */
void tsi_target_pass(struct tsi_target *t, const struct tsi_sampler *s);

/*
 * Move on to the first file from the target on that isn't known to be bad for
 * the sample.  Where none is left, what is known of all files is forgotten and
 * all are tried once more, since a disk may have been away for a while; when
 * none is left after that, EDATA.
 */
int tsi_target_choose(struct tsi_target *t, struct tsi_sampler *s,
		      const struct tsi_image *img);

#endif
