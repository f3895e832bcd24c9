/* SPDX-License-Identifier: MIT */
/*
 * serve.c - the command that serves: checks, scan, the stream, and the loop
 * that watches the stream and says what it does.
 */
#include "cli/serve.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "cli/advice.h"
#include "cli/check.h"
#include "cli/console.h"
#include "cli/idle.h"
#include "cli/liveline.h"
#include "cli/neighbours.h"
#include "cli/notify.h"
#include "cli/number.h"
#include "cli/report.h"
#include "run/growth.h"
#include "run/service.h"
#include "wire/address.h"
#include "wire/peer.h"

#define TICK_MS 50
#define LIVE_MS 500
#define PLAIN_MS 10000
#define SHARE_MS 1000 /* between two looks at other producers */
#define FAREWELL_MS 2000
#define GROWTH_MS 1000 /* between two looks at a data set that grows */

int tsi_serve_exit(int err)
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

struct command {
	const struct tsi_options *o;
	struct tsi_plan plan;
	struct tsi_service *service;
	struct tsi_snapshot last; /* when the live line was last made */
	struct tsi_idle idle;
	int64_t start_ns;
	struct tsi_neighbours *neighbours; /* NULL: CPUs aren't shared */
	int64_t shared_ms;                 /* when they were shared last ... */
	bool had_readers;                  /* ... and were there readers? */
	struct tsi_growth *growth;         /* NULL: the files stay */
	bool ends;           /* the stream, since the files have changed; ... */
	uint64_t next_epoch; /* ... and this is the first one with them */
	uint32_t readers;    /* the most at once, since it was said to end */
};

/* ------------------------------------------------------------------------
 * Before the stream
 */

static void plan_service(struct command *c, struct tsi_service *s)
{
	c->service = s;
	c->plan.scan_seconds = tsi_service_seconds(s);
	tsi_service_sizes(s, &c->plan.geometry);
	c->plan.sampler = tsi_service_sampler(s);
}

static int scan(struct command *c)
{
	const struct tsi_index *x;
	struct tsi_service *s;
	int err = tsi_service_open(&c->plan.pipeline, &s);

	if (err)
		return err;
	plan_service(c, s);
	err = tsi_check_ring(&c->plan.pipeline, &c->plan.geometry);
	if (err)
		return err;
	x = tsi_sampler_index(c->plan.sampler);
	tsi_check_splits(&c->o->data, x);
	tsi_advice_classes(&c->o->data, x);
	if (c->o->mode == TSI_RUN_DRY)
		tsi_report_plan(&c->plan);
	return tsi_service_check(s);
}

/* ------------------------------------------------------------------------
 * While it is served
 */

static void take_snapshot(const struct command *c, struct tsi_snapshot *l)
{
	struct tsi_pool_times t;

	l->stats.size = sizeof(l->stats);
	tsock_serve_stats(tsi_service_server(c->service), &l->stats);
	tsi_pool_times(tsi_service_pool(c->service), &t);
	l->io_ns = t.io_ns;
	l->decode_ns = t.decode_ns;
	l->now_ns = tsi_now_ns();
}

/* For the live line alone, since it reads a file for each consumer. */
static void find_stopped(struct tsi_snapshot *l)
{
	for (uint32_t i = 0; i < l->stats.nrows; i++)
		l->stopped[i] = tsi_peer_stopped(l->stats.row[i].pid);
}

/* A line on a terminal every half second, in a log every ten. */
static void show_line(struct command *c, struct tsi_snapshot *now)
{
	bool live = tsi_console_live();
	struct tsi_liveline_style style = {
		.width = live ? tsi_console_width() : 0,
		.colour = tsi_console_colour(),
		.threads = tsi_pool_limit(tsi_service_pool(c->service)),
		.all_threads = c->plan.pipeline.threads,
		.min_consumers = c->plan.pipeline.min_consumers,
	};
	char line[1600];

	if (c->o->quiet ||
	    now->now_ns - c->last.now_ns <
		    (live ? LIVE_MS : PLAIN_MS) * INT64_C(1000000))
		return;
	find_stopped(now);
	tsi_liveline_format(line, sizeof(line), &c->last, now, &style);
	if (live)
		tsi_console_show(line);
	else if (now->stats.consumers || c->last.stats.consumers)
		tsi_log(TSOCK_LOG_INFO, "%s", line);
	c->last = *now;
}

