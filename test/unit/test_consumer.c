/*
 * test_consumer.c - the public interface of a consumer, against a server in
 * the same process, or in one that is killed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tsock/tsock.h"

#define SIZE 72 /* 15,552 bytes an image: batches from 5 on get windows */
#define BYTES (SIZE * SIZE * 3)
#define WORKERS 2
#define LONG_MS 60000 /* no test waits for so long */

/* ---- a stream ---- */

struct stream {
	tsock_server *s;
	uint64_t n;
	_Atomic uint64_t upto; /* workers stop there */
	pthread_t worker[WORKERS];
};

static uint8_t pixel(uint64_t seq)
{
	return (uint8_t)(seq * 7 + seq / 256);
}

static void make_sample(struct stream *st, uint64_t seq)
{
	int64_t index = (int64_t)(seq % st->n);

	memset(tsock_serve_slot(st->s, 0, seq), pixel(seq), BYTES);
	memcpy(tsock_serve_slot(st->s, 1, seq), &index, sizeof(index));
}

static void *work(void *arg)
{
	struct stream *st = arg;
	uint64_t first;

	for (;;) {
		int n = tsock_serve_claim(st->s, 3, -1, &first);

		if (n < 0)
			return NULL;
		for (int i = 0; i < n; i++)
			make_sample(st, first + (uint64_t)i);
		/* Not beyond what the test allows. */
		while (first >= atomic_load(&st->upto))
			if (tsock_serve_drained(st->s) < 0)
				return NULL;
		tsock_serve_commit(st->s, first, (unsigned)n);
	}
}

static const struct tsock_field fields[] = {
	{ .name = "image",
	  .dtype = TSOCK_U8,
	  .flags = TSOCK_FIELD_IMAGE,
	  .ndim = 3,
	  .shape = { SIZE, SIZE, 3 } },
	{ .name = "index", .dtype = TSOCK_I64 },
};

static struct tsock_serve_opts serve_opts(uint64_t n)
{
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;

	o.fields = fields;
	o.nfields = 2;
	o.epoch_len = n;
	o.ring = 512;
	o.max_batch = 128;
	return o;
}

static void serve(struct stream *st, const struct tsock_serve_opts *o)
{
	memset(st, 0, sizeof(*st));
	st->n = o->epoch_len;
	atomic_store(&st->upto, UINT64_MAX);
	if (tsock_serve_open("unit", o, &st->s)) {
		fprintf(stderr, "serve: %s\n", tsock_errmsg());
		abort();
	}
	for (unsigned i = 0; i < WORKERS; i++)
		if (pthread_create(&st->worker[i], NULL, work, st))
			abort();
}

static void serve_n(struct stream *st, uint64_t n)
{
	struct tsock_serve_opts o = serve_opts(n);

	serve(st, &o);
}

static void stop(struct stream *st)
{
	tsock_serve_stop(st->s);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(st->worker[i], NULL);
	tsock_serve_close(st->s);
}

/* ---- a consumer ---- */

static tsock *join(uint32_t batch, uint32_t flags)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = batch;
	o.flags = flags;
	if (tsock_open("unit", &o, &t)) {
		fprintf(stderr, "open: %s\n", tsock_errmsg());
		abort();
	}
	return t;
}

static bool good(const tsock_batch *b, uint64_t n)
{
	const uint8_t *image = tsock_batch_data(b, 0);
	const int64_t *index = tsock_batch_data(b, 1);
	uint64_t seq = tsock_batch_seq(b);

	for (uint64_t i = 0; i < tsock_batch_count(b); i++, seq++) {
		if (index[i] != (int64_t)(seq % n))
			return false;
		for (uint64_t j = 0; j < BYTES; j++)
			if (image[i * BYTES + j] != pixel(seq))
				return false;
	}
	return true;
}

struct job {
	pthread_t thread;
	uint64_t n;
	uint32_t batch, flags;
	unsigned epochs, scribble;
	char failed[256];
};

#define EXPECT(j, x) \
	do { \
		if (!(x)) { \
			snprintf((j)->failed, sizeof((j)->failed), \
				 "line %d: %s (%.150s)", __LINE__, #x, \
				 tsock_errmsg()); \
			return; \
		} \
	} while (0)

