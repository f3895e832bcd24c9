/* SPDX-License-Identifier: MIT */
/*
 * log.c - lines for the logger that the user set, or for $TSOCK_LOG.
 *
 * A logger may block, on a terminal that was stopped or a pipe that nobody
 * reads.  So in a process that serves a stream one thread calls the logger,
 * with no lock held, and the other threads put their lines into a queue of
 * fixed length.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"

#define LINES 128
#define LINE_BYTES 1024
/* A stop waits for a call of the logger, and for all, so long. */
#define CALL_NS INT64_C(1000000000)
#define STOP_NS INT64_C(10000000000)

struct line {
	int level;
	void (*show)(const char *line); /* NULL: the line is for the logger */
	/* Lines dropped just before this one: [1] of level debug. */
	unsigned dropped[2];
	char text[LINE_BYTES];
};

static void (*logger)(void *arg, int level, const char *line);
static void *logger_arg;
static _Atomic enum { UNKNOWN, SILENT, LOUD } logs; /* read without the lock */
static pthread_once_t asked = PTHREAD_ONCE_INIT;
static int stderr_level = -1; /* the finest that $TSOCK_LOG asks for */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more; /* a line came, or the last user stopped */
	pthread_cond_t done; /* a call of the logger, or the thread, ended */
	pthread_t thread;
	unsigned users, calls;
	bool running, calling;
	unsigned first, count;
	unsigned dropped[2]; /* since the newest line */
	struct line line[LINES];
} q = { .lock = PTHREAD_MUTEX_INITIALIZER };
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- $TSOCK_LOG: a program without a logger, looked into from outside ---- */

static const char *const level_name[] = { "error", "warn", "info", "debug" };

static void to_stderr(void *arg, int level, const char *line)
{
	(void)arg;
	if (level >= TSOCK_LOG_ERROR && level <= stderr_level)
		fprintf(stderr, "libtsock[%d] %s: %s\n", (int)getpid(),
			level_name[level], line);
}

/* A word that isn't a level shows everything: whoever set it wants to see
 * something. */
static void ask_environment(void)
{
	const char *word = secure_getenv("TSOCK_LOG");
	int level = TSOCK_LOG_ERROR;

	if (word && *word) {
		while (level < TSOCK_LOG_DEBUG &&
		       strcasecmp(word, level_name[level]))
			level++;
		stderr_level = level;
		logger = to_stderr;
	}
	atomic_store_explicit(&logs, logger ? LOUD : SILENT,
			      memory_order_relaxed);
}

static bool is_silent(void)
{
	if (atomic_load_explicit(&logs, memory_order_relaxed) == UNKNOWN)
		pthread_once(&asked, ask_environment);
	return atomic_load_explicit(&logs, memory_order_relaxed) == SILENT;
}

/* ---- the thread; with the lock held ---- */

/* Call the logger, or show(), without the lock.  Only this thread changes
 * q.calling. */
static void hand_out(const struct line *l)
{
	void (*fn)(void *, int, const char *) = logger;
	void *arg = logger_arg;

	if (!l->show && !fn)
		return;
	q.calling = true;
	q.calls++;
	pthread_mutex_unlock(&q.lock);
	if (l->show)
		l->show(l->text);
	else
		fn(arg, l->level, l->text);
	pthread_mutex_lock(&q.lock);
	q.calling = false;
	pthread_cond_broadcast(&q.done);
}

static void tell_dropped(unsigned dropped[2])
{
	for (unsigned debug = 0; debug < 2; debug++) {
		struct line l = { .level = debug ? TSOCK_LOG_DEBUG
						 : TSOCK_LOG_WARN };
		unsigned n = dropped[debug];

		dropped[debug] = 0;
		if (!n)
			continue;
		snprintf(l.text, sizeof(l.text),
			 "%u line%s of this log %s dropped: they came faster "
			 "than they could be written",
			 n, n == 1 ? "" : "s", n == 1 ? "was" : "were");
		hand_out(&l);
	}
}

static void *log_main(void *arg)
{
	struct line l;

	(void)arg;
	tsi_thread_name("tsock-log");
	pthread_mutex_lock(&q.lock);
	while (q.users || q.count || q.dropped[0] || q.dropped[1]) {
		if (q.count) {
			l = q.line[q.first];
			q.first = (q.first + 1) % LINES;
			q.count--;
			tell_dropped(l.dropped);
			hand_out(&l);
		} else if (q.dropped[0] || q.dropped[1]) {
			tell_dropped(q.dropped);
		} else {
			pthread_cond_wait(&q.more, &q.lock);
		}
	}
	q.running = false;
	pthread_cond_broadcast(&q.done);
	pthread_mutex_unlock(&q.lock);
	return NULL;
}