static void note_busy(struct command *c, const struct tsi_snapshot *now)
{
	int64_t now_ms = now->now_ns / 1000000;
	int n;

	tsi_idle_readers(&c->idle, now->stats.consumers, now->stats.produced,
			 now_ms);
	if (now->stats.consumers ||
	    !(c->o->given[TSI_OPTION_exit_when_idle] || c->ends) ||
	    !tsi_idle_due(&c->idle, now_ms))
		return;
	n = tsock_serve_connected(tsi_service_server(c->service));
	if (tsi_idle_connections(&c->idle, n, now_ms) &&
	    c->o->given[TSI_OPTION_exit_when_idle])
		tsi_log(TSOCK_LOG_INFO,
			"nobody reads, and %d loader%s connected: "
			"--exit-when-idle counts from when they are closed",
			n, n == 1 ? " is" : "s are");
}

static void start_sharing(struct command *c)
{
	if (tsi_neighbours_open(c->plan.pipeline.name, &c->neighbours))
		tsi_log(TSOCK_LOG_WARN,
			"CPUs are not shared with other producers: %s",
			tsock_errmsg());
}

/*
 * Tell the other producers what this one does and, if it is to find the number
 * of threads itself, let as many work as is its share of the CPUs.
 */
static void share_cpus(struct command *c, const struct tsi_snapshot *now)
{
	struct tsi_pool *pool = tsi_service_pool(c->service);
	unsigned all = c->plan.pipeline.threads, had = tsi_pool_limit(pool);
	bool readers = now->stats.consumers > 0;
	int64_t now_ms = now->now_ns / 1000000;
	unsigned share, rivals;

	if (!c->neighbours ||
	    (readers == c->had_readers && now_ms - c->shared_ms < SHARE_MS))
		return;
	c->shared_ms = now_ms;
	c->had_readers = readers;
	tsi_neighbours_tell(c->neighbours, now->stats.consumers, all, had);
	if (c->o->threads)
		return;
	share = tsi_neighbours_share(c->neighbours, &rivals);
	if (share > all)
		share = all;
	if (share == had)
		return;
	tsi_pool_set_limit(pool, share);
	tsi_neighbours_tell(c->neighbours, now->stats.consumers, all, share);
	tsi_log(TSOCK_LOG_INFO,
		"%u of %u threads work: %u other stream%s with readers", share,
		all, rivals, rivals == 1 ? "" : "s");
}

/* ------------------------------------------------------------------------
 * A data set that grows
 */

static void start_growth(struct command *c)
{
	c->ends = false;
	if (c->o->grows && tsi_growth_open(&c->plan.pipeline, c->service,
					   GROWTH_MS, &c->growth))
		tsi_log(TSOCK_LOG_WARN,
			"files that are added or removed are not noticed: %s",
			tsock_errmsg());
}

/* The files have changed: the stream ends as soon as it can. */
static void mind_growth(struct command *c, const struct tsi_snapshot *now)
{
	const struct tsi_index *x = tsi_sampler_index(c->plan.sampler);
	char was[28], is[28];
	uint32_t classes;
	uint64_t samples;
	int64_t last;

	if (c->ends && now->stats.consumers > c->readers)
		c->readers = now->stats.consumers;
	if (!c->growth || c->ends ||
	    !tsi_growth_found(c->growth, &samples, &classes))
		return;
	last = tsock_serve_end_after(tsi_service_server(c->service), 0);
	/* Readers of a producer before are awaited; or there is no next one. */
	if (last < 0 || (c->o->epochs && (uint64_t)last + 1 >= c->o->epochs))
		return;
	c->ends = true;
	c->next_epoch = (uint64_t)last + 1;
	c->idle.connected = 1;
	c->readers = now->stats.consumers;
	if (tsi_index_unlabelled(x)) {
		tsi_log(TSOCK_LOG_INFO,
			"the data set has changed: it had %s samples, and has "
			"%s",
			tsi_number_thousands(was, tsi_index_count(x)),
			tsi_number_thousands(is, samples));
		return;
	}
	tsi_log(TSOCK_LOG_INFO,
		"the data set has changed: it had %s samples in %u classes, "
		"and has %s in %u",
		tsi_number_thousands(was, tsi_index_count(x)),
		tsi_index_classes(x), tsi_number_thousands(is, samples),
		classes);
}

