/* SPDX-License-Identifier: MIT */
/*
 * test_waits.c - a consumer that has waited long is told for whom.
 */
#include "serve/waits.h"

#include <stdio.h>

#include "base/clock.h"
#include "test/lib/readers_fixture.h"

#define WAITED 10000

static struct tsi_waits waits;
static struct tsi_tail_page *page[4]; /* of reader 0, 1, ... */
static unsigned npages;
static char logged[16][1024];
static unsigned nlogged;
static int64_t now;

static void note_line(void *arg, int level, const char *line)
{
	(void)arg;
	if (level == TSOCK_LOG_WARN && nlogged < 16)
		snprintf(logged[nlogged++], sizeof(logged[0]), "%s", line);
}

static int begin_waiting(void **state)
{
	readers_begin(state);
	tsi_waits_init(&waits, &readers_table, &membership_m);
	npages = nlogged = 0;
	now = tsi_now_ms();
	tsock_set_logger(note_line, NULL);
	return 0;
}

static int stop_waiting(void **state)
{
	tsock_set_logger(NULL, NULL);
	while (npages)
		munmap(page[--npages], sizeof(*page[0]));
	return readers_stop(state);
}

static void joins(uint32_t world)
{
	struct tsi_offer o = readers_offer_of((uint8_t)(1 + npages));
	struct tsi_reply reply;

	o.join.world = world;
	assert_int_equal(readers_join_by(&o, &reply), 0);
	assert_int_equal(reply.row, npages);
	page[npages] = readers_page_of(npages);
	npages++;
	membership_fill_all();
}

/* The reader has taken all below position, and released all below tail. */
static void is_at(unsigned id, uint64_t tail, uint64_t position)
{
	tsi_tail_page_move(page[id], tail);
	tsi_tail_page_count(page[id], position, position);
	tsi_readers_refresh(&readers_table);
	membership_fill_all();
}

static struct tsi_msg_whom question(uint8_t name, uint64_t want)
{
	struct tsi_msg_whom q = { .pid = (uint32_t)getpid(),
				  .waited_ms = WAITED,
				  .want = want };

	memset(q.nonce, name, TSI_NONCE);
	return q;
}

/* What the reader is told that waits for a head. */
static struct tsock_wait ask(unsigned id, uint64_t want)
{
	struct tsi_msg_whom q = question((uint8_t)(1 + id), want);
	struct tsock_wait out;

	tsi_waits_answer(&waits, &q, now, &out);
	return out;
}

/* Two readers: the first has read all that fits, but a batch of the second. */
static void second_holds(uint64_t samples)
{
	joins(1);
	joins(1);
	is_at(0, C, C);
	is_at(1, 0, samples);
	/* They are one process here, and needn't be. */
	readers_table.conn[1].pid = 4242;
	now = tsi_now_ms();
}

static void who_holds_a_batch_is_named_with_it(void **state)
{
	struct tsock_wait w;

	(void)state;
	second_holds(4);
	now += 31000;
	w = ask(0, C + 4);
	assert_int_equal(w.kind, TSOCK_FOR_READER);
	assert_int_equal(w.pid, getpid());
	assert_int_equal(w.for_pid, 4242);
	assert_int_equal(w.waited_ms, WAITED);
	assert_int_equal(w.held_batches, 1);
	assert_int_equal(w.held_samples, 4);
	assert_string_equal(w.who, "process 4242");
	assert_non_null(strstr(w.why, ", which holds 1 batch (4 samples) and "
				      "has given none back for 31 s; a "
				      "producer that is started with "
				      "--slow=detach:SEC goes on without"));
}

static void who_does_not_go_on_is_named_too(void **state)
{
	struct tsock_wait w;

	(void)state;
	second_holds(0);
	tsi_readers_set_slow(&readers_table, TSOCK_SLOW_DETACH, 60000);
	now += 12000;
	w = ask(0, C + 4);
	assert_int_equal(w.held_batches, 0);
	/* The reader will be detached, which needs no advice. */
	assert_string_equal(w.why, ", which has taken no batch for 12 s");
}

