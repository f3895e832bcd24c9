/* SPDX-License-Identifier: MIT */
/*
 * test_description.c - what a producer says of its stream, and what is asked
 * for.
 */
#include "consumer/description.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct tsi_msg_stream stream(void)
{
	return (struct tsi_msg_stream){
		.epoch_len = 1000,
		.max_batch = 64,
		.nclasses = 2,
		.meta_bytes = 8,
		.nfields = 2,
		.field = { { .name = "image",
			     .dtype = TSOCK_U8,
			     .ndim = 1,
			     .shape = { 12 } },
			   { .name = "label", .dtype = TSOCK_I64 } },
	};
}

static void is_good(const struct tsi_msg_stream *s)
{
	assert_int_equal(tsi_description_check(s, "flowers"), 0);
}

static void makes_no_sense(const struct tsi_msg_stream *s, const char *text)
{
	assert_int_equal(tsi_description_check(s, "flowers"), TSOCK_EPROTO);
	assert_non_null(strstr(tsock_errmsg(), text));
}

static void a_description_that_can_be_is_taken(void **state)
{
	struct tsi_msg_stream s = stream();

	(void)state;
	is_good(&s);
	s.nclasses = s.meta_bytes; /* names without a character */
	is_good(&s);
	s.nclasses = s.meta_bytes = UINT32_C(1) << 28;
	is_good(&s);
	s.epoch_len = UINT64_MAX / 4;
	is_good(&s);
	s.epochs = 1;
	is_good(&s);
}

#define WITHOUT(change) \
	do { \
		struct tsi_msg_stream s = stream(); \
		change; \
		makes_no_sense(&s, "of 'flowers' describes its stream in"); \
	} while (0)

static void numbers_that_can_not_be_are_refused(void **state)
{
	(void)state;
	WITHOUT(s.nfields = 0);
	WITHOUT(s.nfields = TSOCK_MAX_FIELDS + 1);
	WITHOUT(s.epoch_len = 0);
	WITHOUT(s.epoch_len = UINT64_MAX / 4 + 1);
	WITHOUT(s.meta_bytes = (UINT32_C(1) << 28) + 1);
	WITHOUT(s.nclasses = s.meta_bytes + 1);
	WITHOUT(s.epochs = UINT64_MAX / 4 / s.epoch_len + 1);
}

static void a_field_that_can_not_be_is_named(void **state)
{
	struct tsi_msg_stream s = stream();

	(void)state;
	s.field[1].ndim = TSOCK_MAX_DIMS + 1;
	makes_no_sense(&s, "of 'flowers' describes field 1 in");
	s = stream();
	memset(s.field[0].name, 'x', sizeof(s.field[0].name));
	makes_no_sense(&s, "of 'flowers' describes field 0 in");
}

static void a_part_that_can_not_be_makes_no_sense(void **state)
{
	struct tsi_msg_stream part = stream(), s;

	(void)state;
	part.epoch_len = 6;
	part.shard = 1;
	part.shard_ranks = 2;
	part.shards = 3;
	part.whole_len = 8;
	part.start = 7;
	is_good(&part);
	s = part;
	s.shard = 2;
	makes_no_sense(&s, "makes no sense");
	s = part;
	s.whole_len = 10;
	makes_no_sense(&s, "makes no sense");
	s.whole_len = UINT64_MAX;
	makes_no_sense(&s, "makes no sense");
	/* How long it is may not be known, but then nothing of it is. */
	s.whole_len = 0;
	makes_no_sense(&s, "makes no sense");
	s.start = 0;
	is_good(&s);
	s = part;
	s.start = 8;
	makes_no_sense(&s, "makes no sense");
}

/* It would have to leave out samples amid its epochs. */
static void a_filled_up_part_is_not_evaluated_from_a_segment_on(void **state)
{
	struct tsock_opts o = { .join = TSOCK_JOIN_SEGMENT };
	struct tsi_msg_stream s = stream();

	(void)state;
	s.epoch_len = 6;
	s.shard = 1;
	s.shard_ranks = 2;
	s.shards = 3;
	s.whole_len = 8;
	assert_int_equal(tsi_description_joins(&s, &o, "x"), 0);
	s.sequential = 1;
	assert_int_equal(tsi_description_joins(&s, &o, "x"), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "TSOCK_EVEN"));
	o.flags = TSOCK_EVEN;
	assert_int_equal(tsi_description_joins(&s, &o, "x"), 0);
	o.flags = 0;
	s.shard = 0;
	assert_int_equal(tsi_description_joins(&s, &o, "x"), 0);
	s.shard = 1;
	o.join = TSOCK_JOIN_EPOCH;
	assert_int_equal(tsi_description_joins(&s, &o, "x"), 0);
}

