/* SPDX-License-Identifier: MIT */
/*
 * test_epoch_order.c - tsock_order() and tsock_order_at(): the order of an epoch
 * without a stream.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "data/epochs.h"

#define JUNK UINT64_C(0x5a5a5a5a5a5a5a5a)

static struct tsock_order_opts of(uint32_t kind, uint64_t seed, uint64_t count)
{
	struct tsock_order_opts o = TSOCK_ORDER_OPTS_INIT;

	o.kind = kind;
	o.seed = seed;
	o.count = count;
	return o;
}

/* The order of an epoch, and its length; what is behind it stays. */
static uint64_t *written(const struct tsock_order_opts *o, uint64_t epoch,
			 uint64_t *len)
{
	uint64_t *index;

	*len = tsock_order_len(o);
	assert_true(*len > 0);
	index = calloc(*len + 1, sizeof(*index));
	assert_non_null(index);
	index[*len] = JUNK;
	if (tsock_order(o, epoch, index, *len))
		fail_msg("%s", tsock_errmsg());
	assert_true(index[*len] == JUNK);
	return index;
}

static void assert_order(const struct tsock_order_opts *o, uint64_t epoch,
			 const uint64_t *expected, uint64_t n)
{
	uint64_t len, *index = written(o, epoch, &len);

	assert_int_equal(len, n);
	assert_memory_equal(index, expected, n * sizeof(*index));
	free(index);
}

/* Computed by another program, in Python, from what order.h says. */
static void philox_order_is_as_it_is_described(void **state)
{
	static const uint64_t plain[] = { 3, 7, 9, 2, 1, 8, 0, 4, 6, 5 };
	static const uint64_t cut[] = { 5, 2, 0, 4, 1, 9, 3, 8, 6, 7 };
	static const uint64_t part[] = { 5, 8, 0, 2 };
	struct tsock_order_opts o = of(TSOCK_ORDER_PHILOX, 8, 10);

	(void)state;
	assert_order(&o, 3, plain, 10);
	o.segments = 1;
	assert_order(&o, 3, plain, 10);
	o = of(TSOCK_ORDER_PHILOX, UINT64_MAX, 10);
	o.segments = 3;
	assert_order(&o, (UINT64_C(1) << 32) + 1, cut, 10);
	o = of(TSOCK_ORDER_PHILOX, 5, 10);
	o.segments = 2;
	o.shard = 1;
	o.shards = 3;
	assert_order(&o, 7, part, 4);
}

static void torch_order_is_the_data_loaders(void **state)
{
	/* DataLoader(range(7), shuffle=True, generator=manual_seed(seed)) */
	static const uint64_t expected[2][3][7] = {
		{ { 0, 1, 5, 6, 2, 3, 4 },
		  { 4, 1, 6, 0, 2, 3, 5 },
		  { 1, 0, 5, 3, 2, 6, 4 } },
		{ { 2, 4, 3, 5, 0, 6, 1 },
		  { 4, 1, 0, 2, 3, 6, 5 },
		  { 3, 0, 2, 5, 1, 6, 4 } },
	};

	(void)state;
	for (unsigned s = 0; s < 2; s++) {
		struct tsock_order_opts o = of(
			TSOCK_ORDER_TORCH, s ? (UINT64_C(1) << 32) + 5 : 0, 7);

		for (uint64_t e = 0; e < 3; e++)
			assert_order(&o, e, expected[s][e], 7);
	}
}

static void sequential_shards_are_padded_by_the_head(void **state)
{
	static const uint64_t expected[3][4] = { { 0, 3, 6, 9 },
						 { 1, 4, 7, 0 },
						 { 2, 5, 8, 1 } };
	struct tsock_order_opts o = of(TSOCK_ORDER_SEQUENTIAL, 0, 10);

	(void)state;
	o.shards = 3;
	for (o.shard = 0; o.shard < 3; o.shard++)
		assert_order(&o, o.shard, expected[o.shard], 4);
}

