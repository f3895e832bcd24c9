/* SPDX-License-Identifier: MIT */
/*
 * test_returning.c - a producer to which the readers of a dead one return is
 * killed at each named point on the way: with the next one they go on at their
 * exact next samples.  And so do the others when one of them is killed, or
 * stopped for a while, on its way.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "test/faults/points.h"
#include "test/lib/reader.h"

#define READERS 2
#define LOOKS 6000 /* of 5 ms each until something must have happened */

static struct {
	struct points at;   /* of the producer that is killed */
	struct points back; /* of the reader that is killed or stopped */
	_Atomic bool enough;
} * shared;

static struct source src = { .name = "returning",
			     .n = 500,
			     .ring = 128,
			     .max_batch = 16,
			     .payload = 400,
			     .pace_us = 20,
			     .identity = "kind=test\n" };

static int set_up(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -1;
	points_set(&shared->at, -1, 0, 0);
	points_set(&shared->back, -1, 0, 0);
	proc_own_folder();
	return 0;
}

/* Epoch after epoch, each whole and in order, until it is enough. */
static pid_t start_endless(uint32_t batch, bool obeys)
{
	struct reader r = { .src = &src, .batch = batch };
	uint64_t epoch = UINT64_MAX;
	pid_t pid = proc_spawn();
	tsock *t;

	if (pid)
		return pid;
	if (obeys)
		points_obey(&shared->back, points_rejoining);
	t = reader_connect(&r);
	while (!atomic_load(&shared->enough)) {
		if (tsock_begin(t))
			die("begin: %s", tsock_errmsg());
		need(epoch == UINT64_MAX || tsock_epoch(t) == epoch + 1);
		epoch = tsock_epoch(t);
		reader_read_epoch(&r, t);
	}
	tsock_close(t);
	_exit(0);
}

/* A producer that is hit at its point from its first step on. */
static pid_t start_heeding(const struct source *source)
{
	pid_t pid;

	points_obey(&shared->at, points_returning);
	pid = stream_start_producer(source);
	points_obey(NULL, NULL);
	return pid;
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
		if (n == readers && st.nrows == readers)
			return;
		assert_true(i < LOOKS);
		proc_pause_us(5000);
	}
}

static bool all_are_back(void)
{
	struct tsock_stats st = { .size = sizeof(st) };

	return !tsock_query(src.name, 100, &st) && st.consumers == READERS;
}

/* Some points are passed once in a producer's life; then that is enough. */
static bool dies(pid_t pid, bool or_not)
{
	siginfo_t info = { .si_pid = 0 };

	for (unsigned i = 0; !info.si_pid && i < LOOKS; i++) {
		assert_int_equal(waitid(P_PID, (id_t)pid, &info,
					WEXITED | WNOHANG | WNOWAIT),
				 0);
		proc_pause_us(5000);
		if (!info.si_pid && or_not && all_are_back()) {
			proc_kill_and_reap(pid);
			return true;
		}
	}
	return info.si_pid && proc_ended(pid) == 1000 + SIGKILL;
}

static void hit(pid_t *producer, int point, int n)
{
	pid_t victim;

	proc_kill_and_reap(*producer);
	points_set(&shared->at, point, n, SIGKILL);
	victim = start_heeding(&src);
	if (!dies(victim, n > 1))
		fail_msg("%s is never reached", points_returning[point]);
	*producer = stream_start_producer(&src);
	await_progress_of(READERS);
}

static void readers_return_whatever_kills_the_next_producer(void **state)
{
	pid_t producer = stream_start_producer(&src);
	pid_t reader[READERS] = { start_endless(16, false),
				  start_endless(7, false) };

	(void)state;
	await_progress_of(READERS);
	for (int p = 0; points_returning[p]; p++)
		for (int n = 1; n < 3; n++)
			hit(&producer, p, n);
	atomic_store(&shared->enough, true);
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(proc_ended(reader[i]), 0);
	proc_kill_and_reap(producer);
}

/* ---- a reader on its way back ---- */

static void await_hit(pid_t victim, int point)
{
	siginfo_t info = { .si_pid = 0 };

	for (unsigned i = 0; !info.si_pid; i++) {
		if (i == LOOKS)
			fail_msg("%s is never reached",
				 points_rejoining[point]);
		assert_int_equal(waitid(P_PID, (id_t)victim, &info,
					WEXITED | WSTOPPED | WNOHANG | WNOWAIT),
				 0);
		proc_pause_us(5000);
	}
}

static void hit_on_its_way_back(pid_t *producer, int point, int sig)
{
	pid_t victim = start_endless(7, true);

	await_progress_of(READERS);
	points_set(&shared->back, point, 1, sig);
	proc_kill_and_reap(*producer);
	*producer = stream_start_producer(&src);
	await_hit(victim, point);
	if (sig == SIGKILL) {
		assert_int_equal(proc_ended(victim), 1000 + SIGKILL);
		await_progress_of(READERS - 1);
		return;
	}
	kill(victim, SIGCONT);
	await_progress_of(READERS);
	proc_kill_and_reap(victim);
}

static void whoever_is_hit_on_its_way_back_harms_nobody(void **state)
{
	pid_t producer = stream_start_producer(&src), reader;

	(void)state;
	atomic_store(&shared->enough, false);
	reader = start_endless(16, false);
	for (int p = 0; points_rejoining[p]; p++) {
		hit_on_its_way_back(&producer, p, SIGKILL);
		hit_on_its_way_back(&producer, p, SIGSTOP);
	}
	atomic_store(&shared->enough, true);
	assert_int_equal(proc_ended(reader), 0);
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			readers_return_whatever_kills_the_next_producer,
			proc_end_children),
		cmocka_unit_test_teardown(
			whoever_is_hit_on_its_way_back_harms_nobody,
			proc_end_children),
	};

	return cmocka_run_group_tests_name("returning", tests, set_up, NULL);
}
