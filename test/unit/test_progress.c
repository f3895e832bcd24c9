/* SPDX-License-Identifier: MIT */
/*
 * test_progress.c - how far a job has come in its epoch.
 */
#include "consumer/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N 100

/* A rank of so many, with batches of 8, in the epoch that begins at start. */
static struct tsi_progress reading(uint64_t start, uint32_t rank,
				   uint32_t world)
{
	struct tsi_ranks ranks = { .rank = rank, .world = world, .batch = 8 };
	struct tsi_progress p;

	tsi_progress_init(&p, N, ranks);
	tsi_progress_set_last(&p, UINT64_MAX);
	tsi_progress_begin(&p, start, start + N);
	return p;
}

/* On to the next block; where the rank's batch begins there, or UINT64_MAX. */
static uint64_t go_on(struct tsi_progress *p)
{
	uint64_t pos;

	return tsi_progress_move(p, tsi_progress_next_block(p), &pos)
		       ? pos
		       : UINT64_MAX;
}

static void is_at(const struct tsi_progress *p, bool done, uint64_t start,
		  uint64_t samples)
{
	uint64_t s = 1, n = 1;

	tsi_progress_position(p, done, &s, &n);
	assert_int_equal(s, start);
	assert_int_equal(n, samples);
}

static void an_epoch_is_read_to_its_end(void **state)
{
	struct tsi_progress p = reading(300, 0, 1);

	(void)state;
	assert_int_equal(tsi_progress_epoch(&p), 3);
	assert_int_equal(tsi_progress_end(&p), 400);
	is_at(&p, false, 300, 0);
	for (uint64_t i = 1; i <= 12; i++) {
		assert_int_equal(tsi_progress_next(&p), 8);
		assert_int_equal(go_on(&p), 300 + 8 * i);
		is_at(&p, false, 300, 8 * i);
	}
	assert_int_equal(tsi_progress_next(&p), 4);
	assert_int_equal(go_on(&p), UINT64_MAX);
	assert_int_equal(tsi_progress_next(&p), 0);
	is_at(&p, false, 300, N);
}

/* Blocks of 24 samples, and a last one of 4 for three ranks. */
static void a_rank_passes_by_what_is_the_others(void **state)
{
	struct tsi_progress p = reading(0, 2, 3);
	uint64_t pos;

	(void)state;
	assert_true(tsi_progress_move(&p, 0, &pos));
	assert_int_equal(pos, 16);
	assert_int_equal(go_on(&p), 24 + 16);
	assert_int_equal(go_on(&p), 48 + 16);
	assert_int_equal(go_on(&p), 72 + 16);
	is_at(&p, false, 0, 72);
	/* Parts of two samples each, of which the last ones overlap. */
	assert_int_equal(go_on(&p), 96 + 2);
	assert_int_equal(tsi_progress_next(&p), 2);
	assert_int_equal(go_on(&p), UINT64_MAX);
}

static void nothing_comes_after_the_streams_end(void **state)
{
	struct tsi_progress p = reading(0, 0, 1);

	(void)state;
	tsi_progress_set_last(&p, 13);
	assert_int_equal(tsi_progress_left(&p), 13);
	assert_int_equal(tsi_progress_next(&p), 8);
	assert_int_equal(go_on(&p), 8);
	assert_int_equal(tsi_progress_next(&p), 5);
	assert_int_equal(go_on(&p), UINT64_MAX);
	assert_int_equal(tsi_progress_left(&p), 0);
	tsi_progress_set_last(&p, 3); /* before the block */
	assert_int_equal(tsi_progress_left(&p), 0);
}

static void a_saved_position_is_the_epochs_and_how_much_of_it(void **state)
{
	struct tsi_progress p = reading(200, 0, 1);
	uint64_t pos;

	(void)state;
	assert_true(tsi_progress_move(&p, 240, &pos));
	is_at(&p, false, 200, 40);
	is_at(&p, true, 200, N);
	/* An epoch that was begun late: its numbers are those of the whole. */
	tsi_progress_begin(&p, 350, 400);
	is_at(&p, false, 300, 50);
	/* Dropping the last samples, it has come to its end at sample 396. */
	p.ranks.drop_last = true;
	assert_false(tsi_progress_move(&p, 396, &pos));
	is_at(&p, false, 300, N);
}

