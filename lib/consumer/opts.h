/* SPDX-License-Identifier: MIT */
/*
 * opts.h - what a consumer's options may be.
 */
#ifndef TSI_CONSUMER_OPTS_H
#define TSI_CONSUMER_OPTS_H

#include "tsock/tsock.h"

/* TSOCK_EARG, which says what is wrong with options that can't be. */
int tsi_opts_check(const struct tsock_opts *o);

#endif