/* One epoch: every sample once, in order, in batches as large as they go. */
static void read_epoch(struct job *j, tsock *t, uint64_t *next)
{
	uint64_t done = 0, batches = 0, want = j->n;
	tsock_batch *b;
	int err;

	if (j->flags & TSOCK_DROP_LAST)
		want -= j->n % j->batch;
	EXPECT(j, tsock_begin(t) == 0);
	while ((err = tsock_next(t, 20000, &b)) == 0) {
		uint64_t n = tsock_batch_count(b);

		if (*next == UINT64_MAX)
			*next = tsock_batch_seq(b);
		EXPECT(j, tsock_batch_seq(b) == *next + done);
		EXPECT(j,
		       n == (want - done < j->batch ? want - done : j->batch));
		EXPECT(j, tsock_batch_epoch(b) == tsock_epoch(t));
		EXPECT(j, good(b, j->n));
		if (j->scribble)
			memset(tsock_batch_data_mut(b, 0), 0xaa, n * BYTES);
		tsock_batch_release(b);
		done += n;
		batches++;
	}
	EXPECT(j, err == TSOCK_EEPOCH);
	EXPECT(j, tsock_next(t, 0, &b) == TSOCK_EEPOCH);
	EXPECT(j, done == want);
	EXPECT(j, batches == tsock_epoch_batches(t));
	*next += j->n;
}

static void *consume(void *arg)
{
	struct job *j = arg;
	tsock *t = join(j->batch, j->flags);
	uint64_t next = UINT64_MAX;

	for (unsigned e = 0; e < j->epochs && !j->failed[0]; e++)
		read_epoch(j, t, &next);
	tsock_close(t);
	return NULL;
}

static void run_jobs(struct job *j, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(
			pthread_create(&j[i].thread, NULL, consume, &j[i]), 0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(j[i].thread, NULL);
	for (unsigned i = 0; i < n; i++)
		if (j[i].failed[0])
			fail_msg("batch size %u: %s", j[i].batch, j[i].failed);
}

static void every_sample_comes_once_for_any_batch_size(void **state)
{
	static const uint32_t size[] = { 1, 7, 48, 96, 100, 128 };
	struct job j[6];
	struct stream st;

	(void)state;
	for (unsigned pass = 0; pass < 3; pass++) {
		serve_n(&st, 500);
		memset(j, 0, sizeof(j));
		for (unsigned i = 0; i < 6; i++) {
			j[i].n = 500;
			j[i].batch = size[i];
			j[i].epochs = 3;
			j[i].flags = pass == 0   ? 0
				     : pass == 1 ? TSOCK_WRITABLE
				     : i % 2 ? TSOCK_WRITABLE | TSOCK_DROP_LAST
					     : TSOCK_DROP_LAST;
			j[i].scribble = j[i].flags & TSOCK_WRITABLE && i % 2;
		}
		run_jobs(j, 6);
		stop(&st);
	}
}

static void tiny_data_sets_work(void **state)
{
	static const uint64_t n[] = { 1, 2, 5, 7, 8, 63 };

	(void)state;
	for (unsigned i = 0; i < sizeof(n) / sizeof(n[0]); i++) {
		struct job j[3] = {
			{ .n = n[i], .batch = 7, .epochs = 40 },
			{ .n = n[i],
			  .batch = 1,
			  .epochs = 40,
			  .flags = TSOCK_WRITABLE },
			{ .n = n[i],
			  .batch = n[i] < 8 ? (uint32_t)n[i] : 8,
			  .epochs = 40,
			  .flags = TSOCK_DROP_LAST },
		};
		struct stream st;

		serve_n(&st, n[i]);
		run_jobs(j, 3);
		stop(&st);
	}
}

static void spinning_works(void **state)
{
	struct job j = {
		.n = 300, .batch = 32, .epochs = 2, .flags = TSOCK_SPIN
	};
	struct stream st;

	(void)state;
	serve_n(&st, 300);
	run_jobs(&j, 1);
	stop(&st);
}

static void segments_and_now_and_leave(void **state)
{
	struct tsock_serve_opts so = serve_opts(400);
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct stream st;
	tsock *t;

	(void)state;
	so.segments = 4;
	serve(&st, &so);
	o.batch_size = 30;
	o.between = TSOCK_BETWEEN_LEAVE;
	for (o.join = 0; o.join <= TSOCK_JOIN_NOW; o.join++) {
		uint64_t last = 0;

		assert_int_equal(tsock_open("unit", &o, &t), 0);
		for (unsigned e = 0; e < 3; e++) {
			uint64_t done = 0, first = 0;
			tsock_batch *b;
			int err;

			assert_int_equal(tsock_begin(t), 0);
			while (!(err = tsock_next(t, 20000, &b))) {
				if (!done)
					first = tsock_batch_seq(b);
				assert_true(good(b, 400));
				assert_int_equal(tsock_batch_seq(b),
						 first + done);
				done += tsock_batch_count(b);
				tsock_batch_release(b);
			}
			assert_int_equal(err, TSOCK_EEPOCH);
			assert_true(first >= last);
			last = first + done;
			if (o.join == TSOCK_JOIN_EPOCH)
				assert_int_equal(first % 400, 0);
			if (o.join == TSOCK_JOIN_SEGMENT)
				assert_int_equal(first % 100, 0);
			if (o.join == TSOCK_JOIN_NOW)
				assert_int_equal(last % 400, 0);
			else
				assert_int_equal(done, 400);
		}
		tsock_close(t);
	}
	stop(&st);
}

static tsock_batch *next(tsock *t)
{
	tsock_batch *b;
	int err = tsock_next(t, 20000, &b);

	if (err)
		fail_msg("tsock_next: %s: %s", tsock_strerror(err),
			 tsock_errmsg());
	return b;
}

static void breaking_off_goes_on_at_the_next_epoch(void **state)
{
	struct stream st;
	tsock_batch *b;
	tsock *t;

	(void)state;
	serve_n(&st, 300);
	t = join(50, 0);
	assert_int_equal(tsock_epoch(t), UINT64_MAX);
	for (unsigned e = 0; e < 5; e++) {
		assert_int_equal(tsock_begin(t), 0);
		b = next(t);
		assert_int_equal(tsock_batch_seq(b), e * 300);
		assert_int_equal(tsock_epoch(t), e);
		tsock_batch_release(b);
		tsock_batch_release(next(t));
	}
	/* All batches taken, EEPOCH not heard: that epoch is finished. */
	for (unsigned i = 2; i < 6; i++)
		tsock_batch_release(next(t));
	assert_int_equal(tsock_begin(t), 0);
	b = next(t);
	assert_int_equal(tsock_batch_seq(b), 5 * 300);
	tsock_batch_release(b);
	tsock_leave(t);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EARG);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(next(t));
	tsock_close(t);
	stop(&st);
}

