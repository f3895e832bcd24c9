/* SPDX-License-Identifier: MIT */
/*
 * stats.c - what a server says of itself: numbers for people and tests.
 */
#include "serve/stats.h"

#include <unistd.h>

#include "base/clock.h"

void tsi_stats_read(const struct tsi_stats *from, struct tsock_stats *st)
{
	*st = (struct tsock_stats){ .size = sizeof(*st) };
	tsi_readers_refresh(from->readers);
	st->pid = (uint32_t)getpid();
	tsi_membership_stats(from->membership, st);
	tsi_production_stats(from->production, st);
	st->shard = from->part.first;
	st->shard_ranks = from->part.ranks;
	st->shards = from->part.world;
	st->memory = tsi_view_table_bytes(from->views);
	st->views = tsi_gate_views_read(from->gate);
	tsi_readers_stats(from->readers, st);
	tsi_waits_stats(from->waits, tsi_now_ms(), st);
}
