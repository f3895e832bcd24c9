/* SPDX-License-Identifier: MIT */
/*
 * open.c - making a server, and taking it down.
 *
 * Every option is checked, and all the memory of the base ring taken, before
 * the first consumer can see anything.
 */
#include "serve/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "serve/control.h"
#include "serve/options.h"

/* ---- parts ---- */

static uint32_t segments_of(const struct tsock_serve_opts *o)
{
	return o->segments ? o->segments : 1;
}

static int copy_bounds(struct tsock_server *s, const struct tsock_serve_opts *o)
{
	uint32_t n = segments_of(o);

	s->bounds = calloc(n + 1, sizeof(*s->bounds));
	if (!s->bounds)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for the bounds of %u segments", n);
	for (uint32_t i = 0; i <= n; i++)
		s->bounds[i] =
			o->segment_bounds && o->segments
				? o->segment_bounds[i]
				: (uint64_t)((unsigned __int128)o->epoch_len *
					     i / n);
	return 0;
}

/* Before it nothing is read: that is of an epoch that was dealt anew. */
static uint64_t begins_of(const struct tsock_serve_opts *o)
{
	struct tsi_part part = tsi_options_part(o);

	if (!o->start)
		return 0;
	return o->start_epoch * o->epoch_len +
	       tsi_part_begin(&part, o->whole_len, o->start_epoch);
}

static uint64_t first_of(const struct tsock_serve_opts *o)
{
	return max64(o->first_epoch * o->epoch_len, begins_of(o));
}

/* The first number that no sample of the stream will have. */
static uint64_t end_of(const struct tsock_serve_opts *o)
{
	return o->epochs ? o->epochs * o->epoch_len : TSI_NEVER;
}

static void init_members(struct tsock_server *s,
			 const struct tsock_serve_opts *o,
			 const struct tsi_geometry *g)
{
	struct tsi_membership_config c = {
		.epoch_len = o->epoch_len,
		.join_window = g->join_window,
		.capacity = g->capacity,
		.first = first_of(o),
		.begins = begins_of(o),
		.end = end_of(o),
		.segments = segments_of(o),
		.bounds = s->bounds,
		.min_members = o->min_consumers ? o->min_consumers : 1,
	};

	tsi_membership_init(&s->membership, &c);
}

static int make_base(struct tsock_server *s, const struct tsock_serve_opts *o,
		     const struct tsi_geometry *g, uint64_t *incarnation)
{
	struct tsi_ring_ident id = { .epoch_len = o->epoch_len,
				     .end = end_of(o) };
	int err;

	if (o->memory && g->bytes > o->memory)
		return tsi_err(
			TSOCK_ENOMEM,
			"the ring needs %llu MiB and only %llu MiB may "
			"be used; make --ring smaller or --memory larger",
			(unsigned long long)(g->bytes >> 20),
			(unsigned long long)(o->memory >> 20));
	if (getrandom(&id.incarnation, sizeof(id.incarnation), 0) !=
	    (ssize_t)sizeof(id.incarnation))
		return tsi_err_sys("getrandom");
	err = tsi_production_init(&s->production, g->capacity, &s->sync,
				  &s->membership, &s->gate);
	if (err)
		return err;
	tsi_production_set_bad_files(&s->production, o->bad_files);
	tsi_messages_begin(&s->messages, id.incarnation);
	tsi_handshake_begin(&s->handshake, s->event, id.incarnation);
	*incarnation = id.incarnation;
	return tsi_view_table_make_base(&s->views, g, &id);
}

/* Record the readers for the stream's next producer. */
static void keep_record(struct tsock_server *s,
			const struct tsock_serve_opts *o, uint64_t incarnation)
{
	const struct tsi_address *a = tsi_sockets_address(&s->sockets);
	uint64_t n;

	if (!o->resumable)
		return;
	n = tsi_hash(o->identity, strlen(o->identity), o->epoch_len);
	n = tsi_readers_keep_record(&s->readers, tsi_address_folder(a),
				    tsi_address_name(a), n, incarnation);
	tsi_messages_set_lineage(&s->messages, n);
}

static int make_event(struct tsock_server *s)
{
	s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s->event < 0 ? tsi_err_sys("eventfd") : 0;
}

