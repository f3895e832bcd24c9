/* SPDX-License-Identifier: MIT */
/*
 * test_batches.c - batches, and the tail that follows them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/dlpack.h"
#include "consumer/reader.h"
#include "test/lib/reader_fixture.h"

static void tail_is_the_oldest_batch_else_the_position(void **state)
{
	struct tsock_batch *a, *b, *c;
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	a = fixture_take(&g, 8);
	b = fixture_take(&g, 5);
	c = fixture_take(&g, 8);
	assert_int_equal(fixture_tail(&g), 0);
	tsock_batch_release(b);
	assert_int_equal(fixture_tail(&g), 0);
	tsock_batch_release(a);
	assert_int_equal(fixture_tail(&g), 13);
	tsock_batch_release(c);
	assert_int_equal(fixture_tail(&g), 21);
	tsi_reader_skip(g.r, 40);
	assert_int_equal(fixture_tail(&g), 40);
	tsock_batch_release(NULL);
	fixture_close(&g);
}

static void random_releases(enum tsi_mapping_mode mode, unsigned seed)
{
	enum { HELD = 4 };
	struct tsock_batch *held[HELD] = { NULL };
	unsigned n = 0;
	struct fixture g;

	fixture_make(&g, fixture_big, mode);
	for (unsigned step = 0; step < 400; step++) {
		bool room = g.head + BATCH - fixture_tail(&g) <= CAPACITY / 2;
		uint64_t low;
		unsigned k;

		if (room && n < HELD && (n == 0 || rand_r(&seed) % 2)) {
			held[n++] = fixture_take(
				&g, BATCH - (unsigned)rand_r(&seed) % 4);
		} else {
			k = (unsigned)rand_r(&seed) % n;
			assert_true(fixture_good(&g, held[k]));
			tsock_batch_release(held[k]);
			held[k] = held[--n];
		}
		low = tsi_reader_pos(g.r);
		for (k = 0; k < n; k++)
			if (tsock_batch_seq(held[k]) < low)
				low = tsock_batch_seq(held[k]);
		assert_int_equal(fixture_tail(&g), low);
		assert_int_equal(tsi_reader_held(g.r), n);
	}
	while (n)
		tsock_batch_release(held[--n]);
	assert_int_equal(fixture_tail(&g), g.head);
	fixture_close(&g);
}

static void tail_is_right_in_any_order_of_releases(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 4; seed++) {
		random_releases(TSI_MAP_SHARED, seed);
		random_releases(TSI_MAP_PRIVATE, seed);
	}
}

static void copies_hold_nobody_up(void **state)
{
	struct tsi_host_backend *h;
	struct tsock_batch *b[20];
	struct fixture g;

	(void)state;
	/* Small batches of a writable reader, and forced copies. */
	for (unsigned pass = 0; pass < 2; pass++) {
		fixture_make(&g, pass ? fixture_big : fixture_small,
			     pass ? TSI_MAP_COPY : TSI_MAP_PRIVATE);
		for (unsigned i = 0; i < 20; i++) {
			b[i] = fixture_take(&g, 8);
			assert_int_equal(fixture_tail(&g), g.head);
			assert_int_equal(tsi_reader_held(g.r), 0);
		}
		for (unsigned i = 0; i < 20; i++) {
			assert_true(fixture_good(&g, b[i]));
			tsock_batch_release(b[i]);
		}
		h = (struct tsi_host_backend *)g.r->backend;
		assert_true(atomic_load(&h->mapping.spares) <= 4);
		fixture_close(&g);
	}
}

static void the_oldest_are_made_private_when_room_is_needed(void **state)
{
	struct tsock_batch *b[30];
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_PRIVATE);
	for (unsigned i = 0; i < 30; i++) {
		assert_int_equal(tsi_reader_make_room(g.r, 8), 0);
		b[i] = fixture_take(&g, 8);
		assert_true(g.head - fixture_tail(&g) <= 32);
		/* No more than needed. */
		assert_int_equal(tsi_reader_held(g.r), i < 4 ? i + 1 : 4);
	}
	for (unsigned i = 0; i < 30; i++)
		assert_true(fixture_good(&g, b[i]));
	assert_int_equal(tsi_reader_make_all_private(g.r), 0);
	assert_int_equal(fixture_tail(&g), g.head);
	for (unsigned i = 0; i < 30; i++) {
		assert_true(fixture_good(&g, b[i]));
		tsock_batch_release(b[i]);
	}
	fixture_close(&g);
}

