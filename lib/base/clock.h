/* SPDX-License-Identifier: MIT */
/*
 * clock.h - monotonic time, and how long a wait may last in silence.  Never the
 * wall clock: it steps.
 */
#ifndef TSI_BASE_CLOCK_H
#define TSI_BASE_CLOCK_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline int64_t tsi_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t tsi_now_ms(void)
{
	return tsi_now_ns() / 1000000;
}

/* Sleep for ms, or until until_ms if that comes first; a signal ends it. */
static inline void tsi_pause_until(int64_t until_ms, int ms)
{
	int64_t left = until_ms - tsi_now_ms();

	if (left > 0)
		poll(NULL, 0, left < ms ? (int)left : ms);
}

/*
 * How many milliseconds a wait lasts before the log says for whom: 10,000, or
 * what $TSOCK_PATIENCE_MS said at the first call.  The log says it again after
 * six times as long.  Any thread.
 */
int64_t tsi_patience_ms(void);

#endif
