/* SPDX-License-Identifier: MIT */
/*
 * stats.c - what a server says of itself: numbers for people and tests.
 */
#include "serve/stats.h"

#include <unistd.h>

#include "base/err.h"
#include "base/sized.h"
#include "serve/server.h"

void tsi_stats_read(struct tsock_server *s, struct tsock_stats *st)
{
	*st = (struct tsock_stats){ .size = sizeof(*st) };
	tsi_readers_refresh(&s->readers);
	st->pid = (uint32_t)getpid();
	tsi_membership_stats(&s->membership, st);
	st->produced = s->produced;
	st->read_bytes = atomic_load(&s->read_bytes);
	st->bad_samples = atomic_load(&s->bad_samples);
	st->memory = tsi_view_table_bytes(&s->views);
	st->views = tsi_gate_views_read(&s->gate);
	tsi_readers_stats(&s->readers, st);
}

int tsock_serve_stats(tsock_server *s, struct tsock_stats *out)
{
	struct tsock_stats st;
	int err;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_stats: s is NULL");
	err = tsi_sized_check("tsock_serve_stats", &tsi_sized_stats, out);
	if (err)
		return err;
	tsi_sync_lock(&s->sync);
	tsi_stats_read(s, &st);
	tsi_sync_unlock(&s->sync);
	tsi_sized_write(&tsi_sized_stats, &st, out);
	return 0;
}

int tsock_serve_connected(tsock_server *s)
{
	struct tsi_sockets k;

	if (!s)
		return tsi_err(TSOCK_EARG, "tsock_serve_connected: s is NULL");
	tsi_sync_lock(&s->sync);
	k = s->sockets;
	tsi_sync_unlock(&s->sync);
	return tsi_sockets_connected(&k);
}
