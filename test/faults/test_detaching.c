/* SPDX-License-Identifier: MIT */
/*
 * test_detaching.c - a reader that is detached, one that goes on without it, or
 * the producer is killed or stopped at each named point on the way: the others
 * go on, and whoever is left sees whole samples.
 */
#include <sys/mman.h>

#include "test/faults/points.h"
#include "test/lib/reader.h"

#define LIMIT_MS 100
#define LOOKS 6000 /* of 5 ms each until something must have happened */

static struct points *at; /* shared: of the victim */

static struct source src = { .name = "detaching",
			     .n = 500,
			     .ring = 64,
			     .max_batch = 16,
			     .payload = 400,
			     .pace_us = 20,
			     .identity = "kind=detaching\n",
			     .slow_ms = LIMIT_MS,
			     .detach = true };

static int set_up(void **state)
{
	(void)state;
	at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -1;
	proc_own_folder();
	return 0;
}

/* Reads until it is killed; samples may be missing, none is wrong. */
static void read_for_ever(const struct reader *r, tsock *t)
{
	for (;;) {
		tsock_batch *b;
		int err = tsock_next(t, -1, &b);

		if (err == TSOCK_EEPOCH)
			err = tsock_begin(t);
		else if (!err)
			reader_check_batch(r, b, 0);
		if (err)
			die("%s", tsock_errmsg());
		tsock_batch_release(b);
	}
}

static pid_t start_reading(uint32_t batch, const char *const *points)
{
	struct reader r = { .src = &src, .batch = batch };
	pid_t pid = proc_spawn();
	tsock *t;

	if (pid)
		return pid;
	t = reader_connect(&r);
	need(!tsock_begin(t));
	if (points)
		points_obey(at, points);
	read_for_ever(&r, t);
	return -1;
}

/* The process has stopped with a batch in hand, or has ended. */
static void await_hit(pid_t pid, const char *name)
{
	siginfo_t info = { .si_pid = 0 };

	for (unsigned i = 0; !info.si_pid; i++) {
		if (i == LOOKS)
			fail_msg("%s is never reached", name);
		assert_int_equal(waitid(P_PID, (id_t)pid, &info,
					WEXITED | WSTOPPED | WNOHANG | WNOWAIT),
				 0);
		proc_pause_us(5000);
	}
}

