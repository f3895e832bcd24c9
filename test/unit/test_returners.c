/* SPDX-License-Identifier: MIT */
/*
 * test_returners.c - readers of the producer before: whom the next one waits
 * for.
 */
#include "serve/returners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct tsi_returners t;
static uint64_t from;

static struct tsi_reader_row row_of(uint8_t name, uint64_t mark)
{
	struct tsi_reader_row row = { .pid = name, .born = 7, .mark = mark };

	memset(row.nonce, name, sizeof(row.nonce));
	return row;
}

/* Readers 1 to n, at marks of ten times their number. */
static void expect(uint8_t n)
{
	memset(&t, 0, sizeof(t));
	from = UINT64_MAX;
	for (uint8_t i = 1; i <= n; i++) {
		struct tsi_reader_row row = row_of(i, i * 10u);

		tsi_returners_add(&t, &row, 0);
	}
}

static bool asks(uint8_t name, uint64_t position, int64_t now)
{
	struct tsi_msg_join j = { .position = position,
				  .epoch_end = position + 1 };

	memset(j.was, name, sizeof(j.was));
	return tsi_returners_ask(&t, &j, now);
}

static bool takes(uint8_t name)
{
	uint8_t was[TSI_NONCE];

	memset(was, name, sizeof(was));
	return tsi_returners_take(&t, was);
}

static void without_a_record_nobody_is_waited_for(void **state)
{
	(void)state;
	expect(0);
	assert_false(tsi_returners_collect(&t));
	assert_int_equal(tsi_returners_step(&t, 0, &from), TSI_RETURNERS_WAIT);
	assert_false(asks(1, 5, 0));
}

static void the_stream_goes_on_at_the_least_position(void **state)
{
	(void)state;
	expect(2);
	assert_true(tsi_returners_collect(&t));
	assert_true(asks(2, 90, 10));
	assert_int_equal(tsi_returners_step(&t, 10, &from), TSI_RETURNERS_WAIT);
	assert_true(asks(1, 80, 20));
	assert_int_equal(tsi_returners_step(&t, 20, &from), TSI_RETURNERS_HOLD);
	assert_int_equal(from, 80);
	assert_false(tsi_returners_collect(&t));
	assert_true(takes(2));
	assert_int_equal(tsi_returners_step(&t, 30, &from), TSI_RETURNERS_WAIT);
	assert_true(takes(1));
	assert_int_equal(tsi_returners_step(&t, 30, &from),
			 TSI_RETURNERS_RELEASE);
	assert_int_equal(tsi_returners_step(&t, 30, &from), TSI_RETURNERS_WAIT);
}

/* The reader is where its tail was, or further on. */
static void the_mark_stands_for_a_reader_that_is_busy(void **state)
{
	(void)state;
	expect(2);
	assert_true(asks(2, 90, 10));
	assert_int_equal(tsi_returners_step(&t, 499, &from),
			 TSI_RETURNERS_WAIT);
	assert_int_equal(tsi_returners_step(&t, 500, &from),
			 TSI_RETURNERS_HOLD);
	assert_int_equal(from, 10);
	assert_true(takes(2));
	assert_int_equal(tsi_returners_step(&t, 60000, &from),
			 TSI_RETURNERS_WAIT);
	assert_false(tsi_returners_late(&t, 0, 59999));
	assert_true(tsi_returners_late(&t, 0, 60000));
	/* Nor is one late that is back. */
	assert_false(tsi_returners_late(&t, 1, 60000));
	tsi_returners_give_up(&t, 0);
	assert_int_equal(tsi_returners_step(&t, 60000, &from),
			 TSI_RETURNERS_RELEASE);
}

/* The reader reads the dead producer's samples, and asks after that. */
static void what_is_held_follows_a_tail_that_is_seen(void **state)
{
	(void)state;
	expect(2);
	assert_true(asks(2, 90, 10));
	tsi_returners_see(&t, 0, 4, 20); /* the mark is newer */
	assert_int_equal(tsi_returners_step(&t, 500, &from),
			 TSI_RETURNERS_HOLD);
	assert_int_equal(from, 10);
	tsi_returners_see(&t, 0, 10, 600);
	assert_int_equal(tsi_returners_step(&t, 600, &from),
			 TSI_RETURNERS_WAIT);
	tsi_returners_see(&t, 0, 40, 700);
	assert_int_equal(tsi_returners_step(&t, 700, &from),
			 TSI_RETURNERS_FOLLOW);
	assert_int_equal(from, 40);
	tsi_returners_see(&t, 0, 30, 800); /* no tail goes back */
	assert_int_equal(tsi_returners_step(&t, 800, &from),
			 TSI_RETURNERS_WAIT);
	/* Its time begins anew when it moves, and that of others doesn't. */
	assert_false(tsi_returners_late(&t, 0, 60699));
	assert_true(tsi_returners_late(&t, 0, 60700));
	assert_true(tsi_returners_late(&t, 1, 60000));
	/* The first is further than the other, which has still to return. */
	tsi_returners_see(&t, 0, 200, 900);
	assert_int_equal(tsi_returners_step(&t, 900, &from),
			 TSI_RETURNERS_FOLLOW);
	assert_int_equal(from, 90);
	assert_true(takes(2));
	assert_int_equal(tsi_returners_step(&t, 900, &from),
			 TSI_RETURNERS_FOLLOW);
	assert_int_equal(from, 200);
	/* What it says is newer than what was seen. */
	assert_true(asks(1, 210, 910));
	assert_int_equal(tsi_returners_step(&t, 910, &from),
			 TSI_RETURNERS_FOLLOW);
	assert_int_equal(from, 210);
	assert_true(takes(1));
	assert_int_equal(tsi_returners_step(&t, 920, &from),
			 TSI_RETURNERS_RELEASE);
	tsi_returners_see(&t, 1, 300, 930); /* it isn't awaited */
	assert_int_equal(tsi_returners_step(&t, 930, &from),
			 TSI_RETURNERS_WAIT);
}

