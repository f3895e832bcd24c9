/*
 * serve.c - one stream from its first to its last moment: checks, scan,
 * rings, workers, and the loop that watches them.
 */
#include "run/serve.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/limits.h"
#include "cli/advice.h"
#include "cli/check.h"
#include "cli/console.h"
#include "cli/liveline.h"
#include "cli/process.h"
#include "cli/report.h"
#include "run/pool.h"

#define TICK_MS 50
#define LOOK_MS 250 /* between two counts of connections */
#define LIVE_MS 500
#define PLAIN_MS 10000
#define FAREWELL_MS 2000

int tsi_exit_of(int err)
{
	switch (err) {
	case TSOCK_EDATA:
		return TSI_EXIT_NO_INPUT;
	case TSOCK_EEXIST:
		return TSI_EXIT_TAKEN;
	case TSOCK_EARG:
		return TSI_EXIT_MISFIT;
	default:
		return TSI_EXIT_SYSTEM;
	}
}

/* A stream that is being served. */
struct service {
	struct tsi_plan plan;
	struct tsi_pool *pool;
	tsock_server *server;
	struct tsock_serve_opts opts;
	const char **classes;
	struct tsi_live last; /* when the line was last made */
	int64_t busy_ms;      /* when there was a consumer, or we began */
	int64_t looked_ms;    /* when connections were counted last ... */
	int connected;        /* ... and how many there were */
	bool said;            /* that they are what we stay for */
	int64_t start_ns;
};

static const struct tsock_field fields[TSI_FIELDS] = {
	[TSI_FIELD_IMAGE] = { .name = "image",
			      .dtype = TSOCK_U8,
			      .flags = TSOCK_FIELD_IMAGE,
			      .ndim = 3 },
	[TSI_FIELD_LABEL] = { .name = "label", .dtype = TSOCK_I64 },
	[TSI_FIELD_INDEX] = { .name = "index", .dtype = TSOCK_I64 },
	[TSI_FIELD_BOX] = { .name = "box",
			    .dtype = TSOCK_I32,
			    .ndim = 1,
			    .shape = { 5 } },
};

/* ------------------------------------------------------------------------
 * Before the stream
 */

/* The ring's sizes hang on the options alone, not on the data set. */
static int check_memory(struct service *v, struct tsock_field *schema)
{
	const struct tsi_options *o = v->plan.options;
	struct tsock_serve_opts *so = &v->opts;
	int err;

	memcpy(schema, fields, sizeof(fields));
	schema[TSI_FIELD_IMAGE].shape[0] = o->size;
	schema[TSI_FIELD_IMAGE].shape[1] = o->size;
	schema[TSI_FIELD_IMAGE].shape[2] = 3;
	*so = (struct tsock_serve_opts)TSOCK_SERVE_OPTS_INIT;
	so->nfields = TSI_FIELDS;
	so->fields = schema;
	so->epoch_len = 1;
	so->epochs = o->epochs;
	so->ring = (uint32_t)o->ring;
	so->join_window = (uint32_t)o->join_window;
	so->max_batch = (uint32_t)o->max_batch;
	so->min_consumers = (uint32_t)o->min_consumers;
	so->sequential = o->order == TSI_SEQUENTIAL;
	so->slow = o->slow_ms ? TSOCK_SLOW_KILL : TSOCK_SLOW_BLOCK;
	so->slow_ms =
		(uint32_t)(o->slow_ms < UINT32_MAX ? o->slow_ms : UINT32_MAX);
	so->memory = o->memory;
	so->gpu_memory = o->gpu_memory;
	so->fanout = (uint32_t)o->fanout;
	so->gpu_transport = (uint32_t)o->gpu_transport;
	if (o->sharded) {
		so->shard = o->rank;
		so->shards = o->world;
	}
	err = tsock_serve_geometry(so, &v->plan.geometry);
	if (err)
		return err;
	return tsi_check_memory(o, &v->plan.geometry);
}

/*
 * All that can be said before the scan: the same for a start, --dry-run and
 * --check-config.
 */
