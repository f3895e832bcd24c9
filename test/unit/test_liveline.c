/* SPDX-License-Identifier: MIT */
/*
 * test_liveline.c - one line about a stream, from two snapshots, and lines of
 * the log.
 */
#include "cli/liveline.h"
#include "cli/logline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/number.h"

#define SECOND INT64_C(1000000000)

static const struct tsi_liveline_style plain = { .threads = 2,
						 .min_consumers = 1 };

/* Two consumers, 1000 images and 100 MB in the second between. */
static void snapshots(struct tsi_snapshot *a, struct tsi_snapshot *b)
{
	struct tsock_stats *st = &b->stats;

	memset(a, 0, sizeof(*a));
	memset(b, 0, sizeof(*b));
	a->stats.produced = 500;
	a->stats.read_bytes = 5000000;
	b->now_ns = SECOND;
	st->epoch_len = 1000;
	st->head = 2500;
	st->claimed = 2510;
	st->limit = 3500;
	st->capacity = 2000;
	st->produced = 1500;
	st->read_bytes = 105000000;
	st->consumers = 2;
	st->nrows = 2;
	st->row[0] = (struct tsock_stats_row){
		.pid = 77, .batch_size = 48, .waiting = 1, .tail = 2460
	};
	st->row[1] = (struct tsock_stats_row){ .pid = 88,
					       .batch_size = 100,
					       .tail = 1500 };
	b->decode_ns = 18 * SECOND / 10;
	b->io_ns = SECOND / 10;
}

static const char *line(const struct tsi_snapshot *a,
			const struct tsi_snapshot *b,
			const struct tsi_liveline_style *style)
{
	static char buf[1600];
	size_t len;

	len = tsi_liveline_format(buf, sizeof(buf), a, b, style);
	assert_int_equal(len, strlen(buf));
	return buf;
}

static void everything_is_in_the_line(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	assert_string_equal(line(&a, &b, &plain),
			    "1,000 images/s  100.0 MB/s  ring 50%  epoch 2 "
			    "50%  2 consumers: 88 (batch 100) lag 1000, 77 "
			    "(batch 48) lag 40  decode-bound");
}

static void substitutes_are_counted_in_the_line(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.stats.bad_samples = 3;
	assert_non_null(strstr(line(&a, &b, &plain), "3 substituted"));
}

static void parked_threads_are_said(void **state)
{
	struct tsi_liveline_style some = plain;
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	some.all_threads = 8;
	assert_non_null(strstr(line(&a, &b, &some), "50%  2/8 threads  "));
	some.all_threads = 2;
	assert_null(strstr(line(&a, &b, &some), "threads"));
}

static void waiting_for_files_is_io_bound(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.io_ns = 12 * SECOND / 10;
	b.decode_ns = 7 * SECOND / 10;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain), TSI_BY_IO);
}

static void idle_workers_wait_for_the_slowest_consumer(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.decode_ns = SECOND / 10;
	b.stats.claimed = b.stats.limit - 5;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain),
			 TSI_BY_CONSUMER);
	assert_non_null(
		strstr(line(&a, &b, &plain), "waiting for consumer 88"));
}

static void a_full_ring_in_which_nothing_moves_is_the_consumers(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.decode_ns = b.io_ns = 0;
	b.stats.claimed = b.stats.limit;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain),
			 TSI_BY_CONSUMER);
	/* With room left, the workers are in the middle of something long. */
	b.stats.claimed = b.stats.limit - 900;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain),
			 TSI_BY_DECODE);
}

static void a_waiting_reader_of_a_view_waits_for_its_conversion(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.decode_ns = SECOND / 10;
	b.stats.claimed = b.stats.limit - 5;
	b.stats.row[1].view = 1;
	b.stats.row[1].waiting = 1;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain), TSI_BY_VIEW);
}

static void missing_consumers_are_said(void **state)
{
	struct tsi_liveline_style three = { .threads = 2, .min_consumers = 3 };
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.stats.consumers = b.stats.nrows = 0;
	assert_non_null(strstr(line(&a, &b, &plain), "waiting for a consumer"));
	b.stats.claimed = b.stats.head = 0;
	assert_non_null(
		strstr(line(&a, &b, &plain), "waiting for the first consumer"));
	assert_non_null(
		strstr(line(&a, &b, &three), "waiting for 3 of 3 consumers"));
}

static void a_narrow_terminal_gets_a_shorter_line(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	for (unsigned width = 1; width < 200; width++) {
		struct tsi_liveline_style s = plain;
		const char *text;

		s.width = width;
		text = line(&a, &b, &s);
		assert_true(strlen(text) <= width);
		if (width >= 28)
			assert_non_null(strstr(text, "decode-bound"));
		if (width >= 46)
			assert_non_null(strstr(text, "lag 1000"));
	}
}