static void read_only_holder_is_told_what_it_holds(void **state)
{
	struct tsock_batch *b[4];
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(tsi_reader_make_room(g.r, 8), 0);
		b[i] = fixture_take(&g, 8);
	}
	assert_int_equal(tsi_reader_make_room(g.r, 8), TSOCK_EHELD);
	assert_non_null(strstr(tsock_errmsg(), "4 batches are still held"));
	tsock_batch_release(b[0]);
	assert_int_equal(tsi_reader_make_room(g.r, 8), 0);
	for (unsigned i = 1; i < 4; i++)
		tsock_batch_release(b[i]);
	fixture_close(&g);
}

/* Its tail may be about to move: that is no reason to name what comes after. */
static void what_is_being_given_back_is_not_held(void **state)
{
	struct tsock_batch *b[4];
	struct fixture g;
	uint64_t pos;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	for (unsigned i = 0; i < 4; i++)
		b[i] = fixture_take(&g, 8);
	pos = tsi_reader_pos(g.r);
	assert_int_equal(tsi_reader_blocker(g.r, pos + 8)->first, 0);
	/* Another thread moves the tail, and hasn't come to it yet. */
	atomic_fetch_add(&g.r->tail.advancing, 1);
	tsock_batch_release(b[0]);
	assert_int_equal(fixture_tail(&g), 0);
	assert_false(tsi_reader_has_room(g.r, 8));
	assert_null(tsi_reader_blocker(g.r, pos + 8));
	assert_int_equal(tsi_reader_make_room(g.r, 8), 0);
	assert_int_equal(tsi_reader_blocker(g.r, pos + 9)->first, 8);
	assert_int_equal(tsi_reader_make_room(g.r, 9), TSOCK_EHELD);
	atomic_store(&g.r->tail.advancing, 0);
	tsi_tail_advance(&g.r->tail);
	assert_int_equal(fixture_tail(&g), 8);
	for (unsigned i = 1; i < 4; i++)
		tsock_batch_release(b[i]);
	fixture_close(&g);
}

static void a_head_that_lies_is_an_error(void **state)
{
	struct tsock_batch *b[200];
	struct fixture g;
	unsigned n = 0;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	while (n < 200 && !tsi_reader_acquire(g.r, 8, &b[n]))
		n++;
	assert_true(n < 200);
	assert_non_null(strstr(tsock_errmsg(), "more than fits"));
	while (n)
		tsock_batch_release(b[--n]);
	fixture_close(&g);
}

static void
the_claim_is_over_with_the_last_batch_that_shows_the_ring(void **state)
{
	struct tsock_batch *a, *b;
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	a = fixture_take(&g, 8);
	b = fixture_take(&g, 8);
	assert_false(tsi_reader_retire(g.r));
	assert_false(tsi_reader_claim_ended(g.r));
	tsock_batch_release(b);
	assert_int_equal(g.over, 0);
	assert_true(fixture_good(&g, a));
	tsock_batch_release(a);
	assert_int_equal(g.over, 1);
	assert_int_equal(fixture_tail(&g), 16);
	assert_true(tsi_reader_claim_ended(g.r));
	assert_int_equal(g.gone, 0);
	tsi_reader_unref(g.r);
	fixture_free(&g);
}

static void kept_batches_outlive_claim_and_handle(void **state)
{
	struct tsock_batch *a, *b;
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_PRIVATE);
	a = fixture_take(&g, 8);
	b = fixture_take(&g, 8);
	assert_int_equal(tsi_reader_make_all_private(g.r), 0);
	assert_true(tsi_reader_retire(g.r));
	tsi_reader_unref(g.r);
	assert_int_equal(g.over, 0);
	/* Others write where they were. */
	fixture_ring_publish(&g.f, CAPACITY, CAPACITY);
	assert_true(fixture_good(&g, a) && fixture_good(&g, b));
	memset(tsock_batch_data_mut(a, 0), 1, 8 * fixture_big[0]);
	tsock_batch_release(a);
	assert_true(fixture_good(&g, b));
	assert_int_equal(g.gone, 0);
	tsock_batch_release(b);
	fixture_free(&g);
}

