/* SPDX-License-Identifier: MIT */
/*
 * test_deaths.c - readers of every transport, and their producers, are killed,
 * stopped, slow, and give up: nobody else hangs or sees a wrong byte, and
 * everybody is told.
 */
#include "test/lib/for_each_transport.h"

#include <poll.h>

#include "test/lib/usage.h"

static const unsigned numbers[] = { 1, 2, 8 };

static const struct source model = { .name = "deaths",
				     .n = 100000,
				     .ring = 64,
				     .max_batch = 16,
				     .payload = 700,
				     .image = SIDE };

/* ---- where children wait for their parent ---- */

static struct {
	int here[2], go[2];
} barrier;

static void open_barrier(void)
{
	need(pipe(barrier.here) == 0 && pipe(barrier.go) == 0);
}

static void say_here(void)
{
	char c = 0;

	need(write(barrier.here[1], &c, 1) == 1);
}

/* Until all have said so, and the parent goes on. */
static void pass_barrier(void)
{
	char c;

	close(barrier.go[1]);
	say_here();
	need(read(barrier.go[0], &c, 1) == 0);
}

static void await(unsigned n)
{
	struct pollfd p = { .fd = barrier.here[0], .events = POLLIN };
	char c;

	while (n--) {
		/* One that died never will. */
		assert_int_equal(poll(&p, 1, 60000), 1);
		assert_int_equal(read(barrier.here[0], &c, 1), 1);
	}
}

static void close_barrier(void)
{
	for (unsigned i = 0; i < 2; i++) {
		close(barrier.here[i]);
		close(barrier.go[i]);
	}
}

/* ---- readers that die ---- */

static unsigned kills(void)
{
	const char *n = getenv("TSOCK_KILLS");

	return n ? (unsigned)atoi(n) : 64;
}

static void goes_on(const char *name, uint64_t head)
{
	for (unsigned i = 0; stream_stats(name).head <= head; i++) {
		assert_true(i < 12000);
		proc_pause_us(5000);
	}
}

static void kill_four(const struct source *src, unsigned *seed)
{
	uint64_t head = stream_stats(src->name).head;
	pid_t victim[4];

	for (unsigned i = 0; i < 4; i++) {
		struct reader_proc r = {
			.src = src,
			.transport = (enum transport)rand_r(seed) % TRANSPORTS,
			.batch = 1 + (uint32_t)rand_r(seed) % 16,
			.epochs = 1000000,
			.join = i % 2 ? TSOCK_JOIN_NOW : TSOCK_JOIN_EPOCH,
			.writes = i & 2,
			.floats = rand_r(seed) % 2,
			.streams = 1 + i % 3
		};

		victim[i] = gpu_reader_start(&r);
	}
	for (unsigned i = 0; i < 4; i++) {
		proc_pause_us((unsigned)rand_r(seed) % 20000);
		proc_kill_and_reap(victim[i]);
	}
	goes_on(src->name, head);
}

/* The readers that stay use every ring, so that none is freed. */
static void kills_at_random_moments_harm_nobody(void **state)
{
	static const enum transport stays[] = { HOST, SHARED, LEGACY };
	struct source src = model;
	pid_t producer = transport_start_source(&src, PINNED), survivor[6];
	unsigned seed = 11, fds, maps;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct reader_proc r = { .src = &src,
					 .transport = stays[i / 2],
					 .batch = 16 - 2 * i,
					 .epochs = 1000000,
					 .floats = i % 2 };

		survivor[i] = gpu_reader_start(&r);
	}
	stream_wait_readers(src.name, 6);
	goes_on(src.name, 64);
	fds = usage_descriptors(producer);
	maps = usage_mappings(producer);
	for (unsigned k = 0; k < kills(); k += 4)
		kill_four(&src, &seed);
	stream_wait_readers(src.name, 6);
	for (unsigned i = 0; usage_descriptors(producer) > fds; i++) {
		assert_true(i < 12000);
		proc_pause_us(5000);
	}
	/* Thread arenas may come and go; tail pages may not pile up. */
	assert_true(usage_mappings(producer) <= maps + 20);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(waitpid(survivor[i], NULL, WNOHANG), 0);
		proc_kill_and_reap(survivor[i]);
	}
	proc_kill_and_reap(producer);
}

/* Takes a batch, lets the GPU work on it, and does nothing any more. */
static void read_and_sit(const struct reader_proc *r)
{
	tsock_batch *b;
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	need(tsock_next(s.t, 60000, &b) == 0);
	gpu_reader_queue_copy(&s, b, &s.copy[0], s.stream[0]);
	say_here();
	for (;;)
		pause();
}