/* FNV-1a, of each number's bytes from the lowest on. */
static uint64_t sum_of(const uint64_t *v, uint64_t n)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (uint64_t i = 0; i < n; i++)
		for (unsigned b = 0; b < 64; b += 8)
			sum = (sum ^ (v[i] >> b & 0xff)) *
			      UINT64_C(0x100000001b3);
	return sum;
}

/* So long that a draw is rejected now and then; sums by that program, too. */
static void long_orders_are_as_they_are_described(void **state)
{
	static const struct {
		struct tsock_order_opts opts;
		uint64_t epoch, len, sum;
	} c[] = {
		{ { .kind = TSOCK_ORDER_PHILOX, .seed = 1, .count = 50000 },
		  0,
		  50000,
		  UINT64_C(0xc50f15fa6a309ad1) },
		{ { .kind = TSOCK_ORDER_PHILOX, .seed = 1, .count = 300000 },
		  0,
		  300000,
		  UINT64_C(0xffc515f7cb2fee19) },
		/* Segments of 65,537 and of 65,536. */
		{ { .kind = TSOCK_ORDER_PHILOX,
		    .seed = 3,
		    .count = 131073,
		    .segments = 2 },
		  4,
		  131073,
		  UINT64_C(0xac4ecde0865fb37b) },
		{ { .kind = TSOCK_ORDER_PHILOX,
		    .seed = (UINT64_C(1) << 40) + 9,
		    .count = 300007,
		    .segments = 2,
		    .shard = 1,
		    .shards = 2 },
		  (UINT64_C(1) << 33) + 5,
		  150004,
		  UINT64_C(0x9585905f4952aa1e) },
		{ { .kind = TSOCK_ORDER_PHILOX,
		    .seed = (UINT64_C(1) << 40) + 9,
		    .count = 100003,
		    .segments = 7,
		    .shard = 2,
		    .shards = 3 },
		  (UINT64_C(1) << 33) + 5,
		  33335,
		  UINT64_C(0x1a0c395a7b470745) },
		{ { .kind = TSOCK_ORDER_TORCH,
		    .seed = (UINT64_C(1) << 32) + 7,
		    .count = 100003 },
		  3,
		  100003,
		  UINT64_C(0x4f93caf02397a109) },
		{ { .kind = TSOCK_ORDER_TORCH,
		    .seed = 99,
		    .count = 100003,
		    .shard = 3,
		    .shards = 4 },
		  6,
		  25001,
		  UINT64_C(0xa22191014225faea) },
		{ { .kind = TSOCK_ORDER_SEQUENTIAL,
		    .count = 100003,
		    .segments = 5,
		    .shard = 3,
		    .shards = 4 },
		  0,
		  25001,
		  UINT64_C(0xa7ce74dde3e7fe05) },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct tsock_order_opts o = c[i].opts;
		uint64_t len, *index;

		o.size = sizeof(o);
		index = written(&o, c[i].epoch, &len);
		assert_int_equal(len, c[i].len);
		assert_true(sum_of(index, len) == c[i].sum);
		free(index);
	}
}