static void all_batches_of_some_epochs_can_be_kept(void **state)
{
	enum { BATCHES = 4 * 10 };
	tsock_batch *b[BATCHES], *none;
	unsigned n = 0;
	struct stream st;
	struct job other = { .n = 500, .batch = 96, .epochs = 4, .flags = 0 };
	struct tsock_serve_opts o = serve_opts(500);
	tsock *t;

	(void)state;
	/* Together: who came an epoch later would be held up at the end. */
	o.min_consumers = 2;
	serve(&st, &o);
	t = join(50, TSOCK_WRITABLE);
	assert_int_equal(pthread_create(&other.thread, NULL, consume, &other),
			 0);
	for (unsigned e = 0; e < 4; e++) {
		assert_int_equal(tsock_begin(t), 0);
		for (unsigned i = 0; i < 10; i++)
			b[n++] = next(t);
		assert_int_equal(tsock_next(t, 0, &none), TSOCK_EEPOCH);
	}
	/* Nobody waits for us, though we hold everything. */
	pthread_join(other.thread, NULL);
	if (other.failed[0])
		fail_msg("%s", other.failed);
	tsock_close(t);
	stop(&st);
	for (unsigned i = 0; i < BATCHES; i++)
		assert_true(good(b[i], 500));
	for (unsigned i = 0; i < BATCHES; i++)
		tsock_batch_release(b[i]);
}