static void an_epoch_with_a_batch_left_is_begun_again(void **state)
{
	struct tsi_progress p = reading(200, 0, 1);
	uint64_t pos;

	(void)state;
	assert_true(tsi_progress_move(&p, 296, &pos));
	tsi_progress_rewind(&p);
	assert_int_equal(tsi_progress_end(&p), 200);
	is_at(&p, false, 200, 0);

	p = reading(200, 0, 1);
	assert_false(tsi_progress_move(&p, 300, &pos));
	tsi_progress_rewind(&p);
	assert_int_equal(tsi_progress_end(&p), 300);

	tsi_progress_init(&p, N, p.ranks);
	assert_int_equal(tsi_progress_epoch(&p), TSI_PROGRESS_NONE);
	tsi_progress_rewind(&p);
	assert_int_equal(tsi_progress_end(&p), 0);
}

static void skipping_ends_at_the_epochs_end(void **state)
{
	struct tsi_progress p = reading(100, 0, 1);
	uint64_t pos;

	(void)state;
	assert_int_equal(tsi_progress_ahead(&p, 0), 100);
	assert_int_equal(tsi_progress_ahead(&p, 30), 130);
	assert_int_equal(tsi_progress_ahead(&p, N), 200);
	assert_int_equal(tsi_progress_ahead(&p, UINT64_MAX), 200);
	assert_true(tsi_progress_move(&p, 190, &pos));
	assert_int_equal(tsi_progress_ahead(&p, 9), 199);
	assert_int_equal(tsi_progress_ahead(&p, 11), 200);
	/* The other ranks skip as much. */
	p = reading(100, 1, 4);
	assert_int_equal(tsi_progress_ahead(&p, 16), 164);
	assert_int_equal(tsi_progress_ahead(&p, 25), 200);
	assert_int_equal(tsi_progress_ahead(&p, 26), 200);
	assert_int_equal(tsi_progress_ahead(&p, UINT64_MAX / 2), 200);
}

static void whole_epochs_that_were_missed_are_passed_by(void **state)
{
	struct tsi_progress p = reading(100, 0, 1);

	(void)state;
	assert_int_equal(tsi_progress_next_epoch(&p, 150), 200);
	assert_int_equal(tsi_progress_next_epoch(&p, 200), 200);
	assert_int_equal(tsi_progress_next_epoch(&p, 299), 200);
	assert_int_equal(tsi_progress_next_epoch(&p, 300), 300);
	assert_int_equal(tsi_progress_next_epoch(&p, 555), 500);
}

static void what_was_missed_is_counted(void **state)
{
	struct tsi_progress p = reading(100, 0, 1);
	uint64_t pos;

	(void)state;
	assert_true(tsi_progress_move(&p, 120, &pos));
	assert_int_equal(tsi_progress_miss(&p, 120, 120), 0);
	assert_int_equal(tsi_progress_miss(&p, 120, 110), 0);
	is_at(&p, false, 100, 20);
	assert_int_equal(tsi_progress_miss(&p, 120, 150), 30);
	is_at(&p, false, 100, 50);
	assert_int_equal(tsi_progress_next(&p), 8);
	/* Also beyond the epoch, of which nothing is left then. */
	assert_int_equal(tsi_progress_miss(&p, 150, 260), 110);
	assert_int_equal(tsi_progress_next(&p), 0);
}

static void the_last_epoch_is_known(void **state)
{
	struct tsi_progress p = reading(100, 0, 1);

	(void)state;
	assert_false(tsi_progress_was_last(&p, 0));
	assert_false(tsi_progress_was_last(&p, 3));
	assert_true(tsi_progress_was_last(&p, 2));
	tsi_progress_rewind(&p);
	assert_false(tsi_progress_was_last(&p, 2));
	tsi_progress_init(&p, N, p.ranks);
	assert_false(tsi_progress_was_last(&p, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_epoch_is_read_to_its_end),
		cmocka_unit_test(a_rank_passes_by_what_is_the_others),
		cmocka_unit_test(nothing_comes_after_the_streams_end),
		cmocka_unit_test(
			a_saved_position_is_the_epochs_and_how_much_of_it),
		cmocka_unit_test(an_epoch_with_a_batch_left_is_begun_again),
		cmocka_unit_test(skipping_ends_at_the_epochs_end),
		cmocka_unit_test(whole_epochs_that_were_missed_are_passed_by),
		cmocka_unit_test(what_was_missed_is_counted),
		cmocka_unit_test(the_last_epoch_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