static void what_a_rank_holds_is_not_what_the_others_read(void **state)
{
	struct tsock_wait w;

	(void)state;
	second_holds(4 + 3 * 4 + 4);
	readers_table.conn[1].world = 4;
	w = ask(0, C + 4);
	assert_int_equal(w.held_batches, 2);
	assert_int_equal(w.held_samples, 8);
	assert_null(strstr(w.why, "detach"));
}

static void a_loader_of_the_same_process_is_called_that(void **state)
{
	struct tsock_wait w;

	(void)state;
	second_holds(4);
	readers_table.conn[1].pid = (uint32_t)getpid();
	w = ask(0, C + 4);
	assert_string_equal(w.who, "another loader of its own process");
}

static void who_waits_for_samples_waits_for_the_producer(void **state)
{
	struct tsock_wait w;

	(void)state;
	joins(1);
	is_at(0, C, C);
	tsi_tail_page_move(page[0], 2 * C);
	tsi_readers_refresh(&readers_table);
	w = ask(0, 2 * C + 4);
	assert_int_equal(w.kind, TSOCK_FOR_PRODUCER);
	assert_int_equal(w.for_pid, getpid());
	assert_string_equal(w.why, ", which is making samples: 4 of those that "
				   "are due are missing");
	tsi_waits_doing(&waits, "reading /data/a\\nb.jpg", now);
	tsi_waits_doing(&waits, "reading /data/a\\nb.jpg", now + 9000);
	now += 12000;
	w = ask(0, 2 * C + 4);
	assert_string_equal(w.why, ", which has been reading /data/a\\nb.jpg "
				   "for 12 s");
	tsi_waits_doing(&waits, NULL, now);
	w = ask(0, 2 * C + 4);
	assert_non_null(strstr(w.why, "is making samples"));
}

static void who_waits_for_nothing_is_told_nothing(void **state)
{
	struct tsock_wait w;

	(void)state;
	joins(1);
	w = ask(0, 4);
	assert_int_equal(w.kind, TSOCK_FOR_NOTHING);
	assert_string_equal(w.who, "");
	assert_int_equal(nlogged, 0);
}

static void the_first_sample_waits_for_consumers(void **state)
{
	struct tsock_wait w;

	(void)state;
	membership_m.c.min_members = 3;
	joins(1);
	w = ask(0, 4);
	assert_int_equal(w.kind, TSOCK_FOR_CONSUMERS);
	assert_string_equal(w.who, "2 more consumers");
}

/* One of a job of two: the other hasn't asked. */
static void a_rank_that_asks_waits_for_the_others(void **state)
{
	struct tsi_offer o = readers_offer_of(7);
	struct tsi_msg_whom q = question(7, 0);
	struct tsock_stats st = { .nwaits = 0 };
	struct tsock_wait w;
	uint64_t start;

	(void)state;
	o.join.world = 2;
	o.join.returns = TSI_RETURNS;
	assert_int_equal(
		tsi_readers_forecast(&readers_table, &o.join, 0, &start),
		TSOCK_EAGAIN);
	tsi_waits_answer(&waits, &q, now, &w);
	assert_int_equal(w.kind, TSOCK_FOR_RANK);
	assert_string_equal(w.who, "rank 1 of 2 of its job");
	assert_non_null(
		strstr(w.why, "has not asked to begin (not connected)"));
	/* A wait is listed as long as the reader asks. */
	tsi_waits_stats(&waits, now, &st);
	assert_int_equal(st.nwaits, 1);
	tsi_waits_forget(&waits, q.nonce);
	st.nwaits = 0;
	tsi_waits_stats(&waits, now, &st);
	assert_int_equal(st.nwaits, 0);
}

