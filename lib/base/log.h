/* SPDX-License-Identifier: MIT */
/*
 * log.h - lines for the logger that the user set, or for $TSOCK_LOG.
 */
#ifndef TSI_BASE_LOG_H
#define TSI_BASE_LOG_H

#include "tsock/tsock.h"

/* Log one printable line, whatever the arguments contain (printable.h). */
void tsi_log(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Between the first start and the last stop a thread of its own calls the
 * logger, so tsi_log() never waits.  While the queue is full, lines are dropped
 * and counted; the count is logged when there is room again.  The last stop
 * waits for queued lines, ten seconds at most, and for one call of the logger
 * no longer than two.
 */
int tsi_log_start(void);
void tsi_log_stop(void);

/*
 * A line that the same thread hands to show() instead of to the logger.  Only
 * the newest matters: it replaces the last line of the queue if that one is for
 * show() too.
 */
void tsi_log_newest(void (*show)(const char *line), const char *line);

#endif
