/* SPDX-License-Identifier: MIT */
/*
 * test_next_producer.c - a reader whose producer died, step by step: what it is
 * given and told until there is a next one, and which one it goes on with.
 */
#include "test/lib/next_producer.h"

#include <signal.h>
#include <sys/wait.h>

static tsock *begin_with(const struct source *src, uint32_t rejoin_ms)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	o.batch_size = 16;
	o.timeout_ms = 60000;
	o.rejoin_ms = rejoin_ms;
	assert_int_equal(tsock_open(src->name, &o, &t), 0);
	assert_int_equal(tsock_begin(t), 0);
	return t;
}

/* All that is there is given; then what? */
static int read_until_it_fails(tsock *t, uint64_t *next)
{
	tsock_batch *b;
	int err;

	while ((err = tsock_next(t, -1, &b)) == 0) {
		assert_int_equal(tsock_batch_seq(b), *next);
		*next += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	return err;
}

static void
what_is_published_is_given_and_then_an_error_with_the_time(void **state)
{
	struct source src = next_producer_restart("alone");
	pid_t producer = stream_start_producer(&src);
	tsock *t = begin_with(&src, 400);
	uint64_t next = 0;

	(void)state;
	while (stream_stats("alone").head < 256)
		proc_pause_us(5000);
	proc_kill_and_reap(producer);
	assert_int_equal(read_until_it_fails(t, &next), TSOCK_ELOST);
	assert_int_equal(next, 256);
	assert_non_null(strstr(tsock_errmsg(), "within 0.4 s"));
	/* The handle is as good as after tsock_leave(). */
	assert_int_equal(tsock_next(t, 0, &(tsock_batch *){ NULL }),
			 TSOCK_EARG);
	tsock_close(t);
}

static char waiting[256]; /* what a job is told of that */

static void note_waiting(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	if (strstr(line, "waiting"))
		snprintf(waiting, sizeof(waiting), "%s", line);
}

static void who_says_nothing_waits_for_a_minute(void **state)
{
	struct source src = next_producer_restart("usual");
	pid_t producer = stream_start_producer(&src);
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock_batch *b;
	uint64_t next;
	tsock *t;
	int err;

	(void)state;
	o.batch_size = 16;
	assert_int_equal(tsock_open("usual", &o, &t), 0);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, -1, &b), 0);
	next = tsock_batch_count(b);
	tsock_batch_release(b);
	proc_kill_and_reap(producer);
	tsock_set_logger(note_waiting, NULL);
	while (!*waiting) {
		err = tsock_next(t, 10, &b);
		if (err) {
			assert_int_equal(err, TSOCK_EAGAIN);
			continue;
		}
		assert_int_equal(tsock_batch_seq(b), next);
		next += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	tsock_close(t);
	tsock_set_logger(NULL, NULL);
	assert_non_null(strstr(waiting, "died; waiting up to 60 s for a "
					"producer of the same stream"));
}

static void who_does_not_want_to_wait_is_told_at_once(void **state)
{
	struct source src = next_producer_restart("hasty");
	pid_t producer = stream_start_producer(&src);
	tsock *t = begin_with(&src, 0);
	uint64_t next = 0;

	(void)state;
	proc_kill_and_reap(producer);
	assert_int_equal(read_until_it_fails(t, &next), TSOCK_ELOST);
	assert_non_null(strstr(tsock_errmsg(), "died"));
	tsock_close(t);
}