static void the_eventfd_rings_when_the_writer_waits(void **state)
{
	struct tsock_batch *b;
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	tsock_batch_release(fixture_take(&g, 8));
	assert_false(fixture_rang(&g));
	atomic_store(&g.f.ring.shared->gate_want, 8);
	b = fixture_take(&g, 8);
	assert_false(fixture_rang(&g));
	tsock_batch_release(b);
	assert_true(fixture_rang(&g));
	atomic_store(&g.f.ring.shared->gate_want, TSI_NEVER);
	atomic_store(&g.f.ring.shared->front_want, 24);
	tsock_batch_release(fixture_take(&g, 8));
	assert_true(fixture_rang(&g));
	tsock_batch_release(fixture_take(&g, 8));
	assert_false(fixture_rang(&g));
	fixture_close(&g);
}

static void *release_it(void *b)
{
	tsock_batch_release(b);
	return NULL;
}

/* The producer may go on when the tail says so, whatever follows that. */
static void who_tells_the_tail_may_be_slow(void **state)
{
	const uint64_t full = UINT64_MAX - 1;
	struct tsock_batch *b[CAPACITY / BATCH];
	unsigned n = CAPACITY / BATCH;
	pthread_t thread;
	uint64_t rings;
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	for (unsigned i = 0; i < n; i++)
		b[i] = fixture_take(&g, BATCH);
	while (--n > 0)
		tsock_batch_release(b[n]);
	/* To ring takes until somebody listens. */
	atomic_store(&g.f.ring.shared->gate_want, 0);
	assert_int_equal(write(g.event, &full, sizeof(full)), sizeof(full));
	assert_int_equal(fcntl(g.event, F_SETFL, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, release_it, b[0]), 0);
	while (fixture_tail(&g) < CAPACITY)
		sched_yield();
	for (n = 0; n < CAPACITY / BATCH; n++)
		b[n] = fixture_take(&g, BATCH);
	assert_int_equal(read(g.event, &rings, sizeof(rings)), sizeof(rings));
	pthread_join(thread, NULL);
	while (n > 0)
		tsock_batch_release(b[--n]);
	assert_int_equal(fixture_tail(&g), 2 * CAPACITY);
	fixture_close(&g);
}

static void batches_are_used_again(void **state)
{
	struct tsock_batch *seen[8];
	unsigned n = 0;
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_PRIVATE);
	for (unsigned i = 0; i < 100; i++) {
		struct tsock_batch *b = fixture_take(&g, 8),
				   *in = tsi_batch_of(b, "b");
		unsigned k = 0;

		while (k < n && seen[k] != in)
			k++;
		assert_true(k < 8);
		if (k == n)
			seen[n++] = in;
		tsock_batch_release(b);
	}
	assert_true(n <= 4);
	fixture_close(&g);
}

static void only_writable_batches_can_be_written(void **state)
{
	struct tsock_batch *b;
	struct fixture g;

	(void)state;
	for (unsigned pass = 0; pass < 2; pass++) {
		fixture_make(&g, fixture_big,
			     pass ? TSI_MAP_PRIVATE : TSI_MAP_SHARED);
		b = fixture_take(&g, 3);
		if (pass)
			assert_ptr_equal(tsock_batch_data_mut(b, 0),
					 tsock_batch_data(b, 0));
		else
			assert_null(tsock_batch_data_mut(b, 0));
		assert_null(tsock_batch_data(b, 2));
		assert_null(tsock_batch_data_mut(b, 2));
		assert_int_equal(tsock_batch_epoch(b), 0);
		tsock_batch_release(b);
		fixture_close(&g);
	}
}

/* ---- twice ---- */