static void go_on(pid_t pid)
{
	siginfo_t info;

	/* Consumes the stop, so waitid() doesn't report it again. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
	kill(pid, SIGCONT);
}

static pid_t start_stopping(const char *const *points)
{
	struct reader r = { .src = &src, .batch = 7 };
	pid_t pid = proc_spawn();
	tsock_batch *b;
	tsock *t;

	if (pid) {
		await_hit(pid, "a batch");
		return pid;
	}
	t = reader_connect(&r);
	need(!tsock_begin(t));
	need(!tsock_next(t, -1, &b));
	raise(SIGSTOP);
	if (points)
		points_obey(at, points);
	reader_check_batch(&r, b, 0);
	tsock_batch_release(b);
	read_for_ever(&r, t);
	return -1;
}

static bool is_reader(pid_t pid)
{
	struct tsock_stats st = stream_stats(src.name);

	for (unsigned k = 0; k < st.nrows; k++)
		if (st.row[k].pid == (uint32_t)pid)
			return true;
	return false;
}

/* The process is stopped, so it doesn't become a reader again. */
static void await_detached(pid_t pid)
{
	for (unsigned i = 0; is_reader(pid); i++) {
		assert_true(i < LOOKS);
		proc_pause_us(5000);
	}
}

/* So many readers there are, and all have come to samples made since. */
static void await_progress_of(unsigned readers)
{
	uint64_t head = stream_stats(src.name).head;

	for (unsigned i = 0;; i++) {
		struct tsock_stats st = stream_stats(src.name);
		unsigned n = 0;

		for (unsigned k = 0; k < st.nrows; k++)
			n += st.row[k].tail > head + src.ring;
		if (n == readers)
			return;
		assert_true(i < LOOKS);
		proc_pause_us(5000);
	}
}

/* A process that was stopped goes on, one that was killed is gone. */
static void end_hit(pid_t victim, int sig, unsigned others)
{
	if (sig == SIGSTOP) {
		go_on(victim);
		await_progress_of(others + 1);
		proc_kill_and_reap(victim);
	} else {
		assert_int_equal(proc_ended(victim), 1000 + SIGKILL);
	}
	await_progress_of(others);
}

static void hit_detached(int point, int sig)
{
	pid_t victim;

	points_set(at, -1, 0, 0);
	victim = start_stopping(points_detached);
	await_detached(victim);
	points_set(at, point, 1, sig);
	go_on(victim);
	await_hit(victim, points_detached[point]);
	end_hit(victim, sig, 1);
}

static void who_is_hit_while_it_is_detached_harms_nobody(void **state)
{
	pid_t producer = stream_start_producer(&src), reader;

	(void)state;
	stream_stats(src.name);
	reader = start_reading(16, NULL);
	for (int p = 0; points_detached[p]; p++) {
		hit_detached(p, SIGKILL);
		hit_detached(p, SIGSTOP);
	}
	proc_kill_and_reap(reader);
	proc_kill_and_reap(producer);
}

static void hit_entering(int point, int sig)
{
	pid_t victim, slow;

	points_set(at, -1, 0, 0);
	victim = start_reading(9, points_entering);
	await_progress_of(2);
	points_set(at, point, 1, sig);
	slow = start_stopping(NULL);
	await_hit(victim, points_entering[point]);
	end_hit(victim, sig, 1);
	go_on(slow);
	await_progress_of(2);
	proc_kill_and_reap(slow);
}

static void who_is_hit_as_it_goes_on_harms_nobody(void **state)
{
	pid_t producer = stream_start_producer(&src), reader;

	(void)state;
	stream_stats(src.name);
	reader = start_reading(16, NULL);
	for (int p = 0; points_entering[p]; p++) {
		hit_entering(p, SIGKILL);
		hit_entering(p, SIGSTOP);
	}
	proc_kill_and_reap(reader);
	proc_kill_and_reap(producer);
}

static void heed(tsock_server *s, const struct source *source)
{
	(void)s;
	(void)source;
	points_obey(at, points_detaching);
}

static void hit_detaching(int point, int sig)
{
	const char *name = points_detaching[point];
	struct source obedient = src;
	pid_t producer, reader, slow;

	obedient.served = heed;
	points_set(at, -1, 0, 0);
	producer = stream_start_producer(&obedient);
	stream_stats(src.name);
	reader = start_reading(16, NULL);
	slow = start_stopping(NULL);
	points_set(at, point, 1, sig);
	await_hit(producer, name);
	if (sig == SIGSTOP) {
		go_on(producer);
	} else {
		assert_int_equal(proc_ended(producer), 1000 + SIGKILL);
		producer = stream_start_producer(&src);
	}
	go_on(slow);
	await_progress_of(2);
	proc_kill_and_reap(slow);
	await_progress_of(1);
	proc_kill_and_reap(reader);
	proc_kill_and_reap(producer);
}

static void a_producer_that_is_hit_as_it_detaches_harms_nobody(void **state)
{
	(void)state;
	for (int p = 0; points_detaching[p]; p++) {
		hit_detaching(p, SIGKILL);
		hit_detaching(p, SIGSTOP);
	}
}

#define TEST(f) cmocka_unit_test_teardown(f, proc_end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_is_hit_while_it_is_detached_harms_nobody),
		TEST(who_is_hit_as_it_goes_on_harms_nobody),
		TEST(a_producer_that_is_hit_as_it_detaches_harms_nobody),
	};

	return cmocka_run_group_tests_name("detaching", tests, set_up, NULL);
}
