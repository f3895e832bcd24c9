/* SPDX-License-Identifier: MIT */
/*
 * test_ranks.c - the parts of an epoch that the ranks of a job read.
 */
#include "order/ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tsock/tsock.h"

#define MOST 200

static uint8_t read_by[MOST]; /* how many ranks read a sample */

/* Returns how many samples the rank reads; *batches of them. */
static uint64_t read_epoch(const struct tsi_ranks *p, uint64_t n,
			   uint64_t *batches)
{
	uint64_t at = 0, sum = 0;

	*batches = 0;
	while (at < n) {
		uint64_t first, count = tsi_ranks_next(p, n - at, &first);

		if (!count)
			break;
		assert_true(count <= p->batch);
		assert_true(at + first + count <= n);
		for (uint64_t i = 0; i < count; i++)
			read_by[at + first + i]++;
		sum += count;
		(*batches)++;
		at += tsi_ranks_block(p, n - at);
	}
	return sum;
}

static unsigned samples_read(uint64_t n, unsigned *most)
{
	unsigned some = 0;

	*most = 0;
	for (uint64_t i = 0; i < n; i++) {
		some += read_by[i] != 0;
		if (read_by[i] > *most)
			*most = read_by[i];
	}
	return some;
}

#define EACH_CASE(n, world, batch) \
	for (uint64_t n = 1; n < 60; n++) \
		for (uint32_t world = 1; world <= 5; world++) \
			for (uint64_t batch = 1; batch <= 7; batch++)

/* ceil(n / world) each, as DistributedSampler pads; none is left out. */
static void ranks_read_equally_much(void **state)
{
	(void)state;
	EACH_CASE(n, world, batch)
	{
		struct tsi_ranks p = { .world = world, .batch = batch };
		uint64_t batches;
		unsigned most;

		memset(read_by, 0, sizeof(read_by));
		for (p.rank = 0; p.rank < world; p.rank++) {
			assert_int_equal(read_epoch(&p, n, &batches),
					 (n + world - 1) / world);
			assert_int_equal(batches, tsi_ranks_batches(&p, n));
		}
		assert_int_equal(samples_read(n, &most), n);
	}
}

static void each_sample_once_where_that_is_asked(void **state)
{
	(void)state;
	EACH_CASE(n, world, batch)
	{
		struct tsi_ranks p = { .world = world,
				       .batch = batch,
				       .once = true };
		uint64_t batches, sum = 0, own;
		unsigned most;

		memset(read_by, 0, sizeof(read_by));
		for (p.rank = 0; p.rank < world; p.rank++) {
			own = read_epoch(&p, n, &batches);
			assert_true(own == n / world || own == n / world + 1);
			assert_int_equal(batches, tsi_ranks_batches(&p, n));
			sum += own;
		}
		assert_int_equal(sum, n);
		assert_int_equal(samples_read(n, &most), n);
		assert_int_equal(most, 1);
	}
}

/* All batches are whole, and no two ranks read the same. */
static void drop_last_leaves_out_what_fills_no_block(void **state)
{
	(void)state;
	EACH_CASE(n, world, batch)
	{
		struct tsi_ranks p = { .world = world,
				       .batch = batch,
				       .drop_last = true };
		uint64_t batches, whole = n / (world * batch);
		unsigned most;

		memset(read_by, 0, sizeof(read_by));
		for (p.rank = 0; p.rank < world; p.rank++) {
			assert_int_equal(read_epoch(&p, n, &batches),
					 whole * batch);
			assert_int_equal(batches, whole);
			assert_int_equal(tsi_ranks_batches(&p, n), whole);
		}
		assert_int_equal(samples_read(n, &most), whole * world * batch);
		assert_true(most <= 1);
	}
}

/* What a job of one process reads: consecutive batches, a short one last. */
static void one_rank_reads_all_in_order(void **state)
{
	struct tsi_ranks p = { .world = 1, .batch = 8 };
	uint64_t first;

	(void)state;
	assert_int_equal(tsi_ranks_next(&p, 20, &first), 8);
	assert_int_equal(first, 0);
	assert_int_equal(tsi_ranks_block(&p, 20), 8);
	assert_int_equal(tsi_ranks_next(&p, 4, &first), 4);
	assert_int_equal(first, 0);
	assert_int_equal(tsi_ranks_next(&p, 0, &first), 0);
	assert_int_equal(tsi_ranks_batches(&p, 20), 3);
}

/* The parts that the library tells are those that its consumers read. */
static void a_caller_is_told_what_a_rank_reads(void **state)
{
	static const uint32_t flags[] = { 0, TSOCK_DROP_LAST, TSOCK_EVEN };

	(void)state;
	for (unsigned k = 0; k < 6; k++)
		EACH_CASE(n, world, batch)
		{
			struct tsi_ranks p = {
				.world = world,
				.batch = batch,
				.once = k >= 3 && flags[k % 3] != TSOCK_EVEN,
				.drop_last = flags[k % 3] == TSOCK_DROP_LAST,
			};
			struct tsock_rank_opts o = TSOCK_RANK_OPTS_INIT;
			uint64_t first, count, ours;

			o.world = world;
			o.batch_size = (uint32_t)batch;
			o.flags = flags[k % 3];
			o.sequential = k >= 3;
			p.rank = o.rank = (uint32_t)(n % world);
			assert_int_equal(tsock_rank_next(&o, n, &first, &count),
					 0);
			assert_int_equal(count, tsi_ranks_next(&p, n, &ours));
			assert_int_equal(first, ours);
			assert_int_equal(tsock_rank_batches(&o, n),
					 tsi_ranks_batches(&p, n));
		}
}