/* ---- starting and stopping ---- */

static void init_conditions(void)
{
	tsi_thread_cond_init(&q.more);
	tsi_thread_cond_init(&q.done);
}

/* The thread stayed with the parent, and may have held the lock. */
static void in_child(void)
{
	pthread_mutex_init(&q.lock, NULL);
	init_conditions();
	q.users = q.first = q.count = 0;
	q.dropped[0] = q.dropped[1] = 0;
	q.running = q.calling = false;
}

static void prepare_queue(void)
{
	init_conditions();
	pthread_atfork(NULL, NULL, in_child);
}

int tsi_log_start(void)
{
	int err = 0;

	pthread_once(&once, prepare_queue);
	pthread_mutex_lock(&q.lock);
	if (!q.running) {
		err = tsi_thread_start(&q.thread, log_main, NULL);
		q.running = !err;
		/* A thread that is stuck in a logger is never joined. */
		if (!err)
			pthread_detach(q.thread);
	}
	q.users += !err;
	pthread_mutex_unlock(&q.lock);
	return err;
}

/* Until the thread has ended, somebody starts again, or a call is stuck. */
static void await_end(void)
{
	int64_t end = tsi_now_ns() + STOP_NS, until;
	unsigned calls;

	do {
		calls = q.calls;
		until = tsi_now_ns() + CALL_NS;
		while (q.running && !q.users &&
		       !tsi_thread_wait(&q.done, &q.lock, until))
			;
		/* A thread that is in no call just got no CPU. */
	} while (q.running && !q.users && tsi_now_ns() < end &&
		 (!q.calling || q.calls != calls));
}

void tsi_log_stop(void)
{
	pthread_mutex_lock(&q.lock);
	if (q.users && --q.users == 0) {
		pthread_cond_signal(&q.more);
		await_end();
	}
	pthread_mutex_unlock(&q.lock);
}

/* ---- lines ---- */

/* With the lock held: an entry at the queue's end, or NULL if it is full. */
static struct line *append_line(int level)
{
	bool debug = level == TSOCK_LOG_DEBUG;
	struct line *l;

	/* Half of the queue is kept for lines above the level debug. */
	if (q.count >= (debug ? LINES / 2 : LINES))
		return NULL;
	l = &q.line[(q.first + q.count) % LINES];
	l->level = level;
	l->show = NULL;
	memcpy(l->dropped, q.dropped, sizeof(l->dropped));
	memset(q.dropped, 0, sizeof(q.dropped));
	q.count++;
	pthread_cond_signal(&q.more);
	return l;
}

void tsi_log(int level, const char *fmt, ...)
{
	void (*fn)(void *, int, const char *);
	char raw[LINE_BYTES], text[LINE_BYTES];
	struct line *l;
	va_list ap;
	void *arg;

	/* Without a logger nothing is formatted. */
	if (is_silent())
		return;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	tsi_text_printable(text, sizeof(text), raw);
	pthread_mutex_lock(&q.lock);
	fn = q.running ? NULL : logger;
	arg = logger_arg;
	if (q.running && logger) {
		l = append_line(level);
		if (l)
			strcpy(l->text, text);
		else
			q.dropped[level == TSOCK_LOG_DEBUG]++;
	}
	pthread_mutex_unlock(&q.lock);
	if (fn)
		fn(arg, level, text);
}

void tsi_log_newest(void (*show)(const char *line), const char *line)
{
	struct line *l = NULL;

	pthread_mutex_lock(&q.lock);
	if (!q.running) {
		pthread_mutex_unlock(&q.lock);
		show(line);
		return;
	}
	if (q.count)
		l = &q.line[(q.first + q.count - 1) % LINES];
	if (!l || l->show != show)
		l = append_line(TSOCK_LOG_INFO);
	if (l) {
		l->show = show;
		snprintf(l->text, sizeof(l->text), "%s", line);
	}
	pthread_mutex_unlock(&q.lock);
}

void tsock_set_logger(void (*fn)(void *arg, int level, const char *line),
		      void *arg)
{
	pthread_once(&asked, ask_environment);
	if (!fn && stderr_level >= 0)
		fn = to_stderr;
	pthread_mutex_lock(&q.lock);
	atomic_store_explicit(&logs, fn ? LOUD : SILENT, memory_order_relaxed);
	logger = fn;
	logger_arg = arg;
	/* When this returns, the old logger isn't called any more. */
	while (q.running && q.calling &&
	       !pthread_equal(q.thread, pthread_self()))
		pthread_cond_wait(&q.done, &q.lock);
	pthread_mutex_unlock(&q.lock);
}