/* Which ranks, of a job of many: all that have not asked. */
static void all_ranks_that_have_not_asked_are_named(void **state)
{
	static const struct {
		uint32_t world;
		const char *who;
	} of[] = {
		{ 4, "ranks 1, 2, 3 of 4 of its job" },
		{ 5, "ranks 1, 2, 3, 4 of 5 of its job" },
		{ 256, "ranks 1, 2, 3, 4 and 251 more of 256 of its job" },
	};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct tsi_offer o = readers_offer_of(7);
		struct tsi_msg_whom q = question(7, 0);
		struct tsock_wait w;
		uint64_t start;

		o.join.job[0] = (uint8_t)(i + 1);
		o.join.nonce[1] = q.nonce[1] = (uint8_t)(i + 1);
		o.join.world = of[i].world;
		o.join.returns = TSI_RETURNS;
		assert_int_equal(tsi_readers_forecast(&readers_table, &o.join,
						      0, &start),
				 TSOCK_EAGAIN);
		tsi_waits_answer(&waits, &q, now, &w);
		assert_string_equal(w.who, of[i].who);
		assert_non_null(strstr(w.why, ", which have not asked to begin "
					      "(none is connected)"));
	}
}

static void a_ring_that_is_made_is_waited_for_by_who_joins(void **state)
{
	struct tsi_msg_whom q = question(9, 0);
	struct tsock_wait w;

	(void)state;
	tsi_waits_answer(&waits, &q, now, &w);
	assert_int_equal(w.kind, TSOCK_FOR_PRODUCER);
	assert_string_equal(w.why, ", which prepares what was asked for");
}

static void the_log_has_a_wait_once(void **state)
{
	(void)state;
	second_holds(4);
	ask(0, C + 4);
	assert_int_equal(nlogged, 1);
	assert_non_null(strstr(logged[0], " has waited 10 s for process 4242, "
					  "which holds 1 batch (4 samples)"));
	now += WAITED;
	ask(0, C + 4);
	assert_int_equal(nlogged, 1);
	/* Another one is waited for. */
	readers_table.conn[1].pid = 4343;
	ask(0, C + 4);
	assert_int_equal(nlogged, 2);
	/* Long after that it is another wait. */
	now += 61000;
	ask(0, C + 4);
	assert_int_equal(nlogged, 3);
}

static void waits_that_go_on_are_listed_the_longest_first(void **state)
{
	struct tsock_stats st = { .nwaits = 0 };
	struct tsi_msg_whom q;
	struct tsock_wait w;

	(void)state;
	second_holds(4);
	joins(1);
	is_at(2, C, C);
	ask(0, C + 4);
	q = question(3, C + 4);
	q.waited_ms = 70000;
	tsi_waits_answer(&waits, &q, now, &w);
	tsi_waits_stats(&waits, now + 5000, &st);
	assert_int_equal(st.nwaits, 2);
	assert_int_equal(st.wait[0].waited_ms, 75000);
	assert_int_equal(st.wait[1].waited_ms, WAITED + 5000);
	assert_int_equal(st.wait[1].for_pid, 4242);
	/* Between two calls a reader's page says that it wants nothing. */
	tsi_readers_read_pages(&readers_table);
	st.nwaits = 0;
	tsi_waits_stats(&waits, now + 6000, &st);
	assert_int_equal(st.nwaits, 2);
	/* Readers that haven't asked for long, or go on, don't wait. */
	ask(0, C + 4);
	st.nwaits = 0;
	tsi_waits_stats(&waits, now + 30001, &st);
	assert_int_equal(st.nwaits, 0);
	is_at(1, C, C);
	st.nwaits = 0;
	tsi_waits_stats(&waits, now + 6000, &st);
	assert_int_equal(st.nwaits, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_waiting, stop_waiting)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_holds_a_batch_is_named_with_it),
		TEST(who_does_not_go_on_is_named_too),
		TEST(what_a_rank_holds_is_not_what_the_others_read),
		TEST(a_loader_of_the_same_process_is_called_that),
		TEST(who_waits_for_samples_waits_for_the_producer),
		TEST(who_waits_for_nothing_is_told_nothing),
		TEST(the_first_sample_waits_for_consumers),
		TEST(a_rank_that_asks_waits_for_the_others),
		TEST(all_ranks_that_have_not_asked_are_named),
		TEST(a_ring_that_is_made_is_waited_for_by_who_joins),
		TEST(the_log_has_a_wait_once),
		TEST(waits_that_go_on_are_listed_the_longest_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
