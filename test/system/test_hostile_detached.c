/* SPDX-License-Identifier: MIT */
/*
 * test_hostile_detached.c - a reader that others wait for, and that lies about
 * what it has in hand, harms itself alone.
 */
#include "test/lib/reader.h"

#include <stdatomic.h>

#include "consumer/consumer.h"
#include "ring/header.h"

#define LIMIT_MS 300
#define PAYLOAD 3000

/* A batch, without a word in the tail page that it looks at any: that is what
 * the producer goes by. */
static tsock_batch *take_secretly(tsock *t, uint64_t n)
{
	const struct tsi_claim *c = tsi_reader_claim(t->reader);
	tsock_batch *b;

	while (tsi_claim_head(c) < tsi_reader_pos(t->reader) + n)
		proc_pause_us(1000);
	need(tsi_reader_acquire(t->reader, n, &b) == 0);
	need(atomic_load(&c->page->generation) == 0);
	return b;
}

static uint32_t generation_of(tsock *t)
{
	return tsi_header_generation(tsi_reader_claim(t->reader)->ring);
}

/* Reads all when the byte has come: a later fork would copy threads. */
static pid_t start_when_told(const struct reader *r, int go)
{
	pid_t pid = proc_spawn();
	char byte;

	if (pid)
		return pid;
	need(read(go, &byte, 1) == 1);
	reader_read_all(r);
	_exit(0);
}

static void who_denies_what_it_has_in_hand_harms_itself_alone(void **state)
{
	struct source src = { .name = "denies",
			      .n = 1000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = PAYLOAD,
			      .slow_ms = LIMIT_MS,
			      .detach = true };
	struct reader liar = { .src = &src, .batch = 16 };
	struct reader honest = { .src = &src, .batch = 16, .epochs = 2 };
	pid_t producer = stream_start_producer(&src), pid;
	uint8_t was[PAYLOAD];
	tsock_batch *b;
	int go[2];
	tsock *t;

	(void)state;
	need(pipe(go) == 0);
	pid = start_when_told(&honest, go[0]);
	t = reader_connect(&liar);
	need(tsock_begin(t) == 0);
	b = take_secretly(t, 16);
	reader_check_batch(&liar, b, 0);
	memcpy(was, tsock_batch_data(b, 0), PAYLOAD);
	/* The other reader gets every sample, once and whole, and waits. */
	need(write(go[1], "", 1) == 1);
	assert_int_equal(proc_ended(pid), 0);
	assert_int_equal(stream_stats("denies").detached, 1);
	assert_int_equal(generation_of(t), 1);
	assert_memory_not_equal(tsock_batch_data(b, 0), was, PAYLOAD);
	/* The liar is told, and goes on like any detached reader: its epoch is
	 * over. */
	tsock_batch_release(b);
	assert_int_equal(tsock_next(t, -1, &b), TSOCK_EEPOCH);
	assert_true(tsock_missed(t) >= src.n - 16);
	need(tsock_begin(t) == 0 && tsock_next(t, -1, &b) == 0);
	reader_check_batch(&liar, b, 0);
	tsock_batch_release(b);
	tsock_close(t);
	proc_kill_and_reap(producer);
	close(go[0]);
	close(go[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			who_denies_what_it_has_in_hand_harms_itself_alone,
			proc_end_children),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("hostile_detached", tests, NULL,
					   NULL);
}