static void read_only_hoarders_get_an_error(void **state)
{
	tsock_batch *b[32], *more;
	unsigned n = 0;
	struct stream st;
	tsock *t;
	int err;

	(void)state;
	serve_n(&st, 500);
	t = join(32, 0);
	assert_int_equal(tsock_begin(t), 0);
	while (n < 32 &&
	       ((err = tsock_next(t, 100, &b[n])) == 0 || err == TSOCK_EAGAIN))
		n += !err;
	assert_int_equal(err, TSOCK_EHELD);
	assert_int_equal(n, 8); /* C - W = 256 samples */
	assert_non_null(strstr(tsock_errmsg(), "8 batches"));
	assert_int_equal(tsock_next(t, 0, &more), TSOCK_EHELD);
	tsock_batch_release(b[0]);
	more = next(t);
	assert_true(good(more, 500));
	tsock_batch_release(more);
	for (unsigned i = 1; i < n; i++) {
		assert_true(good(b[i], 500));
		tsock_batch_release(b[i]);
	}
	tsock_close(t);
	stop(&st);
}

static uint64_t consumers(struct stream *st)
{
	struct tsock_stats s = { .size = sizeof(s) };

	if (tsock_serve_stats(st->s, &s))
		abort();
	return s.consumers;
}

static void *release_it(void *b)
{
	tsock_batch_release(b);
	return NULL;
}

static void a_claim_lasts_as_long_as_its_read_only_batches(void **state)
{
	struct stream st;
	tsock_batch *b, *more;
	pthread_t thread;
	tsock *t;
	int err;

	(void)state;
	serve_n(&st, 500);
	t = join(64, 0);
	assert_int_equal(tsock_begin(t), 0);
	b = next(t);
	tsock_leave(t);
	assert_int_equal(consumers(&st), 1);
	/* The holder, and only he, is told. */
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(consumers(&st), 2);
	while (!(err = tsock_next(t, 20000, &more)))
		tsock_batch_release(more);
	assert_int_equal(err, TSOCK_EHELD);
	assert_non_null(strstr(tsock_errmsg(), "still held"));
	assert_true(good(b, 500));
	/* The thread that releases it says farewell. */
	assert_int_equal(pthread_create(&thread, NULL, release_it, b), 0);
	pthread_join(thread, NULL);
	assert_int_equal(consumers(&st), 1);
	tsock_batch_release(next(t));
	b = next(t);
	tsock_close(t);
	assert_int_equal(consumers(&st), 1);
	assert_true(good(b, 500));
	tsock_batch_release(b);
	assert_int_equal(consumers(&st), 0);
	stop(&st);
}

static void nothing_to_read_is_eagain(void **state)
{
	struct stream st;
	tsock_batch *b;
	int64_t begin;
	tsock *t;

	(void)state;
	serve_n(&st, 500);
	atomic_store(&st.upto, 3);
	t = join(32, 0);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EARG);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, 0, &b), TSOCK_EAGAIN);
	begin = tsi_now_ms();
	assert_int_equal(tsock_next(t, 250, &b), TSOCK_EAGAIN);
	assert_true(tsi_now_ms() - begin >= 249);
	atomic_store(&st.upto, UINT64_MAX);
	tsock_batch_release(next(t));
	tsock_close(t);
	stop(&st);
}

static void begin_can_be_polled(void **state)
{
	struct stream st;
	int err, calls = 0;
	tsock *t;

	(void)state;
	serve_n(&st, 500);
	t = join(32, 0);
	while ((err = tsock_begin_timed(t, 0)) == TSOCK_EAGAIN)
		if (++calls > 50000000)
			fail_msg("never joined");
	assert_int_equal(err, 0);
	tsock_batch_release(next(t));
	tsock_close(t);
	assert_int_equal(consumers(&st), 0);
	stop(&st);
}

static void the_end_of_the_stream_has_its_code(void **state)
{
	struct tsock_serve_opts so = serve_opts(100);
	struct job j = { .n = 100, .batch = 30, .epochs = 3 };
	uint64_t at = UINT64_MAX;
	struct stream st;
	tsock *t;

	(void)state;
	so.epochs = 3;
	serve(&st, &so);
	t = join(30, 0);
	for (unsigned e = 0; e < 3; e++) {
		read_epoch(&j, t, &at);
		if (j.failed[0])
			fail_msg("%s", j.failed);
	}
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	assert_non_null(strstr(tsock_errmsg(), "3 epochs"));
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	assert_int_equal(consumers(&st), 0);
	tsock_close(t);
	t = join(30, 0);
	assert_int_equal(tsock_begin(t), TSOCK_EENDED);
	tsock_close(t);
	stop(&st);
}

