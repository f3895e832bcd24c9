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
	uint32_t fanout, gpu_transport;
	uint64_t memory, gpu_memory;
	bool sequential;
	/* Called by the producer before its first sample, and at its end. */
	void (*served)(tsock_server *s, const struct source *src);
	void (*closed)(void);
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
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t x = mix(s * 4099 + i / 8);

		memcpy(p + i, &x, bytes - i < 8 ? bytes - i : 8);
	}
}

static inline bool payload_is(const uint8_t *p, uint32_t bytes, uint64_t s)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t x = mix(s * 4099 + i / 8);

		if (memcmp(p + i, &x, bytes - i < 8 ? bytes - i : 8))
			return false;
	}
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
	o.gpu_transport = src->gpu_transport;
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

/* Those that were not waited for. */
static struct {
	pid_t pid[64];
	unsigned n;
} children;

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
		children.n = 0;
	} else if (children.n < 64) {
		children.pid[children.n++] = pid;
	}
	return pid;
}

static inline pid_t start_producer(const struct source *src)
{
	pid_t pid = spawn();

	if (pid == 0) {
		tsock_server *s = serve(src);

		if (src->served)
			src->served(s, src);
		produce(s, src);
		while (!tsock_serve_drained(s))
			pause_us(10000);
		tsock_serve_close(s);
		if (src->closed)
			src->closed();
		_exit(0);
	}
	return pid;
}

static inline int ended(pid_t pid)
{
	int status, rc;

	do
		rc = waitpid(pid, &status, 0);
	while (rc < 0 && errno == EINTR);
	for (unsigned i = 0; i < children.n; i++)
		if (children.pid[i] == pid)
			children.pid[i] = children.pid[--children.n];
	if (rc < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

static inline void kill_and_reap(pid_t pid)
{
	siginfo_t info;

	/* Once it was waited for, the number may be anybody's. */
	if (!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
		kill(pid, SIGKILL);
	ended(pid);
}

/* A test that failed leaves its children to this. */
static inline int end_children(void **state)
{
	(void)state;
	while (children.n)
		kill_and_reap(children.pid[children.n - 1]);
	return 0;
}

/* ---- what consumers are handed ---- */

/* Die unless these are samples seq .. seq+n-1, whole and unchanged. */
static inline void check_samples(const struct source *src, const char *who,
				 uint64_t seq, uint64_t n,
				 const uint8_t *payload, const int64_t *label,
				 const int64_t *index)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t q = seq + i;

		if (label[i] != (int64_t)q)
			die("%s: label %lld at place of %llu", who,
			    (long long)label[i], (unsigned long long)q);
		if (index[i] != (int64_t)index_of(src, q))
			die("%s: wrong index at %llu", who,
			    (unsigned long long)q);
		if (!payload_is(payload + i * src->payload, src->payload, q))
			die("%s: torn sample %llu", who, (unsigned long long)q);
	}
}

/* An epoch as one consumer sees it. */
struct tally {
	const struct source *src;
	uint32_t batch, flags;
	uint64_t first, want, got, full; /* want: the next; full: batches */
	uint8_t *seen;
};

static inline void tally_begin(struct tally *y, const struct source *src,
			       uint32_t batch, uint32_t flags)
{
	*y = (struct tally){ .src = src, .batch = batch, .flags = flags };
	y->first = y->want = UINT64_MAX;
	y->seen = calloc(src->n, 1);
	need(y->seen);
}

/* A batch: the next samples, none of which came before. */
static inline void tally_add(struct tally *y, const tsock_batch *b)
{
	uint64_t seq = tsock_batch_seq(b), c = tsock_batch_count(b);

	if (y->want == UINT64_MAX)
		y->first = y->want = seq;
	if (seq != y->want)
		die("batch %u: %llu follows %llu", y->batch,
		    (unsigned long long)seq, (unsigned long long)y->want);
	need(c >= 1 && c <= y->batch);
	for (uint64_t i = 0; i < c; i++)
		if (y->seen[index_of(y->src, seq + i)]++)
			die("batch %u: index %llu twice", y->batch,
			    (unsigned long long)index_of(y->src, seq + i));
	y->want = seq + c;
	y->got += c;
	y->full += c == y->batch;
}

/* It is over, and was whole unless it began in the middle. */
static inline void tally_end(struct tally *y, bool whole)
{
	uint64_t n = y->src->n;

	free(y->seen);
	if (y->flags & TSOCK_DROP_LAST)
		need(y->got == n / y->batch * y->batch &&
		     y->full * y->batch == y->got);
	else if (whole)
		need(y->got == n);
	else
		need(y->got >= 1 && y->got <= n);
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
	char who[32];

	snprintf(who, sizeof(who), "batch %u", r->batch);
	check_samples(r->src, who, tsock_batch_seq(b) + from,
		      tsock_batch_count(b) - from,
		      payload + from * r->src->payload, label + from,
		      index + from);
}

/* Read one epoch; every sample must come exactly once, in stream order. */
static inline void read_epoch(const struct reader *r, tsock *t)
{
	struct tally y;
	tsock_batch *b;
	int err;

	tally_begin(&y, r->src, r->batch, r->flags);
	while ((err = tsock_next(t, -1, &b)) == 0) {
		tally_add(&y, b);
		check_batch(r, b, 0);
		if (r->scribble)
			memset(tsock_batch_data_mut(b, 0), 0xee,
			       tsock_batch_count(b) * r->src->payload);
		if (r->hold_us)
			pause_us(r->hold_us);
		if (!r->scribble)
			check_batch(r, b, 0);
		tsock_batch_release(b);
	}
	if (err != TSOCK_EEPOCH)
		die("batch %u: next: %s", r->batch, tsock_errmsg());
	tally_end(&y, r->join != TSOCK_JOIN_NOW);
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
