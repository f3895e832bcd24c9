/* SPDX-License-Identifier: MIT */
/*
 * test_readers_record.c - readers of a producer that died: for which of them the
 * next producer waits, and how long.
 */
#include "test/lib/readers_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "serve/readers_record.h"
#include "wire/peer.h"

#define STREAM 5
#define T0 1000 /* when the next producer began */

static char folder[] = "/tmp/tsock-record-XXXXXX";

/* The lock is released while the record is written. */
static int begin_locked(void **state)
{
	readers_begin(state);
	tsi_sync_lock(&readers_sync);
	return 0;
}

static int end(void **state)
{
	tsi_sync_unlock(&readers_sync);
	tsi_readers_leave_record(&readers_table, false);
	return readers_stop(state);
}

static struct tsi_reader_row row_of(uint8_t name, uint8_t was)
{
	struct tsi_reader_row row = { .pid = 0 };

	memset(row.nonce, name, TSI_NONCE);
	memset(row.was, was, TSI_NONCE);
	return row;
}

/* The next producer reads what the one before has left. */
static void goes_on_after(const struct tsi_reader_row *row, unsigned n)
{
	static struct tsi_record r;

	tsi_record_init(&r);
	tsi_record_open(&r, folder, "s", STREAM, 1);
	for (unsigned i = 0; i < n; i++)
		tsi_record_put(&r, &row[i]);
	assert_true(tsi_record_collect(&r));
	tsi_record_write(&r);
	close(r.fd);
	tsi_readers_keep_record(&readers_table, folder, "s", STREAM, 1);
}

static bool awaited(uint8_t name)
{
	const struct tsi_reader_row *row;
	uint8_t nonce[TSI_NONCE];

	memset(nonce, name, TSI_NONCE);
	for (unsigned i = 0;
	     (row = tsi_returners_next(&readers_table.returners, &i)); i++)
		if (!memcmp(row->nonce, nonce, TSI_NONCE))
			return true;
	return false;
}

static unsigned count_recorded(void)
{
	struct tsi_reader_row row;
	unsigned n = 0;

	for (unsigned i = 0; tsi_record_next(&readers_table.record, &i, &row);
	     i++)
		n++;
	return n;
}

/* Two producers died while it returned.  By its last claim it names the one of
 * the two before that it has heard of: the other one is nobody's. */
static void who_has_another_claim_since_is_awaited_by_that_alone(void **state)
{
	const struct tsi_reader_row row[] = {
		row_of(1, 0),  row_of(2, 1), /* the first was heard of */
		row_of(3, 9),  row_of(4, 9), /* one of them was, ... */
		row_of(5, 4), /* ... since this one was asked for */
		row_of(6, 10), row_of(7, 10), /* which was isn't known */
		row_of(8, 0),                 /* had none before */
	};

	(void)state;
	goes_on_after(row, sizeof(row) / sizeof(row[0]));
	for (uint8_t i = 1; i <= 8; i++)
		assert_int_equal(awaited(i), i == 2 || i >= 5);
	assert_int_equal(readers_table.returners.count, 5);
	assert_int_equal(count_recorded(), 5);
	assert_int_equal(tsi_membership_held_from(&membership_m), 0);
}

/* The file has more rows than there can be readers. */
static void no_more_are_awaited_than_can_read(void **state)
{
	static struct tsi_reader_row row[TSI_RETURNERS + 10];

	(void)state;
	for (unsigned i = 0; i < TSI_RETURNERS + 10; i++)
		row[i].nonce[i / 255] = (uint8_t)(1 + i % 255);
	/* And one cannot be. */
	row[7].mark = UINT64_MAX;
	goes_on_after(row, TSI_RETURNERS + 10);
	assert_int_equal(readers_table.returners.count, TSI_RETURNERS);
	assert_int_equal(count_recorded(), TSI_RETURNERS);
	assert_null(tsi_returners_find(&readers_table.returners, row[7].nonce));
}

static void when_none_can_return_nobody_is_waited_for(void **state)
{
	struct tsi_reader_row row = row_of(1, 0);

	(void)state;
	row.mark = UINT64_MAX;
	goes_on_after(&row, 1);
	assert_int_equal(readers_table.returners.count, 0);
	assert_int_equal(count_recorded(), 0);
	assert_int_equal(tsi_membership_held_from(&membership_m), TSI_NEVER);
}

static void adds(uint8_t name, uint32_t pid, uint64_t born)
{
	struct tsi_reader_row row = row_of(name, 0);

	row.pid = pid;
	row.born = born;
	assert_true(tsi_returners_add(&readers_table.returners, &row, T0));
}

/* Another process has its number by now; of some nobody can tell. */
static void who_has_ended_is_not_waited_for(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	uint64_t born = tsi_peer_born(pid);

	(void)state;
	assert_true(born > 0);
	adds(1, pid, born);
	adds(2, pid, born + 1);
	adds(3, pid, 0);
	adds(4, 0, born);
	tsi_readers_await(&readers_table, T0 + 100);
	assert_true(awaited(1) && awaited(3) && awaited(4));
	assert_false(awaited(2));
	assert_true(tsi_returners_collect(&readers_table.returners));
}