static void consumers_that_don_t_fit_are_counted(void **state)
{
	struct tsi_liveline_style s = plain;
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	s.width = 112;
	assert_non_null(strstr(line(&a, &b, &s), "(batch 100) lag 1000 +1"));
	/* More consumers than rows. */
	for (unsigned i = 0; i < TSOCK_STATS_ROWS; i++)
		b.stats.row[i] = (struct tsock_stats_row){
			.pid = UINT32_MAX, .batch_size = UINT32_MAX, .tail = 0
		};
	b.stats.nrows = TSOCK_STATS_ROWS;
	b.stats.consumers = 200;
	b.stats.head = UINT64_MAX;
	assert_non_null(strstr(line(&a, &b, &plain), " +1"));
}

/* What a terminal of 80 columns leaves. */
static void eighty_columns_show_who_is_behind(void **state)
{
	struct tsi_liveline_style s = plain;
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	s.width = 79;
	assert_string_equal(line(&a, &b, &s),
			    "1,000 images/s  100.0 MB/s  ring 50%  epoch 2 "
			    "50%  88 lag 1000 +1  decode-bound");
	b.stats.produced = 100500;
	b.stats.bad_samples = 12345;
	b.stats.row[1].pid = 4194304;
	b.stats.claimed = b.stats.limit;
	b.decode_ns = 0;
	assert_string_equal(line(&a, &b, &s),
			    "100,000 images/s  4194304 lag 1000 +1  waiting "
			    "for consumer 4194304");
}

static void the_ring_is_never_more_than_full(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	/* A reader of a view may be two rings behind. */
	b.stats.head = 5500;
	b.stats.claimed = b.stats.limit = 5500;
	assert_non_null(strstr(line(&a, &b, &plain), "ring 100%"));
	b.stats.limit = 5000;
	assert_non_null(strstr(line(&a, &b, &plain), "ring 100%"));
	b.stats.head = 3000;
	assert_non_null(strstr(line(&a, &b, &plain), "ring 0%"));
}

static void nobody_who_has_what_he_wants_is_bound_by_decoding(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.stats.row[0].waiting = 0;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain), TSI_BY_NONE);
	assert_non_null(strstr(line(&a, &b, &plain), "nobody waits"));
	/* Its samples are there: it will see them at once. */
	b.stats.row[1].waiting = 1;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain), TSI_BY_NONE);
	/* At this moment it computes, but it had waited all the time. */
	a.stats.nrows = 2;
	a.stats.row[0] = b.stats.row[0];
	b.stats.row[0].wait_ns = SECOND * 9 / 10;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain),
			 TSI_BY_DECODE);
	b.stats.row[0].wait_ns = SECOND / 10;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain), TSI_BY_NONE);
}

static void a_conversion_needs_room_and_work_to_be_waited_for(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.stats.row[1].view = b.stats.row[0].view = 1;
	b.stats.row[1].waiting = 1;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain), TSI_BY_VIEW);
	/* No work: it has all that was decoded. */
	b.stats.row[1].tail = 2450;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain),
			 TSI_BY_DECODE);
	/* No room: the other one holds the view's ring. */
	b.stats.row[0] = (struct tsock_stats_row){
		.pid = 77, .batch_size = 48, .view = 1, .tail = 400
	};
	b.stats.row[1].tail = 2350;
	b.decode_ns = b.io_ns = 0;
	b.stats.claimed = b.stats.limit;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain),
			 TSI_BY_CONSUMER);
	assert_non_null(
		strstr(line(&a, &b, &plain), "waiting for consumer 77"));
}

static void a_stopped_consumer_is_named(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	snapshots(&a, &b);
	b.stopped[1] = true;
	b.stats.row[0].waiting = 0;
	assert_non_null(
		strstr(line(&a, &b, &plain), "  consumer 88 is stopped"));
	assert_non_null(strstr(line(&a, &b, &plain), "lag 1000 stopped"));
	b.stats.row[0].waiting = 1;
	b.decode_ns = 0;
	b.stats.claimed = b.stats.limit;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain),
			 TSI_BY_STOPPED);
	/* Another one is, and holds nobody up. */
	b.stopped[1] = false;
	b.stopped[0] = true;
	assert_int_equal(tsi_liveline_bottleneck(&a, &b, &plain),
			 TSI_BY_CONSUMER);
}