static void another_stream_is_refused_with_the_difference(void **state)
{
	struct source src = next_producer_restart("other");
	struct source other = next_producer_restart("other");
	struct next_producer another;
	pid_t producer;
	uint64_t next = 0;
	tsock *t;

	(void)state;
	other.identity = "kind=test\nseed=2\n";
	another = next_producer_prepare(other);
	producer = stream_start_producer(&src);
	t = begin_with(&src, 60000);
	proc_kill_and_reap(producer);
	producer = next_producer_begin(&another);
	assert_int_equal(read_until_it_fails(t, &next), TSOCK_ELOST);
	assert_non_null(strstr(tsock_errmsg(), "seed was 1 and is 2"));
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/* What the labels mean, which is no part of this identity. */
static void other_classes_are_another_stream(void **state)
{
	static const char *const two[] = { "daisy", "rose" };
	static const char *const three[] = { "daisy", "rose", "tulip" };
	struct source src = next_producer_restart("classes");
	struct source other = next_producer_restart("classes");
	struct next_producer another;
	pid_t producer;
	uint64_t next = 0;
	tsock *t;

	(void)state;
	src.classes = two;
	src.nclasses = 2;
	other.classes = three;
	other.nclasses = 3;
	another = next_producer_prepare(other);
	producer = stream_start_producer(&src);
	t = begin_with(&src, 60000);
	proc_kill_and_reap(producer);
	producer = next_producer_begin(&another);
	assert_int_equal(read_until_it_fails(t, &next), TSOCK_ELOST);
	assert_non_null(
		strstr(tsock_errmsg(), "its number of classes was 2 and is 3"));
	assert_null(tsock_class_name(t, 2));
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/* A call ends at its own time, and the next one waits on. */
static void a_call_waits_no_longer_than_it_may(void **state)
{
	struct source src = next_producer_restart("patient");
	struct next_producer another = next_producer_prepare(src);
	pid_t producer = stream_start_producer(&src);
	tsock *t = begin_with(&src, 60000);
	uint64_t next = 0, start, samples;
	tsock_batch *b;
	int err;

	(void)state;
	proc_kill_and_reap(producer);
	while ((err = tsock_next(t, 20, &b)) == 0) {
		next += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	assert_int_equal(err, TSOCK_EAGAIN);
	assert_int_equal(tsock_lost(t), 1);
	assert_int_equal(tsock_position(t, &start, &samples), 0);
	assert_int_equal(start + samples, next);
	assert_int_equal(tsock_skip(t, 64), 0);
	producer = next_producer_begin(&another);
	while ((err = tsock_next(t, 0, &b)) == TSOCK_EAGAIN)
		;
	assert_int_equal(err, 0);
	assert_int_equal(tsock_lost(t), 0);
	assert_int_equal(tsock_batch_seq(b), next + 64);
	reader_check_batch(&(struct reader){ .src = &src, .batch = 16 }, b, 0);
	tsock_batch_release(b);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

#define REJOIN_MS 900

/* The producer listens, and answers nothing: a poll doesn't wait for it but for
 * the time that the job gives the next producer. */
static void no_call_waits_for_a_next_producer_that_is_stopped(void **state)
{
	struct source src = next_producer_restart("mute");
	struct next_producer another = next_producer_prepare(src);
	pid_t producer = stream_start_producer(&src);
	tsock *t = begin_with(&src, REJOIN_MS);
	unsigned calls = 0;
	tsock_batch *b;
	int err;

	(void)state;
	proc_kill_and_reap(producer);
	producer = next_producer_begin(&another);
	stream_stats("mute");
	assert_int_equal(kill(producer, SIGSTOP), 0);
	assert_int_equal(waitpid(producer, NULL, WUNTRACED), producer);
	while ((err = tsock_next(t, 0, &b)) == 0)
		tsock_batch_release(b);
	while (err == TSOCK_EAGAIN) {
		calls++;
		err = tsock_next(t, 0, &b);
	}
	assert_int_equal(err, TSOCK_ELOST);
	assert_non_null(strstr(tsock_errmsg(), "within 0.9 s"));
	/* There are thousands, and there were two. */
	assert_true(calls > 5);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/* What was asked of it stays asked, and one that goes on is gone on with. */
static void a_next_producer_that_was_stopped_is_gone_on_with(void **state)
{
	struct source src = next_producer_restart("slow");
	struct next_producer another = next_producer_prepare(src);
	pid_t producer = stream_start_producer(&src);
	tsock *t = begin_with(&src, UINT32_MAX);
	uint64_t next = 0;
	tsock_batch *b;
	int err;

	(void)state;
	proc_kill_and_reap(producer);
	producer = next_producer_begin(&another);
	stream_stats("slow");
	assert_int_equal(kill(producer, SIGSTOP), 0);
	assert_int_equal(waitpid(producer, NULL, WUNTRACED), producer);
	while ((err = tsock_next(t, 20, &b)) == 0) {
		next += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	assert_int_equal(err, TSOCK_EAGAIN);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(tsock_next(t, 0, &b), TSOCK_EAGAIN);
	assert_int_equal(kill(producer, SIGCONT), 0);
	assert_int_equal(tsock_next(t, -1, &b), 0);
	assert_int_equal(tsock_batch_seq(b), next);
	reader_check_batch(&(struct reader){ .src = &src, .batch = 16 }, b, 0);
	tsock_batch_release(b);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/* The next producer is asked for the part that the epoch was begun with. */
static void a_rank_is_not_told_while_a_producer_is_awaited(void **state)
{
	const uint8_t job[TSOCK_JOB] = { 1 };
	struct source src = next_producer_restart("ranked");
	pid_t producer = stream_start_producer(&src);
	tsock *t = begin_with(&src, 60000);
	tsock_batch *b;
	int err;

	(void)state;
	proc_kill_and_reap(producer);
	while ((err = tsock_next(t, 20, &b)) == 0)
		tsock_batch_release(b);
	assert_int_equal(err, TSOCK_EAGAIN);
	assert_int_equal(tsock_set_rank(t, 1, 2, job), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "waits for the next producer"));
	tsock_leave(t);
	assert_int_equal(tsock_set_rank(t, 0, 2, job), 0);
	/* An epoch that isn't begun yet, for the same reason. */
	assert_int_equal(tsock_begin_timed(t, 20), TSOCK_EAGAIN);
	assert_int_equal(tsock_set_rank(t, 0, 1, NULL), TSOCK_EARG);
	tsock_leave(t);
	assert_int_equal(tsock_set_rank(t, 0, 1, NULL), 0);
	tsock_close(t);
}

#define FEW 96 /* samples; a reader may hold the first of them, and read all */

static void make_few(tsock_server *s, const struct source *src)
{
	uint64_t first;

	while (tsock_serve_claim(s, 1, -1, &first) == 1 && first < FEW) {
		stream_write_sample(s, src, first);
		tsock_serve_commit(s, first, 1);
	}
	for (;;)
		pause();
}

/* They hold nobody up: their ring is nobody's any more. */
static void batches_of_the_dead_one_are_kept_as_long_as_wanted(void **state)
{
	struct source src = next_producer_restart("kept");
	struct reader me = { .src = &src, .batch = 16 };
	struct next_producer another = next_producer_prepare(src);
	tsock_batch *held[4], *b;
	pid_t producer;
	tsock *t;

	(void)state;
	src.served = make_few;
	producer = stream_start_producer(&src);
	t = begin_with(&src, 60000);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(tsock_next(t, 60000, &held[i]), 0);
	proc_kill_and_reap(producer);
	producer = next_producer_begin(&another);
	for (uint64_t next = 64; next < 1600; next += 16) {
		assert_int_equal(tsock_next(t, 60000, &b), 0);
		assert_int_equal(tsock_batch_seq(b), next);
		reader_check_batch(&me, b, 0);
		tsock_batch_release(b);
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(tsock_batch_seq(held[i]), 16 * i);
		reader_check_batch(&me, held[i], 0);
		tsock_batch_release(held[i]);
	}
	tsock_close(t);
	proc_kill_and_reap(producer);
}

/*
 * A reader that is behind parts, and its process lives; all the same nobody
 * waits for it.  part() ends the producer; a batch that it returns is given
 * back when that is seen.
 */
static void nobody_waits_after(const char *name,
			       tsock_batch *(*part)(tsock *behind,
						    pid_t producer))
{
	struct source src = next_producer_restart(name);
	struct reader me = { .src = &src, .batch = 16 };
	struct next_producer another = next_producer_prepare(src);
	pid_t producer = stream_start_producer(&src);
	tsock *t = begin_with(&src, 60000), *behind = begin_with(&src, 60000);
	tsock_batch *b, *held;
	uint64_t next = 0;

	for (; next < src.ring; next += 16) {
		assert_int_equal(tsock_next(t, 60000, &b), 0);
		tsock_batch_release(b);
	}
	held = part(behind, producer);
	producer = next_producer_begin(&another);
	/* Less than the time of grace, after which anybody goes on. */
	assert_int_equal(tsock_next(t, 50000, &b), 0);
	assert_int_equal(tsock_batch_seq(b), next);
	reader_check_batch(&me, b, 0);
	tsock_batch_release(b);
	if (held)
		reader_check_batch(&me, held, 0);
	tsock_batch_release(held);
	tsock_close(t);
	proc_kill_and_reap(producer);
}

static tsock_batch *close_meanwhile(tsock *behind, pid_t producer)
{
	proc_kill_and_reap(producer);
	tsock_close(behind);
	return NULL;
}

static void one_that_closes_meanwhile_holds_nobody_up(void **state)
{
	(void)state;
	nobody_waits_after("fewer", close_meanwhile);
}

/* LEAVE is sent, and never read. */
static tsock_batch *leave_at_the_end(tsock *behind, pid_t producer)
{
	assert_int_equal(kill(producer, SIGSTOP), 0);
	assert_int_equal(waitpid(producer, NULL, WUNTRACED), producer);
	assert_int_equal(tsock_leave_timed(behind, 0), TSOCK_EAGAIN);
	proc_kill_and_reap(producer);
	tsock_close(behind);
	return NULL;
}

static void one_that_leaves_as_its_producer_dies_holds_nobody_up(void **state)
{
	(void)state;
	nobody_waits_after("leaving", leave_at_the_end);
}

/* LEAVE would be sent when the batch is given back. */
static tsock_batch *close_with_a_batch(tsock *behind, pid_t producer)
{
	tsock_batch *b;

	assert_int_equal(tsock_next(behind, 60000, &b), 0);
	tsock_close(behind);
	proc_kill_and_reap(producer);
	return b;
}

static void one_that_closes_with_a_batch_in_hand_holds_nobody_up(void **state)
{
	(void)state;
	nobody_waits_after("holding", close_with_a_batch);
}

static void nothing_is_left_when_nobody_reads(void **state)
{
	struct source src = next_producer_restart("tidy");
	struct reader r = { .src = &src, .batch = 16, .epochs = 2 };
	char path[256];
	pid_t producer, pid;

	(void)state;
	src.epochs = 1;
	snprintf(path, sizeof(path), "%s/tidy.readers", getenv("TSOCK_DIR"));
	producer = stream_start_producer(&src);
	pid = reader_start(&r);
	assert_int_equal(proc_ended(pid), 0);
	assert_int_equal(proc_ended(producer), 0);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			what_is_published_is_given_and_then_an_error_with_the_time),
		cmocka_unit_test(who_says_nothing_waits_for_a_minute),
		cmocka_unit_test(who_does_not_want_to_wait_is_told_at_once),
		cmocka_unit_test(another_stream_is_refused_with_the_difference),
		cmocka_unit_test(other_classes_are_another_stream),
		cmocka_unit_test(a_call_waits_no_longer_than_it_may),
		cmocka_unit_test(
			no_call_waits_for_a_next_producer_that_is_stopped),
		cmocka_unit_test(
			a_next_producer_that_was_stopped_is_gone_on_with),
		cmocka_unit_test(
			a_rank_is_not_told_while_a_producer_is_awaited),
		cmocka_unit_test(
			batches_of_the_dead_one_are_kept_as_long_as_wanted),
		cmocka_unit_test(one_that_closes_meanwhile_holds_nobody_up),
		cmocka_unit_test(
			one_that_leaves_as_its_producer_dies_holds_nobody_up),
		cmocka_unit_test(
			one_that_closes_with_a_batch_in_hand_holds_nobody_up),
		cmocka_unit_test(nothing_is_left_when_nobody_reads),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("next producer", tests, NULL,
					   proc_end_children);
}
