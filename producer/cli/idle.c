/* SPDX-License-Identifier: MIT */
/*
 * idle.c - does a process still read the stream, or may it soon?
 */
#include "cli/idle.h"

#define LOOK_MS 250 /* between two counts of connections */

void tsi_idle_begin(struct tsi_idle *i, int64_t now_ms)
{
	i->busy_ms = now_ms;
}

void tsi_idle_readers(struct tsi_idle *i, uint32_t readers, bool read,
		      int64_t now_ms)
{
	i->had_reader |= readers || read;
	if (!readers)
		return;
	i->busy_ms = now_ms;
	i->said = i->deserted = false;
	/* Some of these readers may still be connected. */
	i->connected = 1;
}

bool tsi_idle_due(const struct tsi_idle *i, int64_t now_ms)
{
	return now_ms - i->looked_ms >= LOOK_MS;
}

bool tsi_idle_connections(struct tsi_idle *i, int connected, int64_t now_ms)
{
	int before = i->connected;
	bool first = !i->said;

	i->looked_ms = now_ms;
	i->connected = connected;
	i->deserted = !before && !connected;
	if (!before || !connected)
		return false;
	i->busy_ms = now_ms;
	i->said = true;
	return first;
}

bool tsi_idle_over(const struct tsi_idle *i, uint64_t limit_ms, int64_t now_ms)
{
	uint64_t limit = limit_ms;

	if (!i->had_reader && limit < TSI_IDLE_FIRST_MS)
		limit = TSI_IDLE_FIRST_MS;
	return !i->connected && now_ms > i->busy_ms &&
	       (uint64_t)(now_ms - i->busy_ms) >= limit;
}
