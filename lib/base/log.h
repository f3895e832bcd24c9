/*
 * log.h - log lines for whoever set a logger, or $TSOCK_LOG; silent otherwise.
 */
#ifndef TSI_BASE_LOG_H
#define TSI_BASE_LOG_H

#include "tsock/tsock.h"

/* Whatever the arguments hold, it is one line (printable.h). */
void tsi_log(int level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * From the first start to the last stop the logger is called by a thread of
 * its own, and tsi_log() never waits for it.  Lines that find the queue full
 * are dropped, and their number is logged when there is room again.  The last
 * stop waits at most a second for lines that are still queued.
 */
int tsi_log_start(void);
void tsi_log_stop(void);

/*
 * A line that isn't for the logger but for show, and of which only the newest
 * counts: it replaces its predecessor if that is the last one in the queue.
 */
void tsi_log_newest(void (*show)(const char *line), const char *line);

#endif
