/* SPDX-License-Identifier: MIT */
/*
 * lost.c - a reader that was lost in the middle of an epoch.
 */
#include "consumer/lost.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

/* Says how long is waited, or that it is without limit. */
static void log_waiting(const char *why, uint32_t rejoin_ms)
{
	char most[32] = ", without limit,";

	if (rejoin_ms != TSI_LOST_NO_LIMIT)
		snprintf(most, sizeof(most), " up to %g s", rejoin_ms / 1e3);
	tsi_log(TSOCK_LOG_WARN,
		"%s; waiting%s for a producer of the same stream", why, most);
}

void tsi_lost_note(struct tsi_lost *l, const char *why, uint32_t rejoin_ms)
{
	l->met = false;
	if (l->since_ms)
		return;
	l->since_ms = tsi_now_ms();
	snprintf(l->why, sizeof(l->why), "%s", why);
	log_waiting(l->why, rejoin_ms);
}

bool tsi_lost_waits(const struct tsi_lost *l)
{
	return l->since_ms;
}

bool tsi_lost_lacks_producer(const struct tsi_lost *l)
{
	return l->since_ms && !l->met;
}

int64_t tsi_lost_last_ms(const struct tsi_lost *l, uint32_t rejoin_ms)
{
	return rejoin_ms == TSI_LOST_NO_LIMIT ? INT64_MAX
					      : l->since_ms + rejoin_ms;
}

bool tsi_lost_waited_enough(const struct tsi_lost *l, uint32_t rejoin_ms)
{
	return l->since_ms && tsi_now_ms() > tsi_lost_last_ms(l, rejoin_ms);
}

int tsi_lost_err(const struct tsi_lost *l, uint32_t rejoin_ms)
{
	return tsi_err(TSOCK_ELOST,
		       "%s, and no producer of the same stream came within "
		       "%g s: start it again, then open the stream anew (and "
		       "go on with tsock_resume(), in Python load_state_dict)",
		       l->why, rejoin_ms / 1e3);
}

void tsi_lost_log_rejoined(const struct tsi_lost *l, const char *name,
			   uint64_t start)
{
	if (l->since_ms)
		tsi_log(TSOCK_LOG_WARN,
			"'%s' goes on at sample %llu, after %.1f s", name,
			(unsigned long long)start,
			(double)(tsi_now_ms() - l->since_ms) / 1e3);
}

void tsi_lost_forget(struct tsi_lost *l)
{
	l->since_ms = 0;
	l->detached = false;
	memset(l->was, 0, sizeof(l->was));
}
