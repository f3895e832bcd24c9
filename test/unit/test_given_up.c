/* SPDX-License-Identifier: MIT */
/*
 * test_given_up.c - a reader that the producer gave up knows it, and can't be
 * taken for the reader that has its row afterwards.
 */
#include "consumer/consumer.h"

#include <poll.h>

#include "test/lib/inproc.h"

/* The reader writes a tail that it can't have: the producer drops it. */
static void break_a_rule(struct inproc *st, tsock *t, uint64_t others)
{
	struct tsi_tail_page *page = tsi_reader_claim(t->reader)->page;

	atomic_store(&page->tail, UINT64_MAX);
	/* This reads the tails. */
	assert_int_equal(inproc_consumers(st), others);
}

static tsock *begin(void)
{
	tsock *t = inproc_join(8, 0);

	assert_int_equal(tsock_begin(t), 0);
	return t;
}

static void who_was_given_up_gets_no_batch(void **state)
{
	struct inproc st;
	tsock_batch *b;
	tsock *t;

	(void)state;
	inproc_serve_n(&st, 300);
	t = begin();
	tsock_batch_release(inproc_next(t));
	break_a_rule(&st, t, 0);
	assert_int_equal(tsock_next(t, 20000, &b), TSOCK_ELOST);
	tsock_close(t);
	inproc_stop(&st);
}

static void who_was_given_up_stays_so_when_its_row_is_given_on(void **state)
{
	struct inproc st;
	tsock_batch *b;
	tsock *t, *next;

	(void)state;
	inproc_serve_n(&st, 300);
	t = begin();
	tsock_batch_release(inproc_next(t));
	break_a_rule(&st, t, 0);
	next = begin();
	assert_int_equal(tsi_reader_claim(next->reader)->row,
			 tsi_reader_claim(t->reader)->row);
	assert_int_equal(tsock_next(t, 20000, &b), TSOCK_ELOST);
	/* Its leaving doesn't take the other one's row away. */
	tsock_close(t);
	for (unsigned i = 0; i < 40; i++) {
		b = inproc_next(next);
		assert_true(inproc_good(b, 300));
		tsock_batch_release(b);
		if (i == 37)
			assert_int_equal(tsock_next(next, 0, &b), TSOCK_EEPOCH);
		if (i == 37)
			assert_int_equal(tsock_begin(next), 0);
	}
	tsock_close(next);
	inproc_stop(&st);
}

/* Its slots may have been written anew before the ring was closed. */
static void who_was_given_up_gets_no_batch_of_a_closed_ring(void **state)
{
	struct inproc st;
	tsock_batch *b;
	tsock *t, *stays;

	(void)state;
	inproc_serve_n(&st, 300);
	t = begin();
	stays = begin();
	tsock_batch_release(inproc_next(t));
	while (tsi_claim_head(tsi_reader_claim(t->reader)) < 16)
		poll(NULL, 0, 1);
	break_a_rule(&st, t, 1);
	inproc_stop(&st);
	assert_int_equal(tsock_next(t, 20000, &b), TSOCK_ELOST);
	tsock_close(t);
	b = inproc_next(stays);
	assert_true(inproc_good(b, 300));
	tsock_batch_release(b);
	tsock_close(stays);
}

/* The producer undoes that where the reader has just got on. */
static void who_saw_that_it_was_detached_doesnt_forget_it(void **state)
{
	static struct tsi_ring_shared ring;
	struct tsi_claim c = tsi_claim_none();

	(void)state;
	c.ring = &ring;
	c.row = 3;
	c.reader = 7;
	atomic_store(&ring.reader[3], 7);
	assert_false(tsi_claim_detached(&c));
	atomic_store(&ring.reader[3], 7 | TSI_ROW_DETACHED);
	assert_true(tsi_claim_detached(&c));
	assert_false(tsi_claim_stands(&c));
	atomic_store(&ring.reader[3], 7);
	assert_true(tsi_claim_detached(&c));
	/* Nor is another reader meant. */
	c.detached = false;
	atomic_store(&ring.reader[3], 8 | TSI_ROW_DETACHED);
	assert_false(tsi_claim_detached(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_given_up_gets_no_batch),
		cmocka_unit_test(
			who_was_given_up_stays_so_when_its_row_is_given_on),
		cmocka_unit_test(
			who_was_given_up_gets_no_batch_of_a_closed_ring),
		cmocka_unit_test(who_saw_that_it_was_detached_doesnt_forget_it),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests_name("given_up", tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
