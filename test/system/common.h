/*
 * common.h - real processes for the system tests: a producer of made-up
 * samples, and consumers that check every byte.
 *
 * Sample s of a stream of N has index perm(s), a label and a payload that are
 * functions of s alone; so whatever a consumer is handed can be checked without
 * asking anybody.  Checks in a child print what was wrong and exit 1.
 */
#ifndef TEST_SYSTEM_COMMON_H
#define TEST_SYSTEM_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tsock/tsock.h"

#define die(...) \
	do { \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		_exit(1); \
	} while (0)
#define need(cond) \
	do { \
		if (!(cond)) \
			die("not so: %s (%s)", #cond, tsock_errmsg()); \
	} while (0)

struct source {
	const char *name;
	uint64_t n, epochs;
	uint32_t ring, max_batch, window, segments, min_consumers;
	uint32_t payload; /* bytes of the payload field */
	uint32_t slow_ms; /* kill the slow; 0: block */
	uint32_t pace_us; /* a pause for each sample */
	uint32_t image;   /* side of an image field; 0: none */
	uint32_t workers; /* 0 means 1 */
	uint32_t fanout, gpu_path;
	uint64_t memory, gpu_memory;
	bool sequential;
};

static inline uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* A permutation of 0..n-1 that differs from epoch to epoch; with segments,
 * within each segment only. */
static inline uint64_t index_of(const struct source *src, uint64_t s)
{
	uint64_t e = s / src->n, place = s % src->n, lo = 0, len = src->n;
	uint32_t k = src->segments ? src->segments : 1;

	for (uint32_t i = 0; i < k; i++) {
		uint64_t a = src->n * i / k, b = src->n * (i + 1) / k;

		if (a <= place && place < b) {
			lo = a;
			len = b - a;
		}
	}
	return lo + (place - lo + mix(e) % len) % len;
}

static inline void fill_payload(uint8_t *p, uint32_t bytes, uint64_t s)
{
	for (uint32_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(mix(s * 4099 + i / 8) >> (i % 8 * 8));
}

static inline bool payload_is(const uint8_t *p, uint32_t bytes, uint64_t s)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (p[i] != (uint8_t)(mix(s * 4099 + i / 8) >> (i % 8 * 8)))
			return false;
	return true;
}

static inline void pause_us(unsigned us)
{
	struct timespec ts = { us / 1000000, (long)(us % 1000000) * 1000 };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static inline void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	if (level <= TSOCK_LOG_WARN || getenv("TEST_VERBOSE"))
		fprintf(stderr, "[%d] %s\n", (int)getpid(), line);
}

static inline tsock_server *serve(const struct source *src)
{
	struct tsock_field f[] = {
		{ .name = "payload",
		  .dtype = TSOCK_U8,
		  .ndim = 1,
		  .shape = { src->payload } },
		{ .name = "label", .dtype = TSOCK_I64 },
		{ .name = "index", .dtype = TSOCK_I64 },
		{ .name = "image",
		  .dtype = TSOCK_U8,
		  .flags = TSOCK_FIELD_IMAGE,
		  .ndim = 3,
		  .shape = { src->image, src->image, 3 } },
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s;

	o.fields = f;
	o.nfields = src->image ? 4 : 3;
	o.epoch_len = src->n;
	o.epochs = src->epochs;
	o.ring = src->ring;
	o.max_batch = src->max_batch;
	o.join_window = src->window;
	o.segments = src->segments;
	o.min_consumers = src->min_consumers;
	o.sequential = src->sequential;
	o.slow = src->slow_ms ? TSOCK_SLOW_KILL : TSOCK_SLOW_BLOCK;
	o.slow_ms = src->slow_ms;
	o.memory = src->memory;
	o.fanout = src->fanout;
	o.gpu_path = src->gpu_path;
	o.gpu_memory = src->gpu_memory;
	if (tsock_serve_open(src->name, &o, &s))
		die("serve: %s", tsock_errmsg());
	return s;
}

static inline void write_sample(tsock_server *s, const struct source *src,
				uint64_t q)
{
	int64_t *label = tsock_serve_slot(s, 1, q);
	int64_t *index = tsock_serve_slot(s, 2, q);

	fill_payload(tsock_serve_slot(s, 0, q), src->payload, q);
	*label = (int64_t)q;
	*index = (int64_t)index_of(src, q);
	if (src->image)
		fill_payload(tsock_serve_slot(s, 3, q),
			     src->image * src->image * 3, q ^ 77);
}

/* Make samples until the stream ends. */
static inline void produce(tsock_server *s, const struct source *src)
{
	uint64_t first;
	int n;

	while ((n = tsock_serve_claim(s, 4, -1, &first)) > 0) {
		/* Out of order, as workers finish. */
		for (int i = n; i-- > 0;) {
			if (src->pace_us)
				pause_us(src->pace_us);
			write_sample(s, src, first + (uint64_t)i);
			tsock_serve_commit(s, first + (uint64_t)i, 1);
		}
	}
}

/* A child; it dies with its parent. */
static inline pid_t spawn(void)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		tsock_set_logger(log_line, NULL);
	}
	return pid;
}

static inline pid_t start_producer(const struct source *src)
{
	pid_t pid = spawn();

	if (pid == 0) {
		tsock_server *s = serve(src);

		produce(s, src);
		while (!tsock_serve_drained(s))
			pause_us(10000);
		tsock_serve_close(s);
		_exit(0);
	}
	return pid;
}

