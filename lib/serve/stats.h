/* SPDX-License-Identifier: MIT */
/*
 * stats.h - what a server says of itself.
 */
#ifndef TSI_SERVE_STATS_H
#define TSI_SERVE_STATS_H

#include "order/part.h"
#include "serve/production.h"
#include "serve/readers.h"
#include "serve/view_table.h"
#include "serve/waits.h"

/* The parts of the server that are asked. */
struct tsi_stats {
	const struct tsi_membership *membership;
	const struct tsi_gate *gate;
	struct tsi_readers *readers;
	const struct tsi_production *production;
	const struct tsi_view_table *views;
	struct tsi_waits *waits;
	struct tsi_part part; /* that the stream is */
};

/* With the server's lock held. */
void tsi_stats_read(const struct tsi_stats *from, struct tsock_stats *out);

#endif