/* The numbers that the header's words come to. */
static void parts_are_as_they_are_described(void **state)
{
	static const struct {
		struct tsock_rank_opts opts;
		uint64_t left, first, count, batches;
	} c[] = {
		/* world is 1: all of it */
		{ { .batch_size = 8 }, 20, 0, 8, 3 },
		{ { .batch_size = 8, .flags = TSOCK_DROP_LAST }, 20, 0, 8, 2 },
		{ { .batch_size = 8, .flags = TSOCK_DROP_LAST }, 7, 0, 0, 0 },
		/* blocks of 12, and the last 11 in parts of 4 */
		{ { .rank = 2, .world = 3, .batch_size = 4 }, 23, 8, 4, 2 },
		{ { .rank = 2, .world = 3, .batch_size = 4 }, 11, 7, 4, 1 },
		{ { .rank = 0, .world = 3, .batch_size = 4 }, 11, 0, 4, 1 },
		/* each sample once: 4, 4 and 3 */
		{ { .rank = 2, .world = 3, .batch_size = 4, .sequential = 1 },
		  11,
		  8,
		  3,
		  1 },
		{ { .rank = 2,
		    .world = 3,
		    .batch_size = 4,
		    .flags = TSOCK_EVEN,
		    .sequential = 1 },
		  11,
		  7,
		  4,
		  1 },
		{ { .rank = 2, .world = 3, .batch_size = 4, .sequential = 1 },
		  2,
		  2,
		  0,
		  0 },
		{ { .rank = 4, .world = 5, .batch_size = UINT32_MAX },
		  UINT64_MAX,
		  UINT64_C(4) * UINT32_MAX,
		  UINT32_MAX,
		  858993460 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct tsock_rank_opts o = c[i].opts;
		uint64_t first, count;

		o.size = sizeof(o);
		assert_int_equal(tsock_rank_next(&o, c[i].left, &first, &count),
				 0);
		assert_int_equal(count, c[i].count);
		if (count)
			assert_int_equal(first, c[i].first);
		assert_int_equal(tsock_rank_batches(&o, c[i].left),
				 c[i].batches);
	}
}

static void refuse(struct tsock_rank_opts o, const char *a, const char *b)
{
	uint64_t first = 11, count = 12;

	o.size = sizeof(o);
	assert_int_equal(tsock_rank_next(&o, 100, &first, &count), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), a));
	assert_non_null(strstr(tsock_errmsg(), b));
	assert_int_equal(first, 11);
	assert_int_equal(count, 12);
	assert_int_equal(tsock_rank_batches(&o, 100), 0);
	assert_non_null(strstr(tsock_errmsg(), a));
}

static void a_rank_that_can_not_be_is_refused_by_name(void **state)
{
	(void)state;
	refuse((struct tsock_rank_opts){ .rank = 3,
					 .world = 3,
					 .batch_size = 1 },
	       "rank 3", "world 3");
	refuse((struct tsock_rank_opts){ .rank = 1, .batch_size = 1 }, "rank 1",
	       "world 1");
	refuse((struct tsock_rank_opts){ .world = 2 }, "batch_size", "0");
	refuse((struct tsock_rank_opts){ .batch_size = 1,
					 .flags = TSOCK_WRITABLE },
	       "flags", "0x1");
}

static void runs_are_what_the_rank_reads_and_what_it_does_not(void **state)
{
	(void)state;
	EACH_CASE(n, world, batch)
	for (unsigned k = 0; k < 4 * world; k++) {
		struct tsi_ranks p = { .rank = k / 4,
				       .world = world,
				       .once = k & 1,
				       .drop_last = k & 2,
				       .batch = batch };
		uint64_t run, unused;
		bool own;

		memset(read_by, 0, sizeof(read_by));
		read_epoch(&p, n, &unused);
		for (uint64_t at = 0; at < n; at++) {
			run = tsi_ranks_run(&p, n, at, &own);
			assert_in_range(run, 1, n - at);
			for (uint64_t i = at; i < at + run; i++)
				assert_int_equal(read_by[i], own);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			runs_are_what_the_rank_reads_and_what_it_does_not),
		cmocka_unit_test(ranks_read_equally_much),
		cmocka_unit_test(each_sample_once_where_that_is_asked),
		cmocka_unit_test(drop_last_leaves_out_what_fills_no_block),
		cmocka_unit_test(one_rank_reads_all_in_order),
		cmocka_unit_test(a_caller_is_told_what_a_rank_reads),
		cmocka_unit_test(parts_are_as_they_are_described),
		cmocka_unit_test(a_rank_that_can_not_be_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