static inline int ended(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

static inline void kill_and_reap(pid_t pid)
{
	kill(pid, SIGKILL);
	ended(pid);
}

/* ---- consumers ---- */

struct reader {
	const struct source *src;
	uint32_t batch, join, between, flags;
	uint32_t epochs;   /* to read */
	uint32_t hold_us;  /* keep each batch so long */
	uint32_t delay_us; /* before joining */
	bool scribble;     /* write over every batch */
};

static inline tsock *connect_reader(const struct reader *r)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = r->batch;
	o.join = r->join;
	o.between = r->between;
	o.flags = r->flags;
	o.timeout_ms = 20000;
	if (tsock_open(r->src->name, &o, &t))
		die("open: %s", tsock_errmsg());
	return t;
}

static inline void check_batch(const struct reader *r, const tsock_batch *b,
			       uint64_t from)
{
	const uint8_t *payload = tsock_batch_data(b, 0);
	const int64_t *label = tsock_batch_data(b, 1);
	const int64_t *index = tsock_batch_data(b, 2);
	uint64_t n = tsock_batch_count(b), seq = tsock_batch_seq(b);

	for (uint64_t i = from; i < n; i++) {
		uint64_t at = i * r->src->payload;

		if (label[i] != (int64_t)(seq + i))
			die("batch %u: label %lld at place of %llu", r->batch,
			    (long long)label[i], (unsigned long long)(seq + i));
		if (index[i] != (int64_t)index_of(r->src, seq + i))
			die("batch %u: wrong index at %llu", r->batch,
			    (unsigned long long)(seq + i));
		if (!payload_is(payload + at, r->src->payload, seq + i))
			die("batch %u: torn sample %llu", r->batch,
			    (unsigned long long)(seq + i));
	}
}

/* Read one epoch; every sample must come exactly once, in stream order. */
static inline void read_epoch(const struct reader *r, tsock *t)
{
	uint64_t n = r->src->n, want = UINT64_MAX, got = 0, full = 0;
	uint8_t *seen = calloc(n, 1);
	tsock_batch *b;
	int err;

	need(seen);
	while ((err = tsock_next(t, -1, &b)) == 0) {
		uint64_t seq = tsock_batch_seq(b), c = tsock_batch_count(b);
		const int64_t *index = tsock_batch_data(b, 2);

		if (want != UINT64_MAX && seq != want)
			die("batch %u: %llu follows %llu", r->batch,
			    (unsigned long long)seq, (unsigned long long)want);
		want = seq + c;
		need(c >= 1 && c <= r->batch);
		full += c == r->batch;
		check_batch(r, b, 0);
		for (uint64_t i = 0; i < c; i++) {
			need(index[i] >= 0 && index[i] < (int64_t)n);
			if (seen[index[i]]++)
				die("batch %u: index %lld twice", r->batch,
				    (long long)index[i]);
		}
		got += c;
		if (r->scribble)
			memset(tsock_batch_data_mut(b, 0), 0xee,
			       c * r->src->payload);
		if (r->hold_us)
			pause_us(r->hold_us);
		if (!r->scribble)
			check_batch(r, b, 0);
		tsock_batch_release(b);
	}
	if (err != TSOCK_EEPOCH)
		die("batch %u: next: %s", r->batch, tsock_errmsg());
	if (r->flags & TSOCK_DROP_LAST)
		need(got == n / r->batch * r->batch && full * r->batch == got);
	else if (r->join != TSOCK_JOIN_NOW)
		need(got == n);
	free(seen);
}

static inline void read_all(const struct reader *r)
{
	tsock *t;

	if (r->delay_us)
		pause_us(r->delay_us);
	t = connect_reader(r);
	for (uint32_t e = 0; e < r->epochs; e++) {
		int err = tsock_begin(t);

		if (err == TSOCK_EENDED)
			break;
		if (err)
			die("begin: %s", tsock_errmsg());
		read_epoch(r, t);
	}
	tsock_close(t);
}

static inline pid_t start_reader(const struct reader *r)
{
	pid_t pid = spawn();

	if (pid == 0) {
		read_all(r);
		_exit(0);
	}
	return pid;
}

/* The state of a stream, or fail. */
static inline struct tsock_stats stats_of(const char *name)
{
	struct tsock_stats st = { .size = sizeof(st) };
	int err = 0;

	/* It may be about to begin. */
	for (int i = 0; i < 1000; i++) {
		err = tsock_query(name, 5000, &st);
		if (err != TSOCK_ENOPROD)
			break;
		pause_us(10000);
	}
	assert_int_equal(err, 0);
	return st;
}

/* Wait until the stream has so many readers; fails after 10 s. */
static inline void wait_readers(const char *name, uint32_t n)
{
	for (int i = 0; i < 1000; i++) {
		if (stats_of(name).consumers == n)
			return;
		pause_us(10000);
	}
	fail_msg("the stream never had %u readers", n);
}

/* A fresh folder for the sockets unless the runner has made one. */
static inline void own_folder(void)
{
	static char folder[] = "/tmp/tsock-test-XXXXXX";

	if (getenv("TSOCK_DIR"))
		return;
	if (!mkdtemp(folder) || setenv("TSOCK_DIR", folder, 1)) {
		perror(folder);
		exit(1);
	}
}

#endif