/* Also by that program. */
static void far_positions_are_as_they_are_described(void **state)
{
	static const struct {
		struct tsock_order_opts opts;
		uint64_t epoch, len, index[4];
	} c[] = {
		{ { .count = UINT64_C(1) << 48 },
		  3,
		  UINT64_C(1) << 48,
		  { 268642299163540, 97637874628321, 185422917690592,
		    206499930868052 } },
		{ { .count = UINT64_C(1) << 62 },
		  UINT64_MAX - 1,
		  UINT64_C(1) << 62,
		  { 3817207832905939137, 1167188152429528124,
		    4112626511552908718, 4450745129555831336 } },
		{ { .count = UINT64_C(1) << 48,
		    .segments = 1000,
		    .shard = 5,
		    .shards = 7 },
		  3,
		  40210710958666,
		  { 39917780226854, 191803908558265, 13940831826471,
		    86064598413024 } },
		{ { .count = (UINT64_C(1) << 48) + 1, .shard = 1, .shards = 3 },
		  0,
		  93824992236886,
		  { 149627745286140, 262551158765563, 246507842390819,
		    160833319219209 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		const uint64_t at[4] = { 0, 1, c[i].len / 3, c[i].len - 1 };
		struct tsock_order_opts o = c[i].opts;

		o.size = sizeof(o);
		o.seed = 77;
		assert_true(tsock_order_len(&o) == c[i].len);
		for (unsigned k = 0; k < 4; k++) {
			uint64_t index;

			assert_int_equal(tsock_order_at(&o, c[i].epoch, at[k],
							1, &index, 1),
					 0);
			assert_true(index == c[i].index[k]);
		}
	}
}

/* Of every kind, and across segments of which some are arrays. */
static void positions_have_what_the_whole_order_has(void **state)
{
	static const struct tsock_order_opts opts[] = {
		{ .kind = TSOCK_ORDER_PHILOX, .count = 131071, .segments = 2 },
		{ .kind = TSOCK_ORDER_PHILOX, .count = 70000, .segments = 9 },
		{ .kind = TSOCK_ORDER_PHILOX, .count = 70000, .repeat = 2 },
		{ .kind = TSOCK_ORDER_PHILOX, .count = 1000, .shards = 3 },
		{ .kind = TSOCK_ORDER_TORCH, .count = 1000 },
		{ .kind = TSOCK_ORDER_SEQUENTIAL, .count = 1000, .shards = 3 },
	};
	static const uint64_t stride[] = { 0, 1, 7, 20011 };

	(void)state;
	for (unsigned k = 0; k < sizeof(opts) / sizeof(opts[0]) * 4; k++) {
		struct tsock_order_opts o = opts[k / 4];
		uint64_t len, step = stride[k % 4], first = 33, *all,
			      part[2000];
		uint64_t n = 2000;

		o.size = sizeof(o);
		all = written(&o, 5, &len);
		if (step && (len - 1 - first) / step + 1 < n)
			n = (len - 1 - first) / step + 1;
		assert_int_equal(tsock_order_at(&o, 5, first, step, part, n),
				 0);
		for (uint64_t i = 0; i < n; i++)
			assert_true(part[i] == all[first + i * step]);
		free(all);
	}
}

static void positions_outside_of_an_epoch_are_refused(void **state)
{
	static const struct {
		uint64_t first, stride, n;
	} bad[] = { { 1000, 1, 1 },       { 999, 1, 2 },
		    { 0, 500, 3 },        { 1, UINT64_MAX, 2 },
		    { UINT64_MAX, 0, 1 }, { 0, 1, UINT64_MAX } };
	struct tsock_order_opts o = of(TSOCK_ORDER_PHILOX, 0, 1000);
	uint64_t index[3] = { JUNK, JUNK, JUNK };

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(tsock_order_at(&o, 0, bad[i].first,
						bad[i].stride, index, bad[i].n),
				 TSOCK_EARG);
		assert_non_null(strstr(tsock_errmsg(), "1000 samples"));
		assert_true(index[0] == JUNK);
	}
	assert_int_equal(tsock_order_at(&o, 0, 1000, 1, index, 0), 0);
	assert_int_equal(tsock_order_at(&o, 0, 1, 499, index, 3), 0);
}

static void assert_producers(struct tsi_order_opts *p, uint64_t epoch)
{
	struct tsock_order_opts o = of(p->kind, p->seed, p->count);
	struct tsi_epochs *kept;
	uint64_t len, *index, at;

	o.segments = p->segments;
	o.shard = p->part.first;
	o.shard_ranks = p->part.ranks;
	o.shards = p->part.world;
	o.start_epoch = p->part.start_epoch;
	o.start = p->part.start;
	index = written(&o, epoch, &len);
	assert_int_equal(tsi_epochs_create(p, &kept), 0);
	assert_int_equal(tsi_epochs_len(kept), len);
	for (uint64_t i = 0; i < len; i++) {
		assert_int_equal(tsi_epochs_at(kept, epoch, i, &at), 0);
		assert_int_equal(index[i], at);
	}
	tsi_epochs_destroy(kept);
	free(index);
}

static void it_is_what_the_producer_visits(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 3 * 4 * 2 * 3; k++) {
		struct tsi_order_opts p = {
			.kind = (enum tsock_order_kind)(k % 3),
			.seed = 77 + k,
			.count = 211 + k,
			.part.world = k / 3 % 4,
		};

		if (p.part.world)
			p.part.first = p.part.world - 1;
		/* Two ranks, and an epoch that is dealt anew. */
		if (p.part.world == 3) {
			p.part.first = 1;
			p.part.ranks = 2;
		}
		if (p.kind != TSOCK_ORDER_TORCH)
			p.segments = k / 12 % 2 ? 5 : 1;
		if (p.part.world && p.segments < 2) {
			p.part.start_epoch = k / 24 * 11;
			p.part.start = k;
		}
		assert_producers(&p, k / 24 * 11);
	}
}