static int check(struct service *v, struct tsock_field *schema)
{
	const struct tsi_options *o = v->plan.options;
	int err;

	v->plan.threads =
		o->threads ? (unsigned)o->threads : tsi_limits_cpus("");
	err = check_memory(v, schema);
	if (!err)
		err = tsi_check_image_memory(o, v->plan.geometry.ring_bytes,
					     &v->plan.image_memory);
	if (!err)
		err = tsi_check_descriptors(v->plan.threads);
	if (!err)
		err = tsi_check_root(o);
	if (!err)
		err = tsi_check_reader(o);
	if (!err)
		err = tsi_check_folder(o);
	return err ? err : tsi_check_name(o);
}

static int scan(struct service *v)
{
	int64_t start = tsi_now_ns();
	int err = tsi_sampler_open(v->plan.options, &v->plan.sampler);

	if (err)
		return err;
	v->plan.scan_seconds = (double)(tsi_now_ns() - start) / 1e9;
	tsi_check_splits(v->plan.options, tsi_sampler_index(v->plan.sampler));
	tsi_advice_classes(v->plan.options, tsi_sampler_index(v->plan.sampler));
	return 0;
}

static int open_server(struct service *v)
{
	struct tsi_sampler *s = v->plan.sampler;
	const struct tsi_index *x = tsi_sampler_index(s);
	uint32_t n = tsi_index_classes(x);

	v->classes = calloc(n, sizeof(*v->classes));
	if (!v->classes)
		return tsi_err(TSOCK_ENOMEM, "no memory for %u classes", n);
	for (uint32_t i = 0; i < n; i++)
		v->classes[i] = tsi_index_class(x, i);
	v->opts.classes = v->classes;
	v->opts.nclasses = n;
	v->opts.epoch_len = tsi_sampler_epoch_len(s);
	v->opts.dataset_len = tsi_index_count(x);
	v->opts.segments = tsi_sampler_segments(s);
	v->opts.segment_bounds = tsi_sampler_bounds(s);
	return tsock_serve_open(v->plan.options->name, &v->opts, &v->server);
}

/* ------------------------------------------------------------------------
 * While it is served
 */

static void look(const struct service *v, struct tsi_live *l)
{
	struct tsi_pool_times t;

	l->stats.size = sizeof(l->stats);
	tsock_serve_stats(v->server, &l->stats);
	tsi_pool_times(v->pool, &t);
	l->io_ns = t.io_ns;
	l->decode_ns = t.decode_ns;
	l->now_ns = tsi_now_ns();
}

/* For the line alone: it reads a file for each consumer. */
static void look_who_is_stopped(struct tsi_live *l)
{
	for (uint32_t i = 0; i < l->stats.nrows; i++)
		l->stopped[i] = tsi_process_stopped(l->stats.row[i].pid);
}

/* A line on a terminal every half second, in a log every ten. */
static void tell(struct service *v, struct tsi_live *now)
{
	const struct tsi_options *o = v->plan.options;
	bool live = tsi_console_live();
	struct tsi_live_style style = {
		.width = live ? tsi_console_width() : 0,
		.colour = tsi_console_colour(),
		.threads = v->plan.threads,
		.min_consumers = (uint32_t)o->min_consumers,
	};
	char line[1600];

	if (!o->live || now->now_ns - v->last.now_ns <
				(live ? LIVE_MS : PLAIN_MS) * INT64_C(1000000))
		return;
	look_who_is_stopped(now);
	tsi_live_line(line, sizeof(line), &v->last, now, &style);
	if (live)
		tsi_console_show(line);
	else if (now->stats.consumers || v->last.stats.consumers)
		tsi_log(TSOCK_LOG_INFO, "%s", line);
	v->last = *now;
}

/*
 * A loader that is connected is no reader yet, or between two epochs.  Whoever
 * asks for statistics is connected for a moment, so once is not enough.
 */
static void note_busy(struct service *v, const struct tsi_live *now)
{
	const struct tsi_options *o = v->plan.options;
	int64_t now_ms = now->now_ns / 1000000;
	int before = v->connected;

	if (now->stats.consumers) {
		v->busy_ms = now_ms;
		v->said = false;
		return;
	}
	if (!o->exit_idle || now_ms - v->looked_ms < LOOK_MS)
		return;
	v->looked_ms = now_ms;
	v->connected = tsock_serve_connected(v->server);
	if (!before || !v->connected)
		return;
	v->busy_ms = now_ms;
	if (!v->said)
		tsi_log(TSOCK_LOG_INFO,
			"nobody reads, and %d loader%s connected: "
			"--exit-when-idle counts from when they are closed",
			v->connected, v->connected == 1 ? " is" : "s are");
	v->said = true;
}

