/* SPDX-License-Identifier: MIT */
/*
 * test_old_ring.c - a reader that is still busy with what a dead producer has
 * made: those that have read all of it go on as it goes on, and so does it.
 */
#include "test/lib/next_producer.h"

#define BATCH 16
#define RING 256      /* samples that the first producer makes */
#define SOON_MS 30000 /* half of the time that a silent reader is waited for */

/* A process that takes as many batches as it is told. */
struct slow {
	pid_t pid;
	int go[2], done[2]; /* pipes: a byte for each batch */
};

static void read_as_told(const struct slow *s, const struct source *src)
{
	struct reader r = { .src = src, .batch = BATCH };
	tsock *t = reader_connect(&r);
	uint64_t next = 0;
	tsock_batch *b;
	char byte;

	need(!tsock_begin_timed(t, SOON_MS));
	while (read(s->go[0], &byte, 1) == 1) {
		need(!tsock_next(t, SOON_MS, &b));
		need(tsock_batch_seq(b) == next);
		next += tsock_batch_count(b);
		reader_check_batch(&r, b, 0);
		tsock_batch_release(b);
		need(write(s->done[1], &byte, 1) == 1);
	}
	tsock_close(t);
	_exit(0);
}

static struct slow start_slow(const struct source *src)
{
	struct slow s;

	assert_int_equal(pipe(s.go), 0);
	assert_int_equal(pipe(s.done), 0);
	s.pid = proc_spawn();
	if (!s.pid) {
		close(s.go[1]);
		read_as_told(&s, src);
	}
	close(s.go[0]);
	close(s.done[1]);
	return s;
}

static void take(const struct slow *s, unsigned batches)
{
	char byte = 0;

	while (batches--) {
		assert_int_equal(write(s->go[1], &byte, 1), 1);
		assert_int_equal(read(s->done[0], &byte, 1), 1);
	}
}

/* The next samples, up to that one. */
static void read_to(tsock *t, uint64_t *at, uint64_t end)
{
	tsock_batch *b;

	while (*at < end) {
		assert_int_equal(tsock_next(t, SOON_MS, &b), 0);
		assert_int_equal(tsock_batch_seq(b), *at);
		*at += tsock_batch_count(b);
		tsock_batch_release(b);
	}
}

static void others_go_on_as_a_reader_of_the_old_ring_does(void **state)
{
	struct source src = next_producer_restart("old");
	struct reader me = { .src = &src, .batch = BATCH };
	struct next_producer next = next_producer_prepare(src);
	pid_t producer = stream_start_producer(&src), successor;
	struct slow slow = start_slow(&src);
	tsock *t = reader_connect(&me);
	uint64_t at = 0;
	tsock_batch *b;

	(void)state;
	stream_wait_readers(src.name, 1);
	assert_int_equal(tsock_begin_timed(t, SOON_MS), 0);
	/* This reader is at the ring's end, the other one at its beginning. */
	read_to(t, &at, RING);
	proc_kill_and_reap(producer);
	successor = next_producer_begin(&next);
	/* Beyond what is kept for the other one there is nothing. */
	assert_int_equal(tsock_next(t, 1500, &b), TSOCK_EAGAIN);
	for (unsigned i = 1; i <= 4; i++) {
		take(&slow, 2);
		read_to(t, &at, RING + i * 2 * BATCH);
	}
	/* Past the end of what the first one has made. */
	take(&slow, RING / BATCH - 8);
	read_to(t, &at, RING + RING);
	take(&slow, 4);
	read_to(t, &at, RING + RING + 4 * BATCH);
	close(slow.go[1]);
	assert_int_equal(proc_ended(slow.pid), 0);
	close(slow.done[0]);
	tsock_close(t);
	proc_kill_and_reap(successor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			others_go_on_as_a_reader_of_the_old_ring_does,
			proc_end_children),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("old_ring", tests, NULL, NULL);
}
