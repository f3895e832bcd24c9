/* SPDX-License-Identifier: MIT */
/*
 * stats.h - what a server says of itself.
 */
#ifndef TSI_SERVE_STATS_H
#define TSI_SERVE_STATS_H

#include "tsock/tsock.h"

/* With the server's lock held. */
void tsi_stats_read(struct tsock_server *s, struct tsock_stats *out);

#endif