static void a_second_release_frees_nobody_elses_batch(void **state)
{
	struct tsock_batch *a, *b;
	const struct tsock_batch *in;
	struct fixture g;
	void *none = &g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	a = fixture_take(&g, 8);
	in = tsi_batch_of(a, "a");
	tsock_batch_release(a);
	/* Until one lives where a did. */
	while (b = fixture_take(&g, 8), tsi_batch_of(b, "b") != in)
		tsock_batch_release(b);
	assert_ptr_not_equal(a, b);
	for (unsigned i = 0; i < 3; i++) {
		tsock_batch_release(a);
		assert_int_equal(fixture_tail(&g), g.head - 8);
		assert_int_equal(tsi_reader_held(g.r), 1);
	}
	assert_true(fixture_good(&g, b));
	/* And shows nobody else's samples. */
	assert_null(tsock_batch_data(a, 0));
	assert_int_equal(tsock_batch_count(a), 0);
	assert_int_equal(tsock_batch_dlpack(a, 0, 1, &none), TSOCK_EARG);
	assert_null(none);
	tsock_batch_release(b);
	assert_int_equal(fixture_tail(&g), g.head);
	fixture_close(&g);
	/* Also when its reader is gone; and what never was a batch. */
	tsock_batch_release(b);
	tsock_batch_release((struct tsock_batch *)&g);
	tsock_batch_release((struct tsock_batch *)(uintptr_t)1);
}

/* ---- forks ---- */

static pid_t fork_plainly(void)
{
	return fork();
}

/* As some languages' runtimes do, so that no handler hears of it. */
static pid_t fork_by_system_call(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void child_gives_nothing_back(pid_t (*make_child)(void))
{
	struct tsi_dl_versioned *m, *only;
	struct tsock_batch *b;
	struct fixture g;
	void *other;
	int status;
	pid_t pid;

	fixture_make(&g, fixture_big, TSI_MAP_PRIVATE);
	/* A batch that a tensor alone holds, then one with both. */
	b = fixture_take(&g, 8);
	assert_int_equal(tsock_batch_dlpack(b, 0, 1, (void **)&only), 0);
	tsock_batch_release(b);
	b = fixture_take(&g, 8);
	assert_int_equal(tsock_batch_dlpack(b, 0, 1, (void **)&m), 0);
	pid = make_child();
	assert_true(pid >= 0);
	if (pid == 0) {
		int bad = !fixture_good(&g, b);

		only->deleter(only);
		m->deleter(m);
		tsock_batch_release(b);
		tsock_batch_release(b);
		bad |= !fixture_good(&g, b) << 1;
		bad |= (tsock_batch_dlpack(b, 0, 1, &other) != TSOCK_EFORK)
		       << 2;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(fixture_tail(&g), 0);
	assert_true(fixture_good(&g, b));
	tsock_batch_release(b);
	assert_int_equal(fixture_tail(&g), 0);
	m->deleter(m);
	assert_int_equal(fixture_tail(&g), 0);
	only->deleter(only);
	assert_int_equal(fixture_tail(&g), 16);
	fixture_close(&g);
}

static void a_child_gives_nothing_back(void **state)
{
	(void)state;
	child_gives_nothing_back(fork_plainly);
}

static void nor_does_one_that_no_handler_heard_of(void **state)
{
	(void)state;
	child_gives_nothing_back(fork_by_system_call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tail_is_the_oldest_batch_else_the_position),
		cmocka_unit_test(tail_is_right_in_any_order_of_releases),
		cmocka_unit_test(copies_hold_nobody_up),
		cmocka_unit_test(
			the_oldest_are_made_private_when_room_is_needed),
		cmocka_unit_test(read_only_holder_is_told_what_it_holds),
		cmocka_unit_test(what_is_being_given_back_is_not_held),
		cmocka_unit_test(a_head_that_lies_is_an_error),
		cmocka_unit_test(
			the_claim_is_over_with_the_last_batch_that_shows_the_ring),
		cmocka_unit_test(kept_batches_outlive_claim_and_handle),
		cmocka_unit_test(the_eventfd_rings_when_the_writer_waits),
		cmocka_unit_test(who_tells_the_tail_may_be_slow),
		cmocka_unit_test(batches_are_used_again),
		cmocka_unit_test(only_writable_batches_can_be_written),
		cmocka_unit_test(a_second_release_frees_nobody_elses_batch),
		cmocka_unit_test(a_child_gives_nothing_back),
		cmocka_unit_test(nor_does_one_that_no_handler_heard_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