static void a_batch_is_not_larger_than_the_stream_allows(void **state)
{
	struct tsi_msg_stream s = stream();
	struct tsock_opts o = { .batch_size = 64 };

	(void)state;
	assert_int_equal(tsi_description_allows(&s, &o, "flowers"), 0);
	o.batch_size = 65;
	assert_int_equal(tsi_description_allows(&s, &o, "flowers"),
			 TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(),
			       "batch_size 65 is larger than the 64 that the "
			       "stream 'flowers' allows"));
	assert_non_null(strstr(tsock_errmsg(), "--max-batch 65"));
}

/* Where the last samples are dropped. */
static void each_rank_has_a_batch(void **state)
{
	struct tsi_msg_stream s = stream();
	struct tsock_opts o = { .batch_size = 1001 };

	(void)state;
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"), 0);
	o.flags = TSOCK_DROP_LAST;
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"),
			 TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "batch_size 1001 is larger"));
	o.batch_size = 1000;
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"), 0);
	o.world = 1;
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"), 0);
	o.world = 2;
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"),
			 TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "1000 for each rank is larger"));
	o.batch_size = 500;
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"), 0);
	/* A part's last row, which isn't whole, is dropped, too. */
	s.epoch_len = 1000;
	s.shards = 4;
	s.shard_ranks = 2;
	s.whole_len = 1999;
	assert_int_equal(tsi_description_check(&s, "x"), 0);
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"),
			 TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "has 998 samples"));
	o.batch_size = 499;
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"), 0);
	/* Their product is more than 32 bits have. */
	o.batch_size = UINT32_C(1) << 31;
	assert_int_equal(tsi_description_fills_batch(&s, &o, "x"),
			 TSOCK_EREFUSED);
}

/* Every number of its own, so that none can stand for another one. */
static void all_is_told(void **state)
{
	struct tsi_msg_stream s = { .epoch_len = 1,
				    .dataset_len = 2,
				    .epochs = 3,
				    .segments = 4,
				    .max_batch = 5,
				    .capacity = 6,
				    .join_window = 7,
				    .nclasses = 8,
				    .sequential = 9,
				    .pid = 10,
				    .shard = 11,
				    .shards = 12,
				    .resumable = 13,
				    .nfields = 14,
				    .shard_ranks = 15,
				    .whole_len = 16,
				    .start_epoch = 17,
				    .start = 18 };
	struct tsock_info info;

	(void)state;
	memset(&info, 0xff, sizeof(info));
	tsi_description_info(&s, &info);
	assert_int_equal(info.size, 0);
	assert_int_equal(info.epoch_len, 1);
	assert_int_equal(info.dataset_len, 2);
	assert_int_equal(info.epochs, 3);
	assert_int_equal(info.segments, 4);
	assert_int_equal(info.max_batch, 5);
	assert_int_equal(info.capacity, 6);
	assert_int_equal(info.join_window, 7);
	assert_int_equal(info.nclasses, 8);
	assert_int_equal(info.sequential, 9);
	assert_int_equal(info.producer_pid, 10);
	assert_int_equal(info.shard, 11);
	assert_int_equal(info.shards, 12);
	assert_int_equal(info.resumable, 13);
	assert_int_equal(info.nfields, 14);
	assert_int_equal(info.shard_ranks, 15);
	assert_int_equal(info.whole_len, 16);
	assert_int_equal(info.start_epoch, 17);
	assert_int_equal(info.start, 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_description_that_can_be_is_taken),
		cmocka_unit_test(numbers_that_can_not_be_are_refused),
		cmocka_unit_test(a_field_that_can_not_be_is_named),
		cmocka_unit_test(a_part_that_can_not_be_makes_no_sense),
		cmocka_unit_test(
			a_filled_up_part_is_not_evaluated_from_a_segment_on),
		cmocka_unit_test(a_batch_is_not_larger_than_the_stream_allows),
		cmocka_unit_test(each_rank_has_a_batch),
		cmocka_unit_test(all_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