static void asks(uint8_t name, int64_t now_ms)
{
	struct tsi_msg_join membership_join = { .epoch_end = N };

	memset(membership_join.was, name, TSI_NONCE);
	assert_true(tsi_returners_ask(&readers_table.returners,
				      &membership_join, now_ms));
}

/* A producer looks once a second; time between two looks that are further apart
 * doesn't count. */
static void looks_until(int64_t from, int64_t until)
{
	for (int64_t now = from; now <= until; now += 1000)
		tsi_readers_await(&readers_table, now);
}

/* Ten seconds of silence are an answer; one that never asked has a minute. */
static void who_asks_no_longer_is_not_waited_for(void **state)
{
	const int64_t grace = TSI_RETURNERS_GRACE_MS;

	(void)state;
	adds(1, 0, 0);
	adds(2, 0, 0);
	asks(1, T0);
	for (int64_t now = T0; now <= T0 + 10000; now += 1000) {
		tsi_readers_await(&readers_table, now);
		assert_true(awaited(1) && awaited(2));
	}
	assert_int_equal(tsi_membership_held_from(&membership_m), 0);
	tsi_readers_await(&readers_table, T0 + 10001);
	assert_false(awaited(1));
	assert_true(awaited(2));
	looks_until(T0 + 11000, T0 + grace - 1000);
	tsi_readers_await(&readers_table, T0 + grace - 1);
	assert_true(awaited(2));
	tsi_readers_await(&readers_table, T0 + grace);
	assert_false(awaited(2));
	assert_int_equal(tsi_membership_held_from(&membership_m), TSI_NEVER);
}

/* Nobody could be heard by a producer that was stopped. */
static void time_in_which_nobody_looked_does_not_count(void **state)
{
	const int64_t grace = TSI_RETURNERS_GRACE_MS, stopped = 100000;

	(void)state;
	adds(1, 0, 0);
	looks_until(T0, T0 + 30000);
	tsi_readers_await(&readers_table, T0 + 30000 + stopped);
	assert_true(awaited(1));
	looks_until(T0 + 31000 + stopped, T0 + grace - 1000 + stopped);
	assert_true(awaited(1));
	looks_until(T0 + grace + stopped, T0 + grace + stopped + 1000);
	assert_false(awaited(1));
}

/* What a busy reader's page says moves what is kept for it, unless no stream
 * comes that far. */
static void a_tail_that_cannot_be_is_not_seen(void **state)
{
	struct tsi_tail_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	adds(1, 0, 0);
	readers_table.last_tail[0].page = page;
	tsi_tail_page_move(page, 20);
	tsi_readers_await(&readers_table, T0 + 500);
	assert_int_equal(tsi_membership_held_from(&membership_m), 20);
	tsi_tail_page_move(page, UINT64_MAX);
	tsi_readers_await(&readers_table, T0 + 1000);
	assert_int_equal(tsi_membership_held_from(&membership_m), 20);
	assert_true(awaited(1));
	/* Nor does it count as a reader that moves. */
	looks_until(T0 + 1500, T0 + TSI_RETURNERS_GRACE_MS + 500);
	assert_false(awaited(1));
}

static void withdraws(uint8_t name)
{
	uint8_t nonce[TSI_NONCE];

	memset(nonce, name, TSI_NONCE);
	tsi_readers_withdraw(&readers_table, nonce);
}

static void takes_itself_off(uint8_t name)
{
	char path[sizeof(folder) + 2];
	uint8_t nonce[TSI_NONCE];
	struct tsi_address a;

	memset(nonce, name, TSI_NONCE);
	snprintf(path, sizeof(path), "%s/s", folder);
	assert_int_equal(tsi_address_choose(path, &a), 0);
	assert_true(tsi_record_file_leave(&a, nonce));
}

/* A LEAVE for a claim that came of another one may only withdraw a JOIN that
 * wasn't answered; the file tells. */
static void who_leaves_is_not_waited_for_if_it_means_that_claim(void **state)
{
	const struct tsi_reader_row row[] = { row_of(1, 11), row_of(2, 0),
					      row_of(3, 13), row_of(4, 14) };

	(void)state;
	goes_on_after(row, 4);
	withdraws(55);
	assert_int_equal(readers_table.returners.count, 4);
	withdraws(1);
	assert_true(awaited(1));
	takes_itself_off(1);
	withdraws(1);
	assert_false(awaited(1));
	withdraws(2);
	assert_false(awaited(2));
	/* The record knows only of the claim before. */
	withdraws(13);
	assert_false(awaited(3));
	assert_true(awaited(4));
	assert_int_equal(count_recorded(), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_locked, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_has_another_claim_since_is_awaited_by_that_alone),
		TEST(no_more_are_awaited_than_can_read),
		TEST(when_none_can_return_nobody_is_waited_for),
		TEST(who_has_ended_is_not_waited_for),
		TEST(who_asks_no_longer_is_not_waited_for),
		TEST(time_in_which_nobody_looked_does_not_count),
		TEST(a_tail_that_cannot_be_is_not_seen),
		TEST(who_leaves_is_not_waited_for_if_it_means_that_claim),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests_name("readers, recorded", tests, NULL,
					     NULL);
	rmdir(folder);
	return failed;
}