static void log_lines_have_time_and_level(void **state)
{
	struct tm when = { .tm_year = 126,
			   .tm_mon = 10,
			   .tm_mday = 3,
			   .tm_hour = 4,
			   .tm_min = 5,
			   .tm_sec = 6 };
	char buf[64];

	(void)state;
	tsi_logline(buf, sizeof(buf), false, &when, TSOCK_LOG_WARN, "so it is");
	assert_string_equal(
		buf, "tsock-producer: 2026-11-03 04:05:06 warning: so it is\n");
	tsi_logline(buf, sizeof(buf), true, &when, TSOCK_LOG_WARN, "so it is");
	assert_string_equal(buf, "<4>tsock-producer: so it is\n");
	tsi_logline(buf, sizeof(buf), true, &when, TSOCK_LOG_ERROR, "bad");
	assert_string_equal(buf, "<3>tsock-producer: bad\n");
	tsi_logline(buf, sizeof(buf), true, &when, TSOCK_LOG_INFO, "good");
	assert_string_equal(buf, "<6>tsock-producer: good\n");
	/* Cut, and still a line. */
	assert_int_equal(tsi_logline(buf, 30, false, &when, TSOCK_LOG_INFO,
				     "too long for that"),
			 29);
	assert_int_equal(strlen(buf), 29);
	assert_int_equal(buf[28], '\n');
}

static void the_journal_is_known_by_device_and_inode(void **state)
{
	struct stat st = { .st_dev = 8, .st_ino = 12345 };

	(void)state;
	assert_true(tsi_logline_journal("8:12345", &st));
	assert_false(tsi_logline_journal("8:12346", &st));
	assert_false(tsi_logline_journal("9:12345", &st));
	assert_false(tsi_logline_journal("8:12345x", &st));
	assert_false(tsi_logline_journal("8", &st));
	assert_false(tsi_logline_journal("", &st));
	assert_false(tsi_logline_journal(NULL, &st));
}

static void colour_adds_nothing_to_the_width(void **state)
{
	struct tsi_liveline_style s = plain;
	struct tsi_snapshot a, b;
	char with[1600];

	(void)state;
	snapshots(&a, &b);
	s.colour = true;
	s.width = 120;
	strcpy(with, line(&a, &b, &s));
	s.colour = false;
	assert_int_equal(strlen(with), strlen(line(&a, &b, &s)) + 8);
}

static void a_snapshot_of_nothing_is_no_trap(void **state)
{
	struct tsi_snapshot a, b;

	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	assert_non_null(strstr(line(&a, &b, &plain), "0 images/s"));
}

static void numbers_are_readable(void **state)
{
	char buf[28];

	(void)state;
	assert_string_equal(tsi_number_thousands(buf, 0), "0");
	assert_string_equal(tsi_number_thousands(buf, 999), "999");
	assert_string_equal(tsi_number_thousands(buf, 1000), "1,000");
	assert_string_equal(tsi_number_thousands(buf, UINT64_MAX),
			    "18,446,744,073,709,551,615");
	assert_string_equal(tsi_number_megabytes(buf, 0), "0.0 kB");
	assert_string_equal(tsi_number_megabytes(buf, 308281344), "308.3 MB");
	assert_string_equal(tsi_number_megabytes(buf, 999960000), "1.0 GB");
	assert_true(strlen(tsi_number_megabytes(buf, UINT64_MAX)) < 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_in_the_line),
		cmocka_unit_test(substitutes_are_counted_in_the_line),
		cmocka_unit_test(parked_threads_are_said),
		cmocka_unit_test(waiting_for_files_is_io_bound),
		cmocka_unit_test(idle_workers_wait_for_the_slowest_consumer),
		cmocka_unit_test(
			a_full_ring_in_which_nothing_moves_is_the_consumers),
		cmocka_unit_test(
			a_waiting_reader_of_a_view_waits_for_its_conversion),
		cmocka_unit_test(missing_consumers_are_said),
		cmocka_unit_test(a_narrow_terminal_gets_a_shorter_line),
		cmocka_unit_test(consumers_that_don_t_fit_are_counted),
		cmocka_unit_test(eighty_columns_show_who_is_behind),
		cmocka_unit_test(the_ring_is_never_more_than_full),
		cmocka_unit_test(
			nobody_who_has_what_he_wants_is_bound_by_decoding),
		cmocka_unit_test(
			a_conversion_needs_room_and_work_to_be_waited_for),
		cmocka_unit_test(a_stopped_consumer_is_named),
		cmocka_unit_test(log_lines_have_time_and_level),
		cmocka_unit_test(the_journal_is_known_by_device_and_inode),
		cmocka_unit_test(colour_adds_nothing_to_the_width),
		cmocka_unit_test(a_snapshot_of_nothing_is_no_trap),
		cmocka_unit_test(numbers_are_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
