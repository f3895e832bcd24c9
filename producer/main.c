/* SPDX-License-Identifier: MIT */
/*
 * main.c - tsock-producer: options, signals, main, and nothing else.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/check.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/node.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/serve.h"
#include "cli/stop.h"
#include "cli/supervise.h"
#include "cli/transform.h"
#include "tsock/tsock.h"

static sigset_t stopping;
static int64_t stopped_at; /* when the first signal was taken */

/* Before the stream is there, only its name has to be cleaned up. */
static void exit_now(int sig)
{
	(void)sig;
	tsi_serve_abandon();
	_exit(TSI_EXIT_OK);
}

/*
 * SIGTERM within a second is the same one: for its parent's death
 * (PR_SET_PDEATHSIG) a process gets one signal for each thread of the parent.
 */
static void end_if_again(int sig)
{
	if (tsi_now_ns() - stopped_at < 1000000000)
		return;
	signal(sig, SIG_DFL);
	raise(sig);
}

/* From the first signal on, a second one ends the process at once. */
static void let_second_end(void)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP };

	stopped_at = tsi_now_ns();
	for (unsigned i = 0; i < 3; i++) {
		struct sigaction act = { .sa_handler = SIG_DFL };

		if (all[i] == SIGTERM) {
			act.sa_handler = end_if_again;
			act.sa_flags = SA_RESTART;
		}
		if (sigismember(&stopping, all[i]))
			sigaction(all[i], &act, NULL);
	}
	pthread_sigmask(SIG_UNBLOCK, &stopping, NULL);
}

/* The signal that asks to stop, waited for at most ms; 0: none came. */
static int stop_signal(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };
	int sig;

	pthread_sigmask(SIG_BLOCK, &stopping, NULL);
	sig = sigtimedwait(&stopping, NULL, &ts);
	if (sig <= 0)
		return 0;
	let_second_end();
	return sig;
}

static void set_signals(void)
{
	struct sigaction act = { .sa_handler = exit_now }, old;

	sigemptyset(&stopping);
	sigaddset(&stopping, SIGINT);
	sigaddset(&stopping, SIGTERM);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	/* nohup means what it says. */
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
		sigaddset(&stopping, SIGHUP);
		sigaction(SIGHUP, &act, NULL);
	}
}

/* The exit code, or another if standard output could not be written. */
static int flushed(int code)
{
	if ((!ferror(stdout) && fflush(stdout) == 0) || code != TSI_EXIT_OK)
		return code;
	fprintf(stderr, "tsock-producer: standard output: %s\n",
		strerror(errno));
	return TSI_EXIT_SYSTEM;
}

static int list(void)
{
	int err = tsi_report_list();

	if (err) {
		fprintf(stderr, "tsock-producer: %s\n", tsock_errmsg());
		return tsi_serve_exit(err);
	}
	return TSI_EXIT_OK;
}

static void print_line(void *arg, const char *line)
{
	(void)arg;
	puts(line);
}

/* Log lines have a thread: serving never waits for a reader of stderr. */
static int serve(const struct tsi_options *o)
{
	int code;

	tsi_console_init((int)o->log_level, !o->quiet);
	tsock_set_logger(tsi_console_log, NULL);
	if (tsi_log_start()) {
		fprintf(stderr, "tsock-producer: %s\n", tsock_errmsg());
		return TSI_EXIT_SYSTEM;
	}
	for (unsigned i = 0; i < 2 && o->warning[i][0]; i++)
		tsi_log(TSOCK_LOG_WARN, "%s", o->warning[i]);
	if (o->numa_node != TSI_NODE_ANY)
		tsi_log(TSOCK_LOG_INFO,
			"threads and memory are on NUMA node %" PRIu64,
			o->numa_node);
	code = tsi_serve(o, stop_signal);
	tsi_log_stop();
	return code;
}

static int run_mode(const struct tsi_options *o)
{
	int code;

	switch (o->mode) {
	case TSI_RUN_HELP:
		tsi_help_print(stdout);
		return TSI_EXIT_OK;
	case TSI_RUN_TRANSFORMS:
		tsi_transform_help(stdout);
		return TSI_EXIT_OK;
	case TSI_RUN_VERSION:
		tsi_report_version();
		return TSI_EXIT_OK;
	case TSI_RUN_LIST:
		return list();
	case TSI_RUN_STOP:
		return tsi_stop_stream(o->stop, o->force);
	case TSI_RUN_DESCRIBE:
		tsi_report_describe(o);
		return TSI_EXIT_OK;
	case TSI_RUN_DEVICES:
		tsock_devices(print_line, NULL);
		return TSI_EXIT_OK;
	default:
		break;
	}
	if (o->numa_node != TSI_NODE_ANY && tsi_node_use("", o->numa_node)) {
		fprintf(stderr, "tsock-producer: %s\n", tsock_errmsg());
		return TSI_EXIT_MISFIT;
	}
	/* A stream goes on when its log has no reader any more. */
	if (o->mode == TSI_RUN_SERVE)
		signal(SIGPIPE, SIG_IGN);
	if (o->mode == TSI_RUN_SERVE && o->supervise &&
	    tsi_supervise(o->name, &stopping, &code))
		return code;
	return serve(o);
}

int main(int argc, char **argv)
{
	struct tsi_options o;
	int code;

	tsi_check_stdio();
	set_signals();
	if (tsi_options_parse(&o, argc, argv)) {
		fprintf(stderr, "tsock-producer: %s\n", tsock_errmsg());
		return TSI_EXIT_USAGE;
	}
	code = flushed(run_mode(&o));
	tsi_options_fini(&o);
	return code;
}
