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

struct tsi_live {
	struct tsock_stats stats;
	int64_t now_ns;
	uint64_t io_ns, decode_ns;      /* of all workers together */
	bool stopped[TSOCK_STATS_ROWS]; /* by a signal or a debugger */
};

struct tsi_live_style {
	unsigned width; /* columns at most; 0 is no limit */
	bool colour;
	unsigned threads;
	uint32_t min_consumers;
};

enum tsi_bottleneck {
	TSI_BY_START,    /* consumers are missing before it begins */
	TSI_BY_NOBODY,   /* no consumer */
	TSI_BY_CONSUMER, /* the slowest one holds the ring up */
	TSI_BY_STOPPED,  /* the same, and it is stopped */
	TSI_BY_VIEW,     /* somebody waits for a conversion */
	TSI_BY_DECODE,   /* somebody waits for samples */
	TSI_BY_IO,
	TSI_BY_NONE, /* nobody waits, and the ring has room */
};

/* Who holds the stream up between two snapshots, a before b. */
enum tsi_bottleneck tsi_live_bottleneck(const struct tsi_live *a,
					const struct tsi_live *b,
					const struct tsi_live_style *style);

/* The line, without a newline; always terminated.  Returns its length. */
size_t tsi_live_line(char *buf, size_t size, const struct tsi_live *a,
		     const struct tsi_live *b,
		     const struct tsi_live_style *style);

/* "1,234,567" into buf (at least 28 bytes), which is returned. */
const char *tsi_thousands(char *buf, uint64_t n);

/* "308.3 MB" into buf (at least 16 bytes), powers of 1000. */
const char *tsi_megabytes(char *buf, uint64_t bytes);

#endif