static void a_failed_stream_says_why(void **state)
{
	struct stream st;
	tsock_batch *b;
	tsock *t;
	int err;

	(void)state;
	serve_n(&st, 500);
	atomic_store(&st.upto, 100);
	t = join(10, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(next(t));
	tsock_serve_fail(st.s, "can't read /data/x.jpg: EIO");
	while (!(err = tsock_next(t, 20000, &b)))
		tsock_batch_release(b);
	assert_int_equal(err, TSOCK_ESTREAM);
	assert_non_null(strstr(tsock_errmsg(), "/data/x.jpg"));
	assert_int_equal(tsock_begin(t), TSOCK_ESTREAM);
	assert_non_null(strstr(tsock_errmsg(), "/data/x.jpg"));
	atomic_store(&st.upto, UINT64_MAX);
	tsock_close(t);
	stop(&st);
}

static void views_are_converted(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsock_field f;
	struct stream st;
	tsock *t;

	(void)state;
	serve_n(&st, 200);
	o.batch_size = 33;
	o.flags = TSOCK_WRITABLE;
	o.dtype = TSOCK_F32;
	o.layout = TSOCK_CHW;
	o.normalize = TSOCK_UNIT;
	assert_int_equal(tsock_open("unit", &o, &t), 0);
	assert_int_equal(tsock_get_field(t, 0, &f), 0);
	assert_int_equal(f.dtype, TSOCK_F32);
	assert_int_equal(f.shape[0], 3);
	assert_int_equal(f.shape[2], SIZE);
	assert_int_equal(tsock_get_field(t, 1, &f), 0);
	assert_int_equal(f.dtype, TSOCK_I64);
	assert_int_equal(tsock_get_field(t, 2, &f), TSOCK_EARG);
	for (unsigned e = 0; e < 3; e++) {
		uint64_t seq = e * 200;
		tsock_batch *b;
		int err;

		assert_int_equal(tsock_begin(t), 0);
		while (!(err = tsock_next(t, 20000, &b))) {
			const float *p = tsock_batch_data(b, 0);

			for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
				float want = (float)pixel(seq++) / 255.0f;

				for (unsigned k = 0; k < BYTES; k++)
					if (*p++ != want)
						fail_msg("not %f", want);
			}
			tsock_batch_release(b);
		}
		assert_int_equal(err, TSOCK_EEPOCH);
	}
	tsock_close(t);
	stop(&st);
}

static void what_is_served_can_be_asked(void **state)
{
	struct tsock_serve_opts so = serve_opts(500);
	char text[1000][16];
	const char *name[1000];
	struct tsock_info info = { .size = sizeof(info) };
	struct stream st;
	tsock *t;

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(text[i], sizeof(text[i]), "class %u", i);
		name[i] = text[i];
	}
	so.classes = name;
	so.nclasses = 1000; /* several pages of metadata */
	so.dataset_len = 499;
	so.sequential = 1;
	serve(&st, &so);
	t = join(32, 0);
	assert_int_equal(tsock_get_info(t, &info), 0);
	assert_int_equal(info.epoch_len, 500);
	assert_int_equal(info.dataset_len, 499);
	assert_int_equal(info.max_batch, 128);
	assert_int_equal(info.capacity, 512);
	assert_int_equal(info.join_window, 256);
	assert_int_equal(info.nclasses, 1000);
	assert_int_equal(info.sequential, 1);
	assert_int_equal(info.producer_pid, getpid());
	assert_int_equal(info.nfields, 2);
	for (unsigned i = 0; i < 1000; i++)
		assert_string_equal(tsock_class_name(t, i), name[i]);
	assert_null(tsock_class_name(t, 1000));
	assert_int_equal(tsock_epoch_batches(t), 16);
	info.size = 0;
	assert_int_equal(tsock_get_info(t, &info), TSOCK_EARG);
	tsock_close(t);
	stop(&st);
}