/* Until somebody else holds it up; that one's death ends it. */
static void read_until_held_up(const struct reader_proc *r)
{
	unsigned turn = 0;
	tsock_batch *b;
	struct gpu_reader s;
	int err;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	while ((err = tsock_next(s.t, 100, &b)) == 0) {
		need(tsock_batch_seq(b) < 2 * 64);
		gpu_reader_check(&s, b, turn++);
	}
	need(err == TSOCK_EAGAIN);
	gpu_reader_settle(&s);
	say_here();
	need(tsock_next(s.t, 60000, &b) == 0);
	gpu_reader_check(&s, b, turn);
	gpu_reader_some(&s, 10);
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void a_killed_reader_frees_its_claim(void **state)
{
	for (unsigned n = 0; n < 3; n++) {
		struct reader_proc r = { .src = &model,
					 .transport = transport_of_case(state),
					 .batch = 16,
					 .floats = n == 1 };
		pid_t producer = transport_start_source(&model, r.transport),
		      stuck, pid[8];

		open_barrier();
		stuck = gpu_reader_start_as(read_and_sit, &r);
		await(1);
		for (unsigned i = 0; i < numbers[n]; i++) {
			r.batch = 16 - 2 * i;
			r.floats = i % 2;
			pid[i] = gpu_reader_start_as(read_until_held_up, &r);
		}
		await(numbers[n]);
		proc_kill_and_reap(stuck);
		for (unsigned i = 0; i < numbers[n]; i++)
			assert_int_equal(proc_ended(pid[i]), 0);
		proc_kill_and_reap(producer);
		close_barrier();
	}
}

/* ---- readers that are slow ---- */

#define ALL (2 * TRANSPORTS)

/* Longer than a ring on a GPU is kept that nobody reads. */
static void a_stopped_reader_is_slow_and_not_dead(void **state)
{
	struct source src = model;
	pid_t producer, pid[ALL];

	(void)state;
	src.n = 1000;
	src.min_consumers = ALL;
	producer = transport_start_source(&src, PINNED);
	/* The first half is stopped while it waits for the second one. */
	for (unsigned i = 0; i < ALL; i++) {
		struct reader_proc r = { .src = &src,
					 .transport = i % TRANSPORTS,
					 .batch = 16 - i / 2,
					 .epochs = 2,
					 .floats = i % 3 == 0 };

		pid[i] = gpu_reader_start(&r);
		if (i == TRANSPORTS - 1) {
			stream_wait_readers(src.name, TRANSPORTS);
			for (unsigned k = 0; k < TRANSPORTS; k++)
				kill(pid[k], SIGSTOP);
		}
	}
	stream_wait_readers(src.name, ALL);
	proc_pause_us(6000000);
	assert_int_equal(stream_stats(src.name).consumers, ALL);
	for (unsigned i = 0; i < TRANSPORTS; i++)
		kill(pid[i], SIGCONT);
	for (unsigned i = 0; i < ALL; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	proc_kill_and_reap(producer);
}

/*
 * One reader of each transport sits, which holds nobody up before another one
 * comes.  Nobody waits for that one, so it isn't slow however long it takes.
 */
static void the_slow_are_killed_when_that_is_asked_for(void **state)
{
	static const enum transport waits[] = { HOST, SHARED };
	struct source src = model;

	(void)state;
	src.n = 1000;
	src.slow_ms = 300;
	for (unsigned k = 0; k < 2; k++) {
		struct reader_proc r = { .src = &src, .batch = 16 };
		pid_t producer = transport_start_source(&src, PINNED), good,
		      stuck[TRANSPORTS];

		open_barrier();
		for (unsigned i = 0; i < TRANSPORTS; i++) {
			r.transport = i;
			r.floats = i % 3 == 0;
			stuck[i] = gpu_reader_start_as(read_and_sit, &r);
		}
		await(TRANSPORTS);
		r.transport = waits[k];
		r.floats = k;
		r.epochs = 2;
		good = gpu_reader_start(&r);
		for (unsigned i = 0; i < TRANSPORTS; i++)
			assert_int_equal(proc_ended(stuck[i]), 1000 + SIGKILL);
		assert_int_equal(proc_ended(good), 0);
		proc_kill_and_reap(producer);
		close_barrier();
	}
}

/* ---- producers that die ---- */

static void read_after_a_loss(const struct reader_proc *r)
{
	tsock_batch *held, *b;
	unsigned turn = 0;
	struct gpu_reader s;
	int err;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	need(tsock_next(s.t, 60000, &held) == 0);
	pass_barrier();
	/* While one is held, no more than the ring has. */
	while ((err = tsock_next(s.t, -1, &b)) == 0)
		tsock_batch_release(b);
	need(err == TSOCK_ELOST || err == TSOCK_EHELD);
	/* What is in hand stays whole. */
	gpu_reader_check(&s, held, turn++);
	while ((err = tsock_next(s.t, -1, &b)) == 0)
		gpu_reader_check(&s, b, turn++);
	need(err == TSOCK_ELOST);
	need(strstr(tsock_errmsg(), r->src->name));
	gpu_reader_settle(&s);
	need(tsock_begin_timed(s.t, 60000) == TSOCK_ELOST);
	gpu_reader_close(&s);
}

/* Three streams at once, with one, two and eight readers. */
static void a_dead_producer_is_a_named_error(void **state)
{
	static const char *const name[] = { "alone", "by-two", "by-eight" };
	pid_t producer[3], pid[11];
	struct source src[3];
	unsigned k = 0;

	open_barrier();
	for (unsigned n = 0; n < 3; n++) {
		struct reader_proc r = { .src = &src[n],
					 .transport =
						 transport_of_case(state) };

		src[n] = model;
		src[n].name = name[n];
		src[n].min_consumers = numbers[n];
		producer[n] = transport_start_source(&src[n], r.transport);
		for (unsigned i = 0; i < numbers[n]; i++) {
			r.batch = 16 - 2 * i;
			r.floats = i % 2;
			pid[k++] = gpu_reader_start_as(read_after_a_loss, &r);
		}
	}
	await(k);
	for (unsigned n = 0; n < 3; n++)
		proc_kill_and_reap(producer[n]);
	close_barrier();
	while (k)
		assert_int_equal(proc_ended(pid[--k]), 0);
}

static void a_new_producer_takes_a_dead_ones_name(void **state)
{
	struct source src = model;
	struct reader_proc r[2] = { { .batch = 16 },
				    { .batch = 7, .floats = true } };

	src.n = 100;
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned k = 0; k < 2; k++) {
			r[k].transport = transport_of_case(state);
			r[k].epochs = 2;
		}
		/* Its producer is killed, and so is that of the next. */
		transport_run_readers(&src, r, 2);
	}
}

