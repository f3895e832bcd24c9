/* SPDX-License-Identifier: MIT */
/*
 * target.h - which file a sample is made from: its own, or the first of its
 * substitutes that is good for this sample.
 *
 * The search knows what the sampler remembers of bad files and where a sample's
 * crop ends; it reads no file.  What it arrives at doesn't depend on what is
 * remembered, only how many bad files are read on the way does.  A worker tells
 * what came of a target, and hears what is next: which failure means that the
 * file is bad, for this sample or for all, that it is read again, or that the
 * stream ends, is decided here alone.
 */
#ifndef TSI_RUN_TARGET_H
#define TSI_RUN_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/load.h"
#include "run/maker.h"
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
 * Begin with sample seq, whose own file is the target unless that is known to
 * be bad for the sample.  If it was bad and has changed since, what is known of
 * it is forgotten.  Fails as tsi_sampler_at() and tsi_target_next() do.
 */
int tsi_target_first(struct tsi_target *t, struct tsi_sampler *s,
		     const struct tsi_maker *m, uint64_t seq);

/* From what is known by now, the target is bad for its sample. */
bool tsi_target_is_bad(const struct tsi_target *t, const struct tsi_sampler *s,
		       const struct tsi_maker *m);

/* What came of the target. */
enum tsi_came {
	TSI_CAME_SAMPLE,      /* the sample is made */
	TSI_CAME_KNOWN,       /* it is bad, as another worker has found out */
	TSI_CAME_UNREAD,      /* the read failed with err (io/reader.h) */
	TSI_CAME_UNDECODABLE, /* its bytes can't be decoded as far as the
			       * sample's crop needs */
	TSI_CAME_NEVER,       /* it can be the image of no sample */
	TSI_CAME_NOT_NOW,     /* it can't be this sample's */
	TSI_CAME_CROWDED,     /* not enough of the memory for large images is
			       * free: the worker tries again */
	TSI_CAME_NO_MEMORY,   /* for an image that isn't large */
	TSI_CAME_END,         /* the stream ends with err, a TSOCK_ code that
			       * tsock_errmsg() is about */
};

struct tsi_outcome {
	enum tsi_came came;
	int err;
	char reason[256]; /* UNDECODABLE, NEVER, NOT_NOW and NO_MEMORY: why */
	/* UNDECODABLE: how far, or the error of finding that out. */
	int measure_err;
	struct tsi_image_extent extent;
};

/*
 * What is read next for the sample, whose target came to this and was no
 * sample: with 0 the target, which is another file or the same one again.  A
 * file that is bad is listed with its reason and, if it is bad for other
 * samples too, remembered.  With --on-error=raise it is the error, EDATA.  Then
 * comes the first try that isn't known to be bad for the sample.  Where none is
 * left, what is known of all files is forgotten and all are tried once more,
 * since a disk may have been away for a while; when none is left after that,
 * EDATA.  ESYS or ENOMEM end the stream, and name the file.
 */
int tsi_target_next(struct tsi_target *t, struct tsi_sampler *s,
		    const struct tsi_maker *m, const struct tsi_outcome *o);

#endif