static void refused(const struct tsock_opts *o, int code, const char *text)
{
	tsock *t;

	assert_int_equal(tsock_open("unit", o, &t), code);
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

static void wrong_options_are_named(void **state)
{
	const struct tsock_opts good_opts = {
		sizeof(good_opts), 8, 200, -1, 0, 0, 0, { 0 },
		{ 1, 1, 1 },       0, 0,   0,  0
	};
	struct tsock_opts o;
	struct stream st;

	(void)state;
	serve_n(&st, 500);
	refused(NULL, TSOCK_EARG, "opts is NULL");
#define WITH(set, code, text) \
	do { \
		o = good_opts; \
		set; \
		refused(&o, code, text); \
	} while (0)
	WITH(o.size = 0, TSOCK_EARG, "TSOCK_OPTS_INIT");
	WITH(o.batch_size = 0, TSOCK_EARG, "batch_size is 0");
	WITH(o.batch_size = 129, TSOCK_EREFUSED, "129");
	WITH(o.batch_size = 129, TSOCK_EREFUSED, "128");
	WITH(o.device = -2, TSOCK_EARG, "device");
	WITH(o.flags = TSOCK_GPU_STORED, TSOCK_EARG, "TSOCK_GPU_STORED");
	WITH(o.transport = TSOCK_TRANSPORT_STAGED, TSOCK_EARG, "transport");
	WITH(o.transport = 4, TSOCK_EARG, "transport");
	WITH(o.join = 3, TSOCK_EARG, "join");
	WITH(o.between = 3, TSOCK_EARG, "between");
	WITH(o.flags = 16, TSOCK_EARG, "flags");
	WITH(o.dtype = 99, TSOCK_EARG, "dtype");
	WITH(o.dtype = TSOCK_I64, TSOCK_EARG, "dtype");
	WITH(o.layout = 2, TSOCK_EARG, "layout");
	WITH(o.normalize = TSOCK_UNIT, TSOCK_EARG, "u8");
	WITH((o.dtype = TSOCK_F32, o.normalize = 9), TSOCK_EARG, "normalize");
	WITH((o.dtype = TSOCK_F32, o.normalize = TSOCK_MEAN_STD, o.std[1] = 0),
	     TSOCK_EARG, "std");
#undef WITH
	stop(&st);
}

static void no_producer_is_an_error_that_helps(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	int64_t begin = tsi_now_ms();
	tsock *t;

	(void)state;
	o.batch_size = 8;
	o.timeout_ms = 200;
	assert_int_equal(tsock_open("nobody", &o, &t), TSOCK_ENOPROD);
	assert_true(tsi_now_ms() - begin >= 199);
	assert_non_null(strstr(tsock_errmsg(), "nobody"));
	assert_non_null(strstr(tsock_errmsg(), "tsock-producer"));
	assert_int_equal(tsock_open("", &o, &t), TSOCK_EARG);
	assert_int_equal(tsock_open(NULL, &o, &t), TSOCK_EARG);
	assert_int_equal(tsock_open("nobody", &o, NULL), TSOCK_EARG);
}

static void a_wrong_name_lists_what_runs(void **state)
{
	struct tsock_stats stats = { .size = sizeof(stats) };
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct stream st;
	tsock *t;

	(void)state;
	o.batch_size = 8;
	o.timeout_ms = 1;
	assert_int_equal(tsock_open("nobody", &o, &t), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "; none runs here"));
	serve_n(&st, 500);
	assert_int_equal(tsock_open("nobody", &o, &t), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "; these run: unit"));
	assert_int_equal(tsock_query("nobody", 1, &stats), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), "; these run: unit"));
	stop(&st);
}

/* ---- forks and deaths ---- */

static void a_forked_child_is_told_and_harms_nobody(void **state)
{
	struct stream st;
	tsock_batch *b, *none;
	struct tsock_info info = { .size = sizeof(info) };
	int status;
	pid_t pid;
	tsock *t;

	(void)state;
	serve_n(&st, 500);
	t = join(32, TSOCK_WRITABLE);
	assert_int_equal(tsock_begin(t), 0);
	b = next(t);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int bad = !good(b, 500);

		bad |= (tsock_next(t, 0, &none) != TSOCK_EFORK) << 1;
		bad |= (tsock_begin(t) != TSOCK_EFORK) << 2;
		bad |= (tsock_get_info(t, &info) != TSOCK_EFORK) << 3;
		tsock_batch_release(b);
		tsock_leave(t);
		tsock_close(t);
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(good(b, 500));
	tsock_batch_release(b);
	for (unsigned i = 0; i < 10; i++) {
		b = next(t);
		assert_true(good(b, 500));
		tsock_batch_release(b);
	}
	tsock_close(t);
	stop(&st);
}

