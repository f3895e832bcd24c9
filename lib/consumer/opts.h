/* SPDX-License-Identifier: MIT */
/*
 * opts.h - what a consumer's options may be.
 */
#ifndef TSI_CONSUMER_OPTS_H
#define TSI_CONSUMER_OPTS_H

#include <stdbool.h>

#include "order/ranks.h"
#include "tsock/tsock.h"

/* TSOCK_EARG, which says what is wrong with options that can't be. */
int tsi_opts_check(const struct tsock_opts *o);

/* Which part of an epoch they ask for; sequential: of an evaluation stream. */
struct tsi_ranks tsi_opts_ranks(const struct tsock_opts *o, bool sequential);

#endif
