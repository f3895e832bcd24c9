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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_read_equally_much),
		cmocka_unit_test(each_sample_once_where_that_is_asked),
		cmocka_unit_test(drop_last_leaves_out_what_fills_no_block),
		cmocka_unit_test(one_rank_reads_all_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
