/* SPDX-License-Identifier: MIT */
/*
 * target.h - which file a sample is made from: its own, or the first of its
 * substitutes that is good for this sample.
 *
 * The search knows what the sampler remembers of bad files and where a sample's
 * crop ends; it reads no file.  What it arrives at doesn't depend on what is
 * remembered, only how many bad files are read on the way does.  Here it is
 * also decided what a failure to read or to decode the file means: that the
 * file is bad, for this sample or for all, that it is read again, or that the
 * stream ends.
 */
#ifndef TSI_RUN_TARGET_H
#define TSI_RUN_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/load.h"
#include "run/sampler.h"

struct tsi_target {
	struct tsi_sample_id id; /* the sample: its draws decide its crop */
	uint64_t file;           /* index of the file that is to be read */
	uint64_t tries;          /* 0: its own; else that of the substitute */
	unsigned failures;       /* reads of this file that failed */
	bool again;              /* all files are being tried once more */
	int64_t read_ns;         /* when this file's read was asked for, by
			  * tsi_badfiles_now() */
};

/*
 * Begin with the own file of sample seq.  If that was bad and has changed
 * since, what is known of it is forgotten.  Fails as tsi_sampler_at() does.
 */
int tsi_target_first(struct tsi_target *t, struct tsi_sampler *s, uint64_t seq);

/* From what is known by now, the target is bad for its sample. */
bool tsi_target_is_bad(const struct tsi_target *t, const struct tsi_sampler *s,
		       const struct tsi_image *img);

/*
 * Move on to the first try from the target on that isn't known to be bad for
 * the sample.  Where none is left, what is known of all files is forgotten and
 * all are tried once more, since a disk may have been away for a while; when
 * none is left after that, EDATA.
 */
int tsi_target_choose(struct tsi_target *t, struct tsi_sampler *s,
		      const struct tsi_image *img);

/*
 * The file is bad for this sample, and is listed with this reason: choose
 * another one.  With --on-error=raise the file is the error, EDATA.
 */
int tsi_target_replace(struct tsi_target *t, struct tsi_sampler *s,
		       const struct tsi_image *img, const char *reason);

/* The same for a file that is bad for every sample, which is remembered. */
int tsi_target_unreadable(struct tsi_target *t, struct tsi_sampler *s,
			  const struct tsi_image *img, const char *reason);

/*
 * The same for a file, of these bytes, that can't be decoded as far as the
 * sample's crop needs; tsock_errmsg() says why.  How far it can be decoded is
 * found out, and remembered for all samples.
 */
int tsi_target_undecodable(struct tsi_target *t, struct tsi_sampler *s,
			   struct tsi_image *img, const uint8_t *data,
			   size_t len);

/*
 * The file's read failed with this err (io/reader.h): the file is bad, or it
 * is to be read again (0, with the same target), or the stream ends, with ESYS.
 */
int tsi_target_read_failed(struct tsi_target *t, struct tsi_sampler *s,
			   const struct tsi_image *img, int err);

/* An error that names the file. */
int tsi_target_err(const struct tsi_target *t, const struct tsi_sampler *s,
		   int code, const char *what);

#endif
