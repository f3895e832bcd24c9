/* SPDX-License-Identifier: MIT */
/*
 * advice.h - what somebody probably meant.
 */
#ifndef TSI_CLI_ADVICE_H
#define TSI_CLI_ADVICE_H

#include "cli/options.h"
#include "data/index.h"

/*
 * The folder d->folder is there and holds no class folders, or isn't there:
 * EDATA with a sentence when it is known what lies there instead (images
 * side by side, Kaggle's tree, what tsi_contents_look() knows).  0 otherwise.
 */
int tsi_advice_layout(const struct tsi_dataset *d);

/*
 * EARG with a sentence if the option's value is an address (s3://...,
 * https://..., a pipe:) and no path of this machine.
 */
int tsi_advice_url(const char *option, const char *value);

/* Warn when the classes look like splits, or when there is but one. */
void tsi_advice_classes(const struct tsi_dataset *d, const struct tsi_index *x);

#endif