/* A producer in a process of its own. */
struct forked {
	pid_t pid;
	int go;    /* closed: it may begin */
	int ready; /* a byte: it is up */
};

static void serve_in_child(uint64_t upto, int go, int ready)
{
	struct tsock_serve_opts o = serve_opts(500);
	struct stream st;
	char byte;

	memset(&st, 0, sizeof(st));
	st.n = 500;
	atomic_store(&st.upto, upto);
	if (read(go, &byte, 1) != 0 || tsock_serve_open("unit", &o, &st.s) ||
	    write(ready, "r", 1) != 1)
		_exit(1);
	work(&st);
	_exit(0);
}

/*
 * Fork it, but let it wait.  ThreadSanitizer takes the parent's threads to be
 * in the child too, and a new one there with the same id for a mistake: so a
 * process is forked while no handle is open.
 */
static struct forked fork_waiting_producer(uint64_t upto)
{
	int go[2], ready[2];
	struct forked f;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(ready), 0);
	f.pid = fork();
	assert_true(f.pid >= 0);
	if (f.pid == 0) {
		close(go[1]);
		close(ready[0]);
		serve_in_child(upto, go[0], ready[1]);
	}
	close(go[0]);
	close(ready[1]);
	f.go = go[1];
	f.ready = ready[0];
	return f;
}

/* Up when this returns. */
static pid_t start_producer(struct forked f)
{
	char byte;

	close(f.go);
	assert_int_equal(read(f.ready, &byte, 1), 1);
	close(f.ready);
	return f.pid;
}

static pid_t fork_producer(uint64_t upto)
{
	return start_producer(fork_waiting_producer(upto));
}

static void kill_it(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void a_dead_producer_is_noticed_within_a_second(void **state)
{
	tsock_batch *held, *b;
	int64_t begin;
	pid_t pid;
	tsock *t;
	int err;

	(void)state;
	for (uint32_t flags = 0; flags <= TSOCK_SPIN; flags += TSOCK_SPIN) {
		pid = fork_producer(120);
		t = join(32, flags);
		assert_int_equal(tsock_begin(t), 0);
		held = next(t);
		kill_it(pid);
		begin = tsi_now_ms();
		/* What was published before is still good. */
		while (!(err = tsock_next(t, -1, &b))) {
			assert_true(good(b, 500));
			tsock_batch_release(b);
		}
		assert_int_equal(err, TSOCK_ELOST);
		assert_true(tsi_now_ms() - begin < LONG_MS);
		assert_non_null(strstr(tsock_errmsg(), "unit"));
		assert_non_null(strstr(tsock_errmsg(), "died"));
		assert_true(good(held, 500));
		assert_int_equal(tsock_next(t, 0, &b), TSOCK_ELOST);
		assert_int_equal(tsock_begin(t), TSOCK_ELOST);
		assert_true(tsi_now_ms() - begin < 2 * LONG_MS);
		tsock_batch_release(held);
		tsock_close(t);
	}
}

/* Asked for by short slices, as Python does. */
static int begin_by_slices(tsock *t)
{
	int err;

	do
		err = tsock_begin_timed(t, 20);
	while (err == TSOCK_EAGAIN);
	return err;
}

static void another_producer_is_not_the_same_stream(void **state)
{
	struct tsock_stats s = { .size = sizeof(s) };
	struct forked next_one;
	tsock_batch *b;
	pid_t pid;
	tsock *t;

	(void)state;
	/* In an epoch, and after one, whose end is no place of the other. */
	for (unsigned epochs = 0; epochs < 3; epochs++) {
		next_one = fork_waiting_producer(UINT64_MAX);
		pid = fork_producer(UINT64_MAX);
		t = join(32, 0);
		for (unsigned e = 0; e < epochs; e++) {
			assert_int_equal(begin_by_slices(t), 0);
			while (!tsock_next(t, 20000, &b))
				tsock_batch_release(b);
		}
		if (!epochs) {
			assert_int_equal(begin_by_slices(t), 0);
			tsock_batch_release(next(t));
		}
		tsock_leave(t);
		kill_it(pid);
		pid = start_producer(next_one);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(begin_by_slices(t), TSOCK_ELOST);
			assert_non_null(strstr(tsock_errmsg(), "restarted"));
			assert_non_null(strstr(tsock_errmsg(), "open another"));
		}
		/* It never joined. */
		assert_int_equal(tsock_query("unit", 20000, &s), 0);
		assert_int_equal(s.head, 0);
		tsock_close(t);
		t = join(32, 0);
		assert_int_equal(tsock_begin(t), 0);
		b = next(t);
		assert_int_equal(tsock_batch_seq(b), 0);
		tsock_batch_release(b);
		tsock_close(t);
		kill_it(pid);
	}
}