static struct tsock_server *blank(const struct tsock_serve_opts *o)
{
	struct tsock_server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	tsi_sync_init(&s->sync);
	tsi_sockets_init(&s->sockets);
	s->event = -1;
	tsi_gate_init(&s->gate, &s->sync, &s->membership);
	tsi_readers_init(&s->readers, &s->sync, &s->gate, &s->membership,
			 &s->offers, o->epoch_len);
	tsi_readers_set_slow(&s->readers, o->slow, o->slow_ms);
	tsi_readers_set_min_wait(&s->readers, o->min_wait_ms);
	tsi_view_table_init(&s->views, o, &s->sync, &s->membership,
			    &s->readers);
	tsi_waits_init(&s->waits, &s->readers, &s->membership);
	tsi_tables_init(&s->tables, &s->sync, o);
	tsi_handshake_init(&s->handshake, &s->readers, &s->offers, &s->tables);
	s->stats = (struct tsi_stats){ .membership = &s->membership,
				       .gate = &s->gate,
				       .readers = &s->readers,
				       .production = &s->production,
				       .views = &s->views,
				       .waits = &s->waits,
				       .part = tsi_options_part(o) };
	s->messages = (struct tsi_messages){ .sync = &s->sync,
					     .gate = &s->gate,
					     .readers = &s->readers,
					     .offers = &s->offers,
					     .views = &s->views,
					     .sockets = &s->sockets,
					     .stats = &s->stats,
					     .waits = &s->waits,
					     .tables = &s->tables };
	return s;
}

int tsock_serve_open(const char *name, const struct tsock_serve_opts *opts,
		     tsock_server **out)
{
	struct tsock_serve_opts o;
	struct tsi_geometry g;
	struct tsock_server *s;
	uint64_t incarnation = 0;
	int err;

	if (out)
		*out = NULL;
	if (!name || !out)
		return tsi_err(TSOCK_EARG, "tsock_serve_open: %s is NULL",
			       name ? "out" : "name");
	err = tsi_options_read("tsock_serve_open", opts, &o, &g);
	if (!err)
		err = tsi_log_start();
	if (err)
		return err;
	s = blank(&o);
	if (!s) {
		tsi_log_stop();
		return tsi_err(TSOCK_ENOMEM, "no memory for a server");
	}
	err = tsi_messages_init(&s->messages, &o, &g);
	if (!err)
		err = copy_bounds(s, &o);
	if (err)
		goto err_close;
	init_members(s, &o, &g);
	/* The name first: "taken" is a better answer than "no memory". */
	err = tsi_sockets_open(&s->sockets, name);
	if (!err)
		err = make_event(s);
	if (!err)
		err = make_base(s, &o, &g, &incarnation);
	if (!err)
		keep_record(s, &o, incarnation);
	if (!err)
		err = tsi_control_start(s);
	if (err)
		goto err_close;
	*out = s;
	return 0;

err_close:
	tsock_serve_close(s);
	return err;
}

void tsock_serve_close(tsock_server *s)
{
	bool all;

	if (!s)
		return;
	if (s->has_thread) {
		tsock_serve_stop(s);
		pthread_join(s->thread, NULL);
	}
	tsi_tables_close(&s->tables);
	tsi_sync_lock(&s->sync);
	/* A stream that has failed, or ended, has nothing to go on with.  Who
	 * sees that it is closed may write into the record. */
	tsi_readers_leave_record(&s->readers,
				 !tsi_gate_failure(&s->gate) &&
					 !tsi_readers_over(&s->readers));
	tsi_gate_close(&s->gate);
	tsi_readers_drop_all(&s->readers, "is left behind");
	tsi_handshake_close(&s->handshake);
	all = tsi_view_table_close(&s->views);
	tsi_sync_unlock(&s->sync);
	tsi_sockets_close(&s->sockets);
	if (s->event >= 0)
		close(s->event);
	/* A thread that a GPU keeps may use the rest of it any time. */
	if (!all)
		return;
	tsi_view_table_destroy_base(&s->views);
	tsi_sync_fini(&s->sync);
	tsi_production_fini(&s->production);
	tsi_messages_fini(&s->messages);
	tsi_readers_fini(&s->readers);
	free(s->bounds);
	free(s);
	tsi_log_stop();
}
