/* SPDX-License-Identifier: MIT */
/*
 * test_epoch_runs.c - indexes of several positions of an epoch at once are those
 * of one position after another.
 */
#include "data/epochs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tsock/tsock.h"

#define COUNT 301
#define MANY 131071 /* as segments of 65,536, evaluated, and 65,535, an array */
#define EPOCH 2
#define RUN 70
#define STEP 64 /* runs overlap */
#define FAR 2047

static uint64_t at(struct tsi_epochs *e, uint64_t position)
{
	uint64_t index = UINT64_MAX;

	assert_int_equal(tsi_epochs_at(e, EPOCH, position, &index), 0);
	return index;
}

static void compare(const struct tsi_order_opts *opts)
{
	uint64_t n, index[RUN];
	struct tsi_epochs *e;

	assert_int_equal(tsi_epochs_create(opts, &e), 0);
	n = tsi_epochs_len(e);
	for (uint64_t p = 0; p < n; p += n < FAR ? STEP : FAR) {
		unsigned some = n - p < RUN ? (unsigned)(n - p) : RUN;

		assert_int_equal(tsi_epochs_run(e, EPOCH, p, some, index), 0);
		for (unsigned i = 0; i < some; i++)
			assert_int_equal(index[i], at(e, p + i));
	}
	assert_int_equal(tsi_epochs_run(e, EPOCH, n - 1, 2, index), TSOCK_EARG);
	tsi_epochs_destroy(e);
}

static void runs_have_what_their_positions_have(void **state)
{
	static const struct tsi_order_opts opts[] = {
		{ .kind = TSOCK_ORDER_PHILOX },
		{ .kind = TSOCK_ORDER_PHILOX, .segments = 7 },
		{ .kind = TSOCK_ORDER_PHILOX, .repeat = 3 },
		{ .kind = TSOCK_ORDER_PHILOX, .repeat = 2, .limit = 400 },
		{ .kind = TSOCK_ORDER_TORCH },
		{ .kind = TSOCK_ORDER_SEQUENTIAL, .repeat = 2 },
		{ .kind = TSOCK_ORDER_SEQUENTIAL },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof(opts) / sizeof(opts[0]); k++) {
		struct tsi_order_opts o = opts[k];

		o.count = COUNT;
		compare(&o);
		if (o.segments || o.limit)
			continue;
		o.part.first = 2;
		o.part.world = 3;
		compare(&o);
	}
}

static void so_have_those_that_are_evaluated(void **state)
{
	(void)state;
	for (uint32_t segments = 1; segments < 4; segments++) {
		struct tsi_order_opts o = { .kind = TSOCK_ORDER_PHILOX,
					    .count = MANY,
					    .segments = segments };

		compare(&o);
		o.count *= 3;
		o.part.first = 2;
		o.part.world = 3;
		compare(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_have_what_their_positions_have),
		cmocka_unit_test(so_have_those_that_are_evaluated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
