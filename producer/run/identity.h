/* SPDX-License-Identifier: MIT */
/*
 * identity.h - what decides a stream's samples, as text.
 */
#ifndef TSI_RUN_IDENTITY_H
#define TSI_RUN_IDENTITY_H

#include <stdbool.h>
#include <stdio.h>

#include "run/pipeline.h"
#include "run/sampler.h"

/*
 * Lines of "key=value", in a fixed order, of all that decides which samples
 * the stream has and what is in them: streams with equal texts are equal, as
 * long as the files are.  A value has "\\" for a backslash and "\n" for a
 * newline.  What only decides how the stream is made or served (threads, ring)
 * isn't in it.  s was opened with o.  *out is from malloc().  Fails with
 * ENOMEM.
 */
int tsi_identity_text(const struct tsi_pipeline_opts *o,
		      const struct tsi_sampler *s, char **out);

/* The value of a key, below, that an identity must not have. */
#define TSI_IDENTITY_NONE "none"

/*
 * Lines "key=value" of what tsi_identity_text() would say, by the options and
 * the name of the folder alone: nothing is scanned, and nothing has to be
 * there.  A stream with these options has one of the values of each key, and
 * what hangs on the files isn't said.  alike: other formats that read the same
 * folder in the same way are values of "dataset", too.
 */
void tsi_identity_describe(const struct tsi_pipeline_opts *o, bool alike,
			   FILE *to);

#endif