static void an_epoch_that_would_have_no_batch_is_refused(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct stream st;
	tsock *t;

	(void)state;
	serve_n(&st, 50);
	o.batch_size = 51;
	o.flags = TSOCK_DROP_LAST;
	assert_int_equal(tsock_open("unit", &o, &t), TSOCK_EREFUSED);
	assert_null(t);
	assert_non_null(strstr(tsock_errmsg(), "51"));
	assert_non_null(strstr(tsock_errmsg(), "50 samples"));
	o.batch_size = 50;
	assert_int_equal(tsock_open("unit", &o, &t), 0);
	tsock_close(t);
	stop(&st);
}

static void a_stopped_producer_is_not_dead(void **state)
{
	tsock_batch *b;
	pid_t pid;
	tsock *t;
	int err;

	(void)state;
	pid = fork_producer(UINT64_MAX);
	t = join(100, 0);
	assert_int_equal(tsock_begin(t), 0);
	tsock_batch_release(next(t));
	assert_int_equal(kill(pid, SIGSTOP), 0);
	while (!(err = tsock_next(t, 400, &b)))
		tsock_batch_release(b);
	/* All that was there, perhaps to the epoch's end. */
	assert_true(err == TSOCK_EAGAIN || err == TSOCK_EEPOCH);
	assert_int_equal(kill(pid, SIGCONT), 0);
	if (err == TSOCK_EEPOCH)
		assert_int_equal(tsock_begin(t), 0);
	b = next(t);
	assert_true(good(b, 500));
	tsock_batch_release(b);
	tsock_close(t);
	kill_it(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_comes_once_for_any_batch_size),
		cmocka_unit_test(tiny_data_sets_work),
		cmocka_unit_test(spinning_works),
		cmocka_unit_test(segments_and_now_and_leave),
		cmocka_unit_test(breaking_off_goes_on_at_the_next_epoch),
		cmocka_unit_test(all_batches_of_some_epochs_can_be_kept),
		cmocka_unit_test(read_only_hoarders_get_an_error),
		cmocka_unit_test(
			a_claim_lasts_as_long_as_its_read_only_batches),
		cmocka_unit_test(nothing_to_read_is_eagain),
		cmocka_unit_test(begin_can_be_polled),
		cmocka_unit_test(the_end_of_the_stream_has_its_code),
		cmocka_unit_test(a_failed_stream_says_why),
		cmocka_unit_test(views_are_converted),
		cmocka_unit_test(what_is_served_can_be_asked),
		cmocka_unit_test(wrong_options_are_named),
		cmocka_unit_test(no_producer_is_an_error_that_helps),
		cmocka_unit_test(a_wrong_name_lists_what_runs),
		cmocka_unit_test(a_forked_child_is_told_and_harms_nobody),
		cmocka_unit_test(a_dead_producer_is_noticed_within_a_second),
		cmocka_unit_test(another_producer_is_not_the_same_stream),
		cmocka_unit_test(an_epoch_that_would_have_no_batch_is_refused),
		cmocka_unit_test(a_stopped_producer_is_not_dead),
	};
	static const char *const left[] = { "unit.bus", "unit.door",
					    "unit.lock" };
	char folder[] = "/tmp/tsock-unit-XXXXXX", path[64];
	bool own = !getenv("TSOCK_DIR");
	int failed;

	if (own && (!mkdtemp(folder) || setenv("TSOCK_DIR", folder, 1)))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	/* A killed producer leaves its sockets behind. */
	for (unsigned i = 0; own && i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, left[i]);
		unlink(path);
	}
	if (own)
		rmdir(folder);
	return failed;
}