/* Why the stream is over; NULL while it isn't. */
static const char *ending(struct service *v, const struct tsi_live *now)
{
	const struct tsi_options *o = v->plan.options;
	int64_t now_ms = now->now_ns / 1000000;

	if (tsock_serve_drained(v->server))
		return "the last epoch is over";
	note_busy(v, now);
	if (o->exit_idle && !v->connected &&
	    now_ms - v->busy_ms >= (int64_t)o->exit_idle_ms)
		return "no consumer, and no loader connected, any more";
	return NULL;
}

/* Consumers that are left get the reason before the rings are closed. */
static void say_farewell(struct service *v)
{
	int64_t until = tsi_now_ms() + FAREWELL_MS;
	struct tsi_live now;
	struct timespec ts = { 0, TICK_MS * 1000000 };

	do {
		look(v, &now);
		if (!now.stats.consumers)
			return;
		nanosleep(&ts, NULL);
	} while (tsi_now_ms() < until);
}

static int watch(struct service *v, int (*stop_signal)(int ms))
{
	const char *why = NULL;
	int signal = 0;

	look(v, &v->last);
	v->start_ns = v->last.now_ns;
	v->busy_ms = v->start_ns / 1000000;
	while (!why && !signal) {
		struct tsi_live now;

		signal = stop_signal(TICK_MS);
		if (tsi_pool_error(v->pool)) {
			tsi_log(TSOCK_LOG_ERROR, "the stream stops: %s",
				tsi_pool_error(v->pool));
			say_farewell(v);
			return TSI_EXIT_STREAM;
		}
		look(v, &now);
		why = ending(v, &now);
		tell(v, &now);
	}
	tsi_console_show(NULL);
	if (signal)
		tsi_log(TSOCK_LOG_INFO, "%s: closing", strsignal(signal));
	else
		tsi_log(TSOCK_LOG_INFO, "%s: closing", why);
	return TSI_EXIT_OK;
}

static void finish(struct service *v)
{
	struct tsi_live now;

	tsi_console_show(NULL);
	look(v, &now);
	tsi_report_end(&v->plan, &now.stats,
		       (double)(now.now_ns - v->start_ns) / 1e9);
}

/* ------------------------------------------------------------------------
 * All of it
 */

static int fail(int err)
{
	tsi_log(TSOCK_LOG_ERROR, "%s", tsock_errmsg());
	return tsi_exit_of(err);
}

static int run(struct service *v, int (*stop_signal)(int ms))
{
	int err, code;

	/* From here on signals wait until they are asked for. */
	if (stop_signal(0))
		return TSI_EXIT_OK;
	err = open_server(v);
	if (!err)
		err = tsi_pool_create(v->plan.sampler, v->plan.threads,
				      v->plan.geometry.capacity,
				      v->plan.image_memory, &v->pool);
	if (!err)
		err = tsi_pool_start(v->pool, v->server);
	if (err)
		return fail(err);
	tsi_report_start(&v->plan, v->pool);
	code = watch(v, stop_signal);
	finish(v);
	return code;
}

int tsi_serve(const struct tsi_options *o, int (*stop_signal)(int ms))
{
	struct tsock_field schema[TSI_FIELDS];
	struct service v = { .plan.options = o };
	int err, code = TSI_EXIT_OK;

	err = check(&v, schema);
	if (!err && o->mode == TSI_RUN_CHECK) {
		printf("%s: the options and %s are fine\n", o->name, o->folder);
		return TSI_EXIT_OK;
	}
	if (!err)
		err = scan(&v);
	if (err)
		code = fail(err);
	else if (o->mode == TSI_RUN_DRY)
		tsi_report_plan(&v.plan);
	else
		code = run(&v, stop_signal);
	tsi_pool_destroy(v.pool);
	tsock_serve_close(v.server);
	free(v.classes);
	tsi_sampler_close(v.plan.sampler);
	return code;
}
