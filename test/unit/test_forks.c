/* SPDX-License-Identifier: MIT */
/*
 * test_forks.c - a forked child keeps what the parent held at the fork, and
 * the parent goes on as if there had been none.
 */
#include "test/lib/reader_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/forks.h"
#include "test/lib/sanitized.h"

/* One field mapped twice in a row and one with a margin: no whole pages. */
static const uint64_t odd[2] = { 12288, 20001 };

/* ---- children ---- */

struct child {
	pid_t pid;
	int go; /* it looks when this is closed */
};

/* Child: wait until the parent says so. */
static void await_go(int fd)
{
	char c;

	while (read(fd, &c, 1) < 0 && errno == EINTR)
		;
}

/* In the child, out->pid is 0 and it was told to go. */
static void fork_child(struct child *out)
{
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	out->pid = fork();
	assert_true(out->pid >= 0);
	if (out->pid == 0) {
		close(fd[1]);
		await_go(fd[0]);
		return;
	}
	close(fd[0]);
	out->go = fd[1];
}

/* The status that it exits with; -1 and less: a signal. */
static int go(struct child *c)
{
	int status;

	close(c->go);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Round the ring three times. */
static void go_round(struct fixture *g)
{
	uint64_t to = g->head + 3 * CAPACITY;

	while (g->head < to) {
		struct tsock_batch *b;

		assert_int_equal(tsi_reader_make_room(g->r, BATCH), 0);
		b = fixture_take(g, BATCH);
		assert_true(fixture_good(g, b));
		tsock_batch_release(b);
	}
}

/* ---- what was held ---- */

static void hold(struct fixture *g, struct tsock_batch **b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(tsi_reader_make_room(g->r, BATCH), 0);
		b[i] = fixture_take(g, BATCH);
	}
}

/* Child: how many of them don't show their samples. */
static int count_bad(const struct fixture *g, struct tsock_batch **b,
		     unsigned n)
{
	int bad = 0;

	for (unsigned i = 0; i < n; i++)
		bad += !fixture_good(g, b[i]);
	return bad;
}

/* Held from there on, so that some lie across the ring's end. */
static void held_batches_stay(const uint64_t *bytes, enum tsi_mapping_mode mode,
			      unsigned from, unsigned n)
{
	struct tsock_batch *b[8];
	struct child c;
	struct fixture g;

	fixture_make(&g, bytes, mode);
	while (g.head < from)
		tsock_batch_release(fixture_take(&g, 1));
	hold(&g, b, n);
	/* The child of a child, too. */
	fork_child(&c);
	if (c.pid == 0) {
		int bad = count_bad(&g, b, n), status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(count_bad(&g, b, n));
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			bad = 100;
		_exit(bad);
	}
	for (unsigned i = 0; i < n; i++) {
		assert_true(fixture_good(&g, b[i]));
		tsock_batch_release(b[i]);
	}
	go_round(&g);
	assert_int_equal(go(&c), 0);
	fixture_close(&g);
}

static void held_batches_stay_in_a_child(void **state)
{
	(void)state;
	/* Four may be held; the others are evacuated. */
	for (unsigned from = 0; from < CAPACITY; from += 13) {
		held_batches_stay(fixture_big, TSI_MAP_PRIVATE, from, 3);
		held_batches_stay(odd, TSI_MAP_PRIVATE, from, 4);
		held_batches_stay(odd, TSI_MAP_PRIVATE, from, 8);
		held_batches_stay(fixture_small, TSI_MAP_PRIVATE, from, 8);
		held_batches_stay(odd, TSI_MAP_COPY, from, 8);
	}
}

static void read_only_ones_too(void **state)
{
	(void)state;
	for (unsigned from = 0; from < CAPACITY; from += 13) {
		held_batches_stay(fixture_big, TSI_MAP_SHARED, from, 4);
		held_batches_stay(odd, TSI_MAP_SHARED, from, 4);
		held_batches_stay(fixture_small, TSI_MAP_SHARED, from, 4);
	}
}

/* Held on in the parent, and evacuated only after the fork. */
static void also_when_the_parent_keeps_them(void **state)
{
	struct tsock_batch *b[4];
	struct child c;
	struct fixture g;

	(void)state;
	fixture_make(&g, odd, TSI_MAP_PRIVATE);
	hold(&g, b, 4);
	fork_child(&c);
	if (c.pid == 0)
		_exit(count_bad(&g, b, 4));
	go_round(&g);
	assert_int_equal(count_bad(&g, b, 4), 0);
	/* What the parent writes now is no business of the child's. */
	memset(tsock_batch_data_mut(b[3], 0), 0xee, BATCH * odd[0]);
	assert_int_equal(go(&c), 0);
	for (unsigned i = 0; i < 4; i++)
		tsock_batch_release(b[i]);
	go_round(&g);
	fixture_close(&g);
}