/* A failure leaves the caller's numbers alone, and says why. */
static void refuse(struct tsock_order_opts o, uint64_t epoch, int code,
		   const char *a, const char *b)
{
	uint64_t index[8];

	memset(index, 0x5a, sizeof(index));
	assert_int_equal(tsock_order(&o, epoch, index, 8), code);
	assert_non_null(strstr(tsock_errmsg(), a));
	assert_non_null(strstr(tsock_errmsg(), b));
	for (unsigned i = 0; i < 8; i++)
		assert_true(index[i] == JUNK);
}

static void what_is_no_order_is_refused_by_name(void **state)
{
	struct tsock_order_opts o = of(TSOCK_ORDER_PHILOX, 0, 0);

	(void)state;
	refuse(o, 0, TSOCK_EARG, "empty", "");
	assert_int_equal(tsock_order_len(&o), 0);
	assert_non_null(strstr(tsock_errmsg(), "empty"));
	refuse(of(3, 0, 7), 0, TSOCK_EARG, "tsock_order: opts.kind", "3");
	o.count = 7;
	o.shard = o.shards = 4;
	refuse(o, 0, TSOCK_EARG, "4 of 4", "");
	o.shards = 0;
	refuse(o, 0, TSOCK_EARG, "opts.shard is 4", "opts.shards");
	o = of(TSOCK_ORDER_PHILOX, 0, 7);
	o.segments = 8;
	refuse(o, 0, TSOCK_EARG, "7", "8");
	o.segments = 2;
	o.repeat = 3;
	refuse(o, 0, TSOCK_EARG, "repeated or limited", "segments");
	o.segments = 0;
	o.limit = 22;
	refuse(o, 0, TSOCK_EARG, "22", "21");
	o.limit = 0;
	o.kind = TSOCK_ORDER_SEQUENTIAL;
	o.count = (UINT64_C(1) << 62) + 1;
	refuse(o, 0, TSOCK_ENOTSUP, "3 times", "too long");
	o = of(TSOCK_ORDER_TORCH, 0, 7);
	o.segments = 2;
	refuse(o, 0, TSOCK_EARG, "torch", "segments");
	refuse(of(TSOCK_ORDER_PHILOX, 0, 9), 0, TSOCK_EARG,
	       "room for 8 samples", "has 9");
	o = of(TSOCK_ORDER_TORCH, 0, 214748364);
	assert_int_equal(tsock_order_len(&o), 0);
	assert_non_null(strstr(tsock_errmsg(), "214748364"));
	o = of(TSOCK_ORDER_PHILOX, 0, UINT64_C(1) << 62);
	assert_true(tsock_order_len(&o) == UINT64_C(1) << 62);
	o.count++;
	assert_int_equal(tsock_order_len(&o), 0);
	assert_non_null(strstr(tsock_errmsg(), "4611686018427387905"));
	o.kind = TSOCK_ORDER_SEQUENTIAL;
	assert_true(tsock_order_len(&o) == (UINT64_C(1) << 62) + 1);
}