static void a_reader_of_an_older_producer_sets_no_start(void **state)
{
	(void)state;
	expect(1);
	assert_false(asks(9, 3, 10));
	assert_true(asks(1, 40, 10));
	assert_int_equal(tsi_returners_step(&t, 10, &from), TSI_RETURNERS_HOLD);
	assert_int_equal(from, 40);
	assert_false(takes(9));
}

static void the_dead_are_not_waited_for(void **state)
{
	unsigned i = 0;

	(void)state;
	expect(2);
	assert_int_equal(tsi_returners_next(&t, &i)->pid, 1);
	tsi_returners_give_up(&t, i);
	assert_true(asks(2, 25, 10));
	assert_int_equal(tsi_returners_step(&t, 10, &from), TSI_RETURNERS_HOLD);
	assert_int_equal(from, 25);
	i = 0;
	tsi_returners_next(&t, &i);
	tsi_returners_give_up(&t, i);
	assert_int_equal(tsi_returners_step(&t, 20, &from),
			 TSI_RETURNERS_RELEASE);
}

/* One that asked, and does so no longer, is gone; but not one that couldn't. */
static void silence_counts_while_this_producer_listens(void **state)
{
	(void)state;
	expect(2);
	assert_true(asks(2, 25, 10));
	for (int64_t now = 10; now <= 10000; now += 999)
		tsi_returners_look(&t, now);
	assert_false(tsi_returners_silent(&t, 1, 10010));
	assert_true(tsi_returners_silent(&t, 1, 10011));
	assert_false(tsi_returners_silent(&t, 0, 10011));
	/* The producer itself was stopped for most of a minute. */
	tsi_returners_look(&t, 50000);
	assert_false(tsi_returners_silent(&t, 1, 50000));
	assert_true(asks(2, 25, 50010));
	assert_true(tsi_returners_silent(&t, 1, 60011));
	/* Nor is that time one in which it could have been waited for. */
	assert_false(tsi_returners_late(&t, 0, 60011));
}

/* Its next claim was recorded, and the reply never came: whose is the row? */
static void a_claim_that_was_never_heard_of_goes_by_the_one_before(void **state)
{
	struct tsi_reader_row row = row_of(9, 60);
	uint8_t none[TSI_NONCE] = { 0 };

	(void)state;
	expect(1);
	memset(row.was, 8, sizeof(row.was));
	tsi_returners_add(&t, &row, 0);
	assert_true(asks(8, 90, 10));
	assert_int_equal(tsi_returners_find(&t, row.nonce)->mark, 60);
	assert_true(takes(8));
	assert_false(takes(9));
	assert_null(tsi_returners_find(&t, none));
	assert_int_equal(t.count, 1);
}

/* They will begin where it has, so that has to be there for them. */
static void a_rank_whose_job_has_not_begun_stands_where_it_began(void **state)
{
	struct tsi_reader_row row = row_of(1, 60);

	(void)state;
	expect(0);
	row.together = 1;
	tsi_returners_add(&t, &row, 0);
	tsi_returners_see(&t, 0, 80, 5);
	assert_true(asks(1, 90, 10));
	assert_int_equal(tsi_returners_step(&t, 10, &from), TSI_RETURNERS_HOLD);
	assert_int_equal(from, 60);
	assert_int_equal(tsi_returners_find(&t, row.nonce)->mark, 60);
}

/* The server waits for no more than it can keep apart. */
static void of_too_many_readers_the_first_are_waited_for(void **state)
{
	struct tsi_reader_row row = row_of(1, 60);

	(void)state;
	expect(0);
	for (unsigned i = 0; i < TSI_RETURNERS; i++) {
		row.nonce[1] = (uint8_t)i;
		assert_true(tsi_returners_add(&t, &row, 0));
	}
	row.nonce[0]++;
	assert_false(tsi_returners_add(&t, &row, 0));
	assert_null(tsi_returners_find(&t, row.nonce));
}

static void
a_place_without_a_reader_is_neither_silent_nor_given_up(void **state)
{
	(void)state;
	expect(1);
	assert_true(asks(1, 25, 10));
	assert_true(tsi_returners_silent(&t, 0, 20000));
	assert_false(tsi_returners_silent(&t, 1, 20000));
	tsi_returners_give_up(&t, 1);
	assert_int_equal(t.count, 1);
	tsi_returners_give_up(&t, 0);
	assert_false(tsi_returners_silent(&t, 0, 20000));
	assert_int_equal(t.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_record_nobody_is_waited_for),
		cmocka_unit_test(the_stream_goes_on_at_the_least_position),
		cmocka_unit_test(the_mark_stands_for_a_reader_that_is_busy),
		cmocka_unit_test(what_is_held_follows_a_tail_that_is_seen),
		cmocka_unit_test(a_reader_of_an_older_producer_sets_no_start),
		cmocka_unit_test(
			a_rank_whose_job_has_not_begun_stands_where_it_began),
		cmocka_unit_test(the_dead_are_not_waited_for),
		cmocka_unit_test(of_too_many_readers_the_first_are_waited_for),
		cmocka_unit_test(
			a_place_without_a_reader_is_neither_silent_nor_given_up),
		cmocka_unit_test(silence_counts_while_this_producer_listens),
		cmocka_unit_test(
			a_claim_that_was_never_heard_of_goes_by_the_one_before),
	};

	return cmocka_run_group_tests_name("returners", tests, NULL, NULL);
}
