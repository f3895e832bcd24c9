/* SPDX-License-Identifier: MIT */
/*
 * liveline.h - what the stream does now, in one line.
 *
 * Pure: two snapshots in, text out.  It never prints and reads no clock.
 */
#ifndef TSI_CLI_LIVELINE_H
#define TSI_CLI_LIVELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tsock/tsock.h"

/* What is known of a stream at one moment. */
struct tsi_snapshot {
	struct tsock_stats stats;
	int64_t now_ns;
	uint64_t io_ns, decode_ns;      /* of all workers together */
	bool stopped[TSOCK_STATS_ROWS]; /* by a signal or a debugger */
};

struct tsi_liveline_style {
	unsigned width; /* columns at most; 0 is no limit */
	bool colour;
	unsigned threads;     /* that may work */
	unsigned all_threads; /* with those that are parked; 0: none is */
	uint32_t min_consumers;
};

enum tsi_bottleneck {
	TSI_BY_START,    /* consumers are missing before it begins */
	TSI_BY_NOBODY,   /* no consumer */
	TSI_BY_CONSUMER, /* the slowest one holds the ring up */
	TSI_BY_STOPPED,  /* the slowest one, and it is stopped */
	TSI_BY_VIEW,     /* a consumer waits for a conversion */
	TSI_BY_DECODE,   /* a consumer waits for samples */
	TSI_BY_IO,
	TSI_BY_NONE, /* nobody waits, and slots are free */
};

/* The stream's bottleneck between two snapshots, a before b. */
enum tsi_bottleneck
tsi_liveline_bottleneck(const struct tsi_snapshot *a,
			const struct tsi_snapshot *b,
			const struct tsi_liveline_style *style);

/* The line, without a newline; always terminated.  Returns its length. */
size_t tsi_liveline_format(char *buf, size_t size, const struct tsi_snapshot *a,
			   const struct tsi_snapshot *b,
			   const struct tsi_liveline_style *style);

#endif
