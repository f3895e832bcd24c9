/* SPDX-License-Identifier: MIT */
/*
 * transform.h - --transform, --preset, --size and --resize: the recipe that
 * samples are made by.
 */
#ifndef TSI_CLI_TRANSFORM_H
#define TSI_CLI_TRANSFORM_H

#include <stdio.h>

#include "cli/options.h"

/*
 * Set o->recipe, and o->order where it wasn't given, once the split is known.
 * Fails with EARG.
 */
int tsi_transform_choose(struct tsi_options *o);

/* How samples are made of audio files, then; views 0: of other files. */
struct tsi_audio_opts tsi_transform_audio(const struct tsi_options *o);

/* What is odd about the options, but meant perhaps. */
void tsi_transform_warn(struct tsi_options *o);

/* What a recipe may have: --transform help. */
void tsi_transform_help(FILE *to);

#endif