/* Everybody has read the last epoch of before, or nobody is there. */
static bool is_over(struct command *c, const struct tsi_snapshot *now)
{
	if (!c->ends || tsock_serve_stopped(tsi_service_server(c->service)))
		return false;
	note_busy(c, now);
	return c->idle.deserted ||
	       tsock_serve_drained(tsi_service_server(c->service));
}

/* Why the stream ends now; NULL: it goes on. */
static const char *ending(struct command *c, const struct tsi_snapshot *now)
{
	int64_t now_ms = now->now_ns / 1000000;

	if (tsock_serve_stopped(tsi_service_server(c->service)))
		return "the stream was stopped";
	if (tsock_serve_drained(tsi_service_server(c->service)))
		return "the last epoch is over";
	note_busy(c, now);
	if (c->o->given[TSI_OPTION_exit_when_idle] &&
	    tsi_idle_over(&c->idle, c->o->exit_when_idle, now_ms))
		return "no consumer, and no loader connected, any more";
	return NULL;
}

/* Wait for the consumers to get the error before the rings are closed. */
static void let_consumers_leave(struct command *c)
{
	int64_t until = tsi_now_ms() + FAREWELL_MS;
	struct tsi_snapshot now;
	struct timespec ts = { 0, TICK_MS * 1000000 };

	do {
		take_snapshot(c, &now);
		if (!now.stats.consumers)
			return;
		nanosleep(&ts, NULL);
	} while (tsi_now_ms() < until);
}

/* Until the stream ends; *grown: for the sake of the next one. */
static int watch(struct command *c, int (*stop_signal)(int ms), bool *grown)
{
	const char *why = NULL;
	int signal = 0;

	take_snapshot(c, &c->last);
	c->start_ns = c->last.now_ns;
	tsi_idle_begin(&c->idle, c->start_ns / 1000000);
	*grown = false;
	while (!why && !signal) {
		struct tsi_snapshot now;

		signal = stop_signal(TICK_MS);
		if (tsi_pool_error(tsi_service_pool(c->service))) {
			tsi_log(TSOCK_LOG_ERROR, "the stream stops: %s",
				tsi_pool_error(tsi_service_pool(c->service)));
			let_consumers_leave(c);
			return TSI_EXIT_STREAM;
		}
		/* Takes the server's lock: nobody holds that for ever. */
		take_snapshot(c, &now);
		tsi_notify_alive(now.now_ns / 1000000);
		tsi_service_tell(c->service, now.stats.produced);
		mind_growth(c, &now);
		*grown = !signal && is_over(c, &now);
		if (*grown)
			return TSI_EXIT_OK;
		why = ending(c, &now);
		share_cpus(c, &now);
		show_line(c, &now);
	}
	tsi_console_show(NULL);
	if (signal)
		tsi_log(TSOCK_LOG_INFO, "%s: closing", strsignal(signal));
	else
		tsi_log(TSOCK_LOG_INFO, "%s: closing", why);
	return TSI_EXIT_OK;
}

static void finish_command(struct command *c)
{
	struct tsi_snapshot now;

	tsi_console_show(NULL);
	take_snapshot(c, &now);
	tsi_report_cache(tsi_service_pool(c->service), now.stats.produced);
	tsi_report_end(&c->plan, &now.stats,
		       (double)(now.now_ns - c->start_ns) / 1e9);
}