static void repeated_and_limited_epochs_are_those_of_their_order(void **state)
{
	static const uint64_t twice[] = { 3, 3, 7, 7, 9, 9, 2, 2, 1, 1,
					  8, 8, 0, 0, 4, 4, 6, 6, 5, 5 };
	struct tsock_order_opts o = of(TSOCK_ORDER_PHILOX, 8, 10);

	(void)state;
	o.repeat = 2;
	assert_order(&o, 3, twice, 20);
	o.limit = 7;
	assert_order(&o, 3, twice, 7);
	/* Positions 1, 3, 5 of 3 3 7 7 9 9 2, and the first one as the 7th. */
	o.shards = 2;
	o.shard = 0;
	assert_int_equal(tsock_order_len(&o), 4);
	o.shard = 1;
	assert_order(&o, 3, (const uint64_t[]){ 3, 7, 9, 3 }, 4);
	o.repeat = 1;
	assert_order(&o, 3, (const uint64_t[]){ 7, 2, 8, 3 }, 4);
}

/* The shuffle would draw for years. */
static void an_epoch_that_torch_never_comes_to_is_refused(void **state)
{
	struct tsock_order_opts o = of(TSOCK_ORDER_TORCH, 0, 8);
	uint64_t index[8];

	(void)state;
	refuse(o, UINT64_MAX, TSOCK_ENOTSUP, "18446744073709551615", "torch");
	refuse(o, (UINT64_C(1) << 36) + 1, TSOCK_ENOTSUP, "1099511627776",
	       "torch");
	/* Sharded, each epoch has a generator of its own. */
	o.shards = 1;
	assert_int_equal(tsock_order(&o, UINT64_MAX, index, 8), 0);
	o = of(TSOCK_ORDER_PHILOX, 0, 8);
	assert_int_equal(tsock_order(&o, UINT64_MAX, index, 8), 0);
}

/* The options' struct grows; what is behind a short epoch is not touched. */
static void older_and_newer_callers_are_understood(void **state)
{
	static const uint64_t expected[] = { 3, 7, 9, 2, 1, 8, 0, 4, 6, 5 };
	struct {
		struct tsock_order_opts opts;
		uint64_t next;
	} newer = { .opts = of(TSOCK_ORDER_PHILOX, 8, 10) };
	struct tsock_order_opts older = newer.opts;
	uint64_t index[12];

	(void)state;
	older.size = offsetof(struct tsock_order_opts, segments);
	older.segments = 77; /* of something else, to this caller */
	assert_order(&older, 3, expected, 10);
	newer.opts.size = sizeof(newer);
	assert_order(&newer.opts, 3, expected, 10);
	newer.next = 1;
	assert_int_equal(tsock_order(&newer.opts, 3, index, 12), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "doesn't know"));

	memset(index, 0x5a, sizeof(index));
	assert_int_equal(tsock_order(&older, 3, index, 12), 0);
	assert_memory_equal(index, expected, sizeof(expected));
	assert_true(index[10] == JUNK && index[11] == JUNK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(philox_order_is_as_it_is_described),
		cmocka_unit_test(torch_order_is_the_data_loaders),
		cmocka_unit_test(sequential_shards_are_padded_by_the_head),
		cmocka_unit_test(long_orders_are_as_they_are_described),
		cmocka_unit_test(far_positions_are_as_they_are_described),
		cmocka_unit_test(positions_have_what_the_whole_order_has),
		cmocka_unit_test(positions_outside_of_an_epoch_are_refused),
		cmocka_unit_test(it_is_what_the_producer_visits),
		cmocka_unit_test(what_is_no_order_is_refused_by_name),
		cmocka_unit_test(
			repeated_and_limited_epochs_are_those_of_their_order),
		cmocka_unit_test(an_epoch_that_torch_never_comes_to_is_refused),
		cmocka_unit_test(older_and_newer_callers_are_understood),
	};

	return cmocka_run_group_tests_name("epoch order", tests, NULL, NULL) !=
	       0;
}