/* ---- producers that give up ---- */

static void make_some_and_fail(tsock_server *s, const struct source *src)
{
	uint64_t first;

	while (tsock_serve_claim(s, 1, -1, &first) == 1 && first < 100) {
		stream_write_sample(s, src, first);
		tsock_serve_commit(s, first, 1);
	}
	tsock_serve_fail(s, "cat.JPEG: input/output error");
	for (;;)
		pause();
}

static void read_to_the_failure(const struct reader_proc *r)
{
	struct tsock_opts o = gpu_reader_opts(r);
	unsigned turn = 0;
	tsock_batch *b;
	struct gpu_reader s;
	int err;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	while ((err = tsock_next(s.t, 60000, &b)) == 0) {
		need(tsock_batch_seq(b) + tsock_batch_count(b) <= 100);
		gpu_reader_check(&s, b, turn++);
	}
	need(err == TSOCK_ESTREAM && strstr(tsock_errmsg(), "cat.JPEG"));
	gpu_reader_settle(&s);
	tsock_close(s.t);
	/* A consumer that comes later is told the same. */
	need(tsock_open(r->src->name, &o, &s.t) == 0);
	if (tsock_begin(s.t) != TSOCK_ESTREAM ||
	    !strstr(tsock_errmsg(), "cat.JPEG"))
		die("begin: %s", tsock_errmsg());
	gpu_reader_close(&s);
}

static void a_failed_stream_tells_every_reader_why(void **state)
{
	for (unsigned n = 0; n < 3; n++) {
		struct source src = model;
		struct reader_proc r = { .src = &src,
					 .transport =
						 transport_of_case(state) };
		pid_t producer, pid[8];

		src.min_consumers = numbers[n];
		src.served = make_some_and_fail;
		producer = transport_start_source(&src, r.transport);
		for (unsigned i = 0; i < numbers[n]; i++) {
			r.batch = 16 - 2 * i;
			r.floats = i % 2;
			pid[i] = gpu_reader_start_as(read_to_the_failure, &r);
		}
		for (unsigned i = 0; i < numbers[n]; i++)
			assert_int_equal(proc_ended(pid[i]), 0);
		proc_kill_and_reap(producer);
	}
}

int main(void)
{
	static const struct transport_test each[] = {
		FOR_EACH_TRANSPORT(a_killed_reader_frees_its_claim),
		FOR_EACH_TRANSPORT(a_dead_producer_is_a_named_error),
		FOR_EACH_TRANSPORT(a_new_producer_takes_a_dead_ones_name),
		FOR_EACH_TRANSPORT(a_failed_stream_tells_every_reader_why),
	};
	const struct CMUnitTest once[] = {
		cmocka_unit_test(kills_at_random_moments_harm_nobody),
		cmocka_unit_test(a_stopped_reader_is_slow_and_not_dead),
		cmocka_unit_test(the_slow_are_killed_when_that_is_asked_for),
	};

	return transport_run_each("deaths", each,
				  sizeof(each) / sizeof(each[0]), once,
				  sizeof(once) / sizeof(once[0]));
}