static void what_was_written_stays_and_readers_are_many(void **state)
{
	struct tsock_batch *b[2][3];
	struct fixture g[2];
	struct child c;

	(void)state;
	fixture_make(&g[0], odd, TSI_MAP_PRIVATE);
	fixture_make(&g[1], fixture_big, TSI_MAP_SHARED);
	hold(&g[0], b[0], 3);
	hold(&g[1], b[1], 3);
	memset(tsock_batch_data_mut(b[0][1], 1), 0xee, BATCH * odd[1]);
	fork_child(&c);
	if (c.pid == 0) {
		const uint8_t *p = tsock_batch_data(b[0][1], 1);
		bool same = count_bad(&g[0], b[0], 3) == 1 &&
			    count_bad(&g[1], b[1], 3) == 0;

		for (uint64_t i = 0; i < BATCH * odd[1]; i++)
			same &= p[i] == 0xee;
		/* And they are the child's own. */
		memset(tsock_batch_data_mut(b[0][0], 0), 1, BATCH * odd[0]);
		_exit(same ? 0 : 1);
	}
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < 3; i++)
			tsock_batch_release(b[k][i]);
		go_round(&g[k]);
	}
	assert_int_equal(go(&c), 0);
	fixture_close(&g[0]);
	fixture_close(&g[1]);
}

/* ---- while another thread reads ---- */

struct other {
	struct fixture g;
	_Atomic(struct tsock_batch *) newest; /* NULL: being given back */
	_Atomic uint64_t rounds;
	_Atomic bool stop, wrong;
};

static void *read_on(void *arg)
{
	struct other *o = arg;

	while (!atomic_load(&o->stop)) {
		struct tsock_batch *b;

		int err;

		/* As a producer and tsock_next() would: what was given back
		 * during a fork is free when that is over. */
		while ((err = tsi_reader_make_room(o->g.r, BATCH)) ==
			       TSOCK_EHELD ||
		       o->g.head + BATCH - fixture_tail(&o->g) > CAPACITY)
			sched_yield();
		if (err)
			atomic_store(&o->wrong, true);
		b = fixture_take(&o->g, BATCH);
		atomic_store(&o->newest, b);
		if (!fixture_good(&o->g, b))
			atomic_store(&o->wrong, true);
		atomic_store(&o->newest, NULL);
		tsock_batch_release(b);
		atomic_fetch_add(&o->rounds, 1);
	}
	return NULL;
}

static void fork_while_another_reads(enum tsi_mapping_mode mode, unsigned forks)
{
	struct other o = { .stop = false };
	struct tsock_batch *b[2];
	pthread_t t;

	fixture_make(&o.g, fixture_big, mode);
	hold(&o.g, b, 2);
	/* Two held for good: the tail never moves. */
	if (mode == TSI_MAP_SHARED)
		for (unsigned i = 0; i < 2; i++)
			tsock_batch_release(b[i]);
	assert_int_equal(pthread_create(&t, NULL, read_on, &o), 0);
	for (unsigned i = 0; i < forks; i++) {
		struct child c;
		uint64_t then;

		fork_child(&c);
		if (c.pid == 0) {
			struct tsock_batch *n = atomic_load(&o.newest);
			int bad = mode == TSI_MAP_SHARED
					  ? 0
					  : count_bad(&o.g, b, 2);

			_exit(bad + (n && !fixture_good(&o.g, n) ? 4 : 0));
		}
		then = atomic_load(&o.rounds) + 2 * CAPACITY / BATCH;
		while (atomic_load(&o.rounds) < then)
			usleep(100);
		assert_int_equal(go(&c), 0);
	}
	atomic_store(&o.stop, true);
	pthread_join(t, NULL);
	assert_false(o.wrong);
	for (unsigned i = 0; i < 2 && mode != TSI_MAP_SHARED; i++) {
		assert_true(fixture_good(&o.g, b[i]));
		tsock_batch_release(b[i]);
	}
	fixture_close(&o.g);
}

static void batches_come_and_go_while_another_thread_forks(void **state)
{
	(void)state;
	fork_while_another_reads(TSI_MAP_PRIVATE, 60);
	fork_while_another_reads(TSI_MAP_SHARED, 60);
}

/* ---- no memory ---- */

static char said[512];

static void note(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	snprintf(said, sizeof(said), "%s", line);
}

static void without_memory_a_child_gets_no_bytes_not_other_ones(void **state)
{
	struct tsock_batch *b[4];
	struct rlimit old, none;
	struct child c;
	struct fixture g;

	(void)state;
	if (SANITIZED) {
		print_message("sanitizers need address space\n");
		skip();
	}
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	hold(&g, b, 4);
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	none = old;
	none.rlim_cur = 0;
	tsock_set_logger(note, NULL);
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	fork_child(&c);
	if (c.pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		_exit(count_bad(&g, b, 4));
	}
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	tsock_set_logger(NULL, NULL);
	assert_non_null(strstr(said, "a forked child can't read"));
	assert_int_equal(go(&c), -SIGSEGV);
	/* The next one can. */
	fork_child(&c);
	if (c.pid == 0)
		_exit(count_bad(&g, b, 4));
	for (unsigned i = 0; i < 4; i++)
		tsock_batch_release(b[i]);
	go_round(&g);
	assert_int_equal(go(&c), 0);
	fixture_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_batches_stay_in_a_child),
		cmocka_unit_test(read_only_ones_too),
		cmocka_unit_test(also_when_the_parent_keeps_them),
		cmocka_unit_test(what_was_written_stays_and_readers_are_many),
		cmocka_unit_test(
			batches_come_and_go_while_another_thread_forks),
		cmocka_unit_test(
			without_memory_a_child_gets_no_bytes_not_other_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
