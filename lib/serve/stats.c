/* SPDX-License-Identifier: MIT */
/*
 * stats.c - what a server says of itself: numbers for people and tests.
 */
#include "serve/stats.h"

#include <unistd.h>

#include "base/err.h"
#include "base/sized.h"
#include "serve/server.h"

static void stats_row(const struct tsock_server *s, unsigned id,
		      struct tsock_stats_row *row)
{
	tsi_conn_stats(&s->conn[id], row);
	tsi_membership_stats_row(&s->membership, id, row);
}

/* The row whose reader has come furthest. */
static struct tsock_stats_row *furthest(struct tsock_stats *st)
{
	struct tsock_stats_row *far = &st->row[0];

	for (uint32_t i = 1; i < st->nrows; i++)
		if (st->row[i].tail > far->tail)
			far = &st->row[i];
	return far;
}

static void stats_rows(const struct tsock_server *s, struct tsock_stats *st)
{
	for (unsigned i = 0; tsi_membership_next(&s->membership, &i); i++) {
		struct tsock_stats_row row = { .pid = 0 }, *far;

		stats_row(s, i, &row);
		if (st->nrows < TSOCK_STATS_ROWS) {
			st->row[st->nrows++] = row;
			continue;
		}
		/* Without space for all, the readers that are behind count. */
		far = furthest(st);
		if (row.tail < far->tail)
			*far = row;
	}
}

void tsi_stats_read(struct tsock_server *s, struct tsock_stats *st)
{
	*st = (struct tsock_stats){ .size = sizeof(*st) };
	tsi_server_refresh(s);
	st->pid = (uint32_t)getpid();
	tsi_membership_stats(&s->membership, st);
	st->produced = s->produced;
	st->read_bytes = atomic_load(&s->read_bytes);
	st->bad_samples = atomic_load(&s->bad_samples);
	st->memory = tsi_view_table_bytes(&s->views);
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		st->views +=
			s->ring[i] && tsi_membership_active(&s->membership, i);
	stats_rows(s, st);
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
