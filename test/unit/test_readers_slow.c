/* SPDX-License-Identifier: MIT */
/*
 * test_readers_slow.c - readers that hold others up and are to be detached,
 * while they go on or memory is short.
 */
#include "test/lib/readers_fixture.h"

#include "base/clock.h"
#include "base/err.h"

#define SLOW_MS 1000

static struct tsi_tail_page *page[4]; /* of reader 0, 1, ... */
static unsigned npages;
static int64_t now; /* later than anybody joined */

static int begin_detaching(void **state)
{
	(void)state;
	readers_begin_with(TSI_NEVER, fixture_ring_make_two);
	tsi_readers_set_slow(&readers_table, TSOCK_SLOW_DETACH, SLOW_MS);
	npages = 0;
	return 0;
}

static int stop_detaching(void **state)
{
	tsock_set_logger(NULL, NULL);
	while (npages)
		munmap(page[--npages], sizeof(*page[0]));
	return readers_stop(state);
}

/* A reader that looks at the ring's first generation, as all do at first. */
static void reads(void)
{
	struct tsi_offer o = readers_offer_of((uint8_t)(1 + npages));
	struct tsi_reply reply;

	assert_int_equal(readers_join_by(&o, &reply), 0);
	assert_int_equal(reply.row, npages);
	page[npages] = readers_page_of(npages);
	tsi_tail_page_enter(page[npages++], 1);
	membership_fill_all();
	now = tsi_now_ms() + SLOW_MS;
}

/* The reader has read all samples, and sleeps until there is one more. */
static void waits_for_the_others(unsigned id)
{
	tsi_membership_tail(&membership_m, id, C, now);
	tsi_tail_page_sleep(page[id], C + 1);
}

/* Those that hold others up do so for long enough. */
static int mind(void)
{
	assert_int_equal(tsi_readers_mind_slow(&readers_table, now), -1);
	now += SLOW_MS;
	return tsi_readers_mind_slow(&readers_table, now);
}

static bool is_set_aside(unsigned id)
{
	return atomic_load(&readers_ring[0].ring.shared->reader[id]) &
	       TSI_ROW_DETACHED;
}

/* Reader 1 looks into the other half as soon as reader 0 is detached. */
static void enter_when_one_is_detached(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	if (strstr(line, "is detached"))
		tsi_tail_page_enter(page[1], 2);
}

/* The reader may hold samples of both halves, and so is waited for. */
static void who_enters_the_other_half_meanwhile_stays(void **state)
{
	uint64_t since;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		reads();
	waits_for_the_others(2);
	tsock_set_logger(enter_when_one_is_detached, NULL);
	assert_int_equal(mind(), -1);
	assert_true(tsi_membership_is_detached(&membership_m, 0));
	assert_true(is_set_aside(0));
	assert_int_equal(tsi_membership_generation(&membership_m, 0, &since),
			 2);
	assert_false(tsi_membership_is_detached(&membership_m, 1));
	assert_false(is_set_aside(1));
	/* The reader is woken as before. */
	assert_ptr_equal(readers_ring[0].ring.tail[1],
			 tsi_memfd_base(&readers_table.conn[1].tail));
	assert_int_equal(readers_table.detached, 1);
}

/* The other one is in nobody's way: what is next goes to the other half. */
static void who_does_not_enter_it_is_detached_too(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		reads();
	waits_for_the_others(2);
	assert_int_equal(mind(), -1);
	assert_true(is_set_aside(0) && is_set_aside(1));
	assert_false(is_set_aside(2));
	assert_int_equal(readers_table.detached, 2);
}

/* Its view is named so that memory is got, but not all the time. */
static void without_memory_nobody_is_detached(void **state)
{
	(void)state;
	readers_stop(NULL);
	readers_begin_with(TSI_NEVER, fixture_ring_make);
	readers_ring[0].ring.geometry.two_halves = true;
	tsi_readers_set_slow(&readers_table, TSOCK_SLOW_DETACH, SLOW_MS);
	reads();
	reads();
	waits_for_the_others(1);
	assert_int_equal(mind(), 0);
	tsi_err(TSOCK_ENOMEM, "there is none");
	tsi_readers_no_memory(&readers_table, now);
	now += 999;
	assert_int_equal(tsi_readers_mind_slow(&readers_table, now), -1);
	now += 100;
	assert_int_equal(tsi_readers_mind_slow(&readers_table, now), 0);
	assert_false(is_set_aside(0));
	assert_int_equal(readers_table.detached, 0);
	readers_ring[0].ring.geometry.two_halves = false;
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, begin_detaching, stop_detaching)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_enters_the_other_half_meanwhile_stays),
		TEST(who_does_not_enter_it_is_detached_too),
		TEST(without_memory_nobody_is_detached),
	};

	return cmocka_run_group_tests_name("readers, slow", tests, NULL, NULL);
}