/* ------------------------------------------------------------------------
 * All of it
 */

static int fail(int err)
{
	tsi_log(TSOCK_LOG_ERROR, "%s", tsock_errmsg());
	return tsi_serve_exit(err);
}

/*
 * The stream is over, and the next one of the same name begins, with the files
 * that are there now.  The name stays this process's all the time.
 */
static int start_next(struct command *c)
{
	struct tsi_service *next = tsi_growth_close(c->growth);
	struct tsi_snapshot now;

	c->growth = NULL;
	take_snapshot(c, &now);
	/* Nobody has read: then it is still the first epoch that comes. */
	if (!now.stats.produced)
		c->next_epoch--;
	finish_command(c);
	tsi_address_keep(c->plan.pipeline.name);
	tsi_service_close(c->service);
	plan_service(c, next);
	/* Evaluation reads an epoch now and then, and leaves in between. */
	if (c->plan.pipeline.order == TSOCK_ORDER_SEQUENTIAL)
		c->readers = 0;
	tsi_service_go_on(next, c->next_epoch, c->readers);
	c->had_readers = false;
	return tsi_service_start(next);
}

static int serve(struct command *c, int (*stop_signal)(int ms))
{
	bool grown;
	int err, code;

	/* From here on signals wait until they are asked for. */
	if (stop_signal(0))
		return TSI_EXIT_OK;
	err = tsi_service_start(c->service);
	if (err)
		return fail(err);
	start_sharing(c);
	tsi_report_start(&c->plan, tsi_service_pool(c->service));
	tsi_notify("READY=1\nSTATUS=serving");
	start_growth(c);
	while ((code = watch(c, stop_signal, &grown)) == TSI_EXIT_OK && grown) {
		err = start_next(c);
		if (err)
			return fail(err);
		tsi_report_start(&c->plan, tsi_service_pool(c->service));
		tsi_log(TSOCK_LOG_INFO,
			"the stream goes on with epoch %" PRIu64,
			c->next_epoch);
		start_growth(c);
	}
	tsi_notify("STOPPING=1");
	finish_command(c);
	return code;
}

/* A signal comes before or after, and tsi_serve_abandon() knows of the name. */
static int reserve_name(const char *name)
{
	sigset_t before;
	int err;

	tsi_thread_block_signals(&before);
	err = tsi_address_reserve(name);
	tsi_thread_restore_signals(&before);
	return err;
}

static void report_check(const struct command *c)
{
	const struct tsi_pipeline_opts *p = &c->plan.pipeline;

	printf("%s: the options and %s are fine\n", p->name, p->folder);
	if (c->o->direct)
		printf("%s: files are read past the page cache (--direct), so "
		       "nothing is read ahead into it\n",
		       p->name);
}

int tsi_serve(const struct tsi_options *o, int (*stop_signal)(int ms))
{
	struct command c = { .o = o };
	int err, code = TSI_EXIT_OK;

	err = tsi_check_start(o, &c.plan.pipeline, &c.plan.geometry);
	/* Before the scan, which may take long: see tsi_address_reserve(). */
	if (!err && o->mode == TSI_RUN_SERVE)
		err = reserve_name(c.plan.pipeline.name);
	/* Whether all names and labels are there is known by a scan alone. */
	if (!err && (o->mode != TSI_RUN_CHECK || o->select || o->labels))
		err = scan(&c);
	if (err)
		code = fail(err);
	else if (o->mode == TSI_RUN_CHECK)
		report_check(&c);
	else if (o->mode != TSI_RUN_DRY)
		code = serve(&c, stop_signal);
	tsi_neighbours_close(c.neighbours);
	tsi_service_close(tsi_growth_close(c.growth));
	tsi_service_close(c.service);
	tsi_address_unreserve(c.plan.pipeline.name);
	return code;
}

void tsi_serve_abandon(void)
{
	tsi_address_abandon();
}
