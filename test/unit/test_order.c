/* SPDX-License-Identifier: MIT */
/*
 * test_order.c - epochs' orders.  test/parity/test_order.py compares the torch
 * kind with torch itself.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "data/epochs.h"
#include "order/mt19937.h"

static struct tsi_epochs *make(struct tsi_order_opts opts)
{
	struct tsi_epochs *o = NULL;

	if (tsi_epochs_create(&opts, &o))
		fail_msg("%s", tsock_errmsg());
	return o;
}

static uint64_t at(struct tsi_epochs *o, uint64_t epoch, uint64_t position)
{
	uint64_t index = UINT64_MAX;

	assert_int_equal(tsi_epochs_at(o, epoch, position, &index), 0);
	return index;
}

static uint64_t *epoch_of(struct tsi_epochs *o, uint64_t epoch)
{
	uint64_t n = tsi_epochs_len(o);
	uint64_t *v = calloc(n, sizeof(*v));

	for (uint64_t p = 0; p < n; p++)
		v[p] = at(o, epoch, p);
	return v;
}

static int ascending(const void *a, const void *b)
{
	uint64_t i = *(const uint64_t *)a;
	uint64_t j = *(const uint64_t *)b;

	return (i > j) - (i < j);
}

static void assert_permutation(const uint64_t *v, uint64_t n)
{
	uint8_t *seen = calloc(n, 1);

	for (uint64_t i = 0; i < n; i++) {
		assert_true(v[i] < n);
		assert_int_equal(seen[v[i]]++, 0);
	}
	free(seen);
}

static void every_epoch_has_every_sample_once(void **state)
{
	static const uint64_t count[] = { 1, 2, 3, 7, 300, 5000 };

	(void)state;
	for (int kind = TSOCK_ORDER_PHILOX; kind <= TSOCK_ORDER_SEQUENTIAL;
	     kind++) {
		for (unsigned c = 0; c < 6; c++) {
			struct tsi_epochs *o = make((struct tsi_order_opts){
				.kind = (enum tsock_order_kind)kind,
				.seed = 3,
				.count = count[c] });

			assert_int_equal(tsi_epochs_len(o), count[c]);
			for (uint64_t e = 0; e < 6; e++) {
				uint64_t *v = epoch_of(o, e);

				assert_permutation(v, count[c]);
				free(v);
			}
			tsi_epochs_destroy(o);
		}
	}
}

static void philox_differs_by_seed_and_by_epoch(void **state)
{
	static const uint64_t seed[] = { 0, 1, UINT64_C(1) << 32, UINT64_MAX };
	uint64_t *v[8];

	(void)state;
	for (unsigned s = 0; s < 4; s++) {
		struct tsi_epochs *o = make(
			(struct tsi_order_opts){ .kind = TSOCK_ORDER_PHILOX,
						 .seed = seed[s],
						 .count = 100 });

		v[2 * s] = epoch_of(o, 0);
		v[2 * s + 1] = epoch_of(o, UINT64_C(1) << 32);
		tsi_epochs_destroy(o);
	}
	for (unsigned i = 0; i < 8; i++)
		for (unsigned j = 0; j < i; j++)
			assert_memory_not_equal(v[i], v[j], 100 * sizeof(**v));
	for (unsigned i = 0; i < 8; i++)
		free(v[i]);
}

/* Another order for the same seed would break resuming and reproducing. */
static void philox_order_is_the_one_it_always_was(void **state)
{
	static const uint64_t expected[2][8] = {
		{ 1, 2, 4, 6, 0, 7, 3, 5 },
		{ 0, 5, 3, 7, 6, 2, 1, 4 },
	};
	struct tsi_epochs *o = make((struct tsi_order_opts){
		.kind = TSOCK_ORDER_PHILOX, .seed = 42, .count = 8 });

	(void)state;
	for (uint64_t e = 0; e < 2; e++)
		for (uint64_t p = 0; p < 8; p++)
			assert_int_equal(at(o, e, p), expected[e][p]);
	tsi_epochs_destroy(o);
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
		struct tsi_epochs *o = make((struct tsi_order_opts){
			.kind = TSOCK_ORDER_TORCH,
			.seed = s ? (UINT64_C(1) << 32) + 5 : 0,
			.count = 7 });

		for (uint64_t e = 3; e-- > 0;)
			for (uint64_t p = 0; p < 7; p++)
				assert_int_equal(at(o, e, p),
						 expected[s][e][p]);
		tsi_epochs_destroy(o);
	}
}

static void philox_is_uniform(void **state)
{
	enum { N = 4, EPOCHS = 24000 };
	unsigned times[256] = { 0 };
	double chi2 = 0;
	struct tsi_epochs *o = make((struct tsi_order_opts){
		.kind = TSOCK_ORDER_PHILOX, .seed = 1, .count = N });

	(void)state;
	for (uint64_t e = 0; e < EPOCHS; e++) {
		unsigned key = 0;

		for (uint64_t p = 0; p < N; p++)
			key = key << 2 | (unsigned)at(o, e, p);
		times[key]++;
	}
	for (unsigned k = 0; k < 256; k++) {
		double d = (double)times[k] - 1000;

		if (times[k] > 0)
			chi2 += d * d / 1000;
	}
	/* 23 degrees of freedom: beyond 60 once in 30,000 seeds. */
	assert_true(chi2 > 5 && chi2 < 60);
	tsi_epochs_destroy(o);
}

static void asking_in_any_order_gives_the_same(void **state)
{
	static const uint64_t epoch[] = { 9, 0, 200, 3, 4, 0, 77, 200, 1, 9 };

	(void)state;
	for (int kind = TSOCK_ORDER_PHILOX; kind <= TSOCK_ORDER_TORCH; kind++) {
		struct tsi_order_opts opts = {
			.kind = (enum tsock_order_kind)kind,
			.seed = 11,
		};
		struct tsi_epochs *wild;

		opts.count = kind == TSOCK_ORDER_TORCH ? 20000 : 400000;
		wild = make(opts);
		for (unsigned i = 0; i < 10; i++) {
			struct tsi_epochs *tame = make(opts);

			for (uint64_t p = opts.count; p-- > 0;)
				if (p % 997 == 0)
					assert_int_equal(at(wild, epoch[i], p),
							 at(tame, epoch[i], p));
			tsi_epochs_destroy(tame);
		}
		tsi_epochs_destroy(wild);
	}
}

static void segments_hold_the_same_samples_in_every_epoch(void **state)
{
	enum { N = 1003, S = 10 };
	struct tsi_epochs *o =
		make((struct tsi_order_opts){ .kind = TSOCK_ORDER_PHILOX,
					      .seed = 5,
					      .count = N,
					      .segments = S });
	uint64_t bounds[S + 1];
	uint64_t *first = epoch_of(o, 0);
	uint64_t *second = epoch_of(o, 1);

	(void)state;
	tsi_epochs_bounds(o, bounds);
	assert_int_equal(bounds[0], 0);
	assert_int_equal(bounds[S], N);
	assert_permutation(first, N);
	assert_memory_not_equal(first, second, N * sizeof(*first));
	for (unsigned s = 0; s < S; s++) {
		uint64_t n = bounds[s + 1] - bounds[s];

		assert_true(n == N / S || n == N / S + 1);
		assert_memory_not_equal(first + bounds[s], second + bounds[s],
					n * sizeof(*first));
		qsort(first + bounds[s], n, sizeof(*first), ascending);
		qsort(second + bounds[s], n, sizeof(*first), ascending);
		/* Dealt by the seed, not cut off in the data set's order. */
		assert_true(first[bounds[s + 1] - 1] - first[bounds[s]] >= n);
	}
	assert_memory_equal(first, second, N * sizeof(*first));
	free(first);
	free(second);
	tsi_epochs_destroy(o);
}

static void sequential_segments_are_contiguous(void **state)
{
	struct tsi_epochs *o = make((struct tsi_order_opts){
		.kind = TSOCK_ORDER_SEQUENTIAL, .count = 130, .segments = 64 });
	uint64_t bounds[65];

	(void)state;
	tsi_epochs_bounds(o, bounds);
	for (unsigned s = 0; s < 64; s++)
		assert_int_equal(bounds[s + 1] - bounds[s], s < 2 ? 3 : 2);
	for (uint64_t p = 0; p < 130; p++)
		assert_int_equal(at(o, 7, p), p);
	tsi_epochs_destroy(o);
}

static void ranks_share_an_epoch_padded_by_its_head(void **state)
{
	static const uint64_t count[] = { 1, 2, 10, 301 };
	static const uint32_t worlds[] = { 1, 2, 3, 8 };

	(void)state;
	for (unsigned k = 0; k < 4 * 4 * 2; k++) {
		uint64_t n = count[k % 4];
		uint32_t world = worlds[k / 4 % 4];
		struct tsi_order_opts opts = {
			.kind = k / 16 ? TSOCK_ORDER_SEQUENTIAL
				       : TSOCK_ORDER_PHILOX,
			.seed = 2,
			.count = n
		};
		struct tsi_epochs *whole = make(opts);
		uint64_t len = (n + world - 1) / world;
		opts.part.world = world;
		for (uint32_t rank = 0; rank < world; rank++) {
			struct tsi_epochs *part;

			opts.part.first = rank;
			part = make(opts);
			assert_int_equal(tsi_epochs_len(part), len);
			for (uint64_t p = 0; p < len; p++)
				assert_int_equal(
					at(part, 3, p),
					at(whole, 3, (p * world + rank) % n));
			tsi_epochs_destroy(part);
		}
		tsi_epochs_destroy(whole);
	}
}

static void ranks_with_segments_cover_the_data_set(void **state)
{
	enum { N = 1001, WORLD = 4, LEN = 251 };
	unsigned seen[N] = { 0 };

	(void)state;
	for (uint32_t rank = 0; rank < WORLD; rank++) {
		struct tsi_epochs *o = make(
			(struct tsi_order_opts){ .kind = TSOCK_ORDER_PHILOX,
						 .seed = 8,
						 .count = N,
						 .segments = 5,
						 .part.first = rank,
						 .part.world = WORLD });
		uint64_t *e0 = epoch_of(o, 0);
		uint64_t *e1 = epoch_of(o, 1);

		assert_int_equal(tsi_epochs_len(o), LEN);
		for (unsigned p = 0; p < LEN; p++)
			seen[e0[p]]++;
		qsort(e0, LEN, sizeof(*e0), ascending);
		qsort(e1, LEN, sizeof(*e1), ascending);
		assert_memory_equal(e0, e1, LEN * sizeof(*e0));
		free(e0);
		free(e1);
		tsi_epochs_destroy(o);
	}
	for (unsigned i = 0; i < N; i++)
		assert_true(seen[i] == 1 || seen[i] == 2);
}

static void refuse(struct tsi_order_opts opts, int code, const char *a,
		   const char *b)
{
	struct tsi_epochs *o = NULL;

	assert_int_equal(tsi_epochs_create(&opts, &o), code);
	assert_null(o);
	assert_non_null(strstr(tsock_errmsg(), a));
	assert_non_null(strstr(tsock_errmsg(), b));
}

static void impossible_options_are_refused_by_name(void **state)
{
	struct tsi_epochs *o;
	uint64_t index;

	(void)state;
	refuse((struct tsi_order_opts){ .kind = TSOCK_ORDER_PHILOX },
	       TSOCK_EARG, "empty", "");
	refuse((struct tsi_order_opts){ .kind = TSOCK_ORDER_PHILOX,
					.count = 7,
					.segments = 8 },
	       TSOCK_EARG, "7", "8");
	refuse((struct tsi_order_opts){ .kind = TSOCK_ORDER_SEQUENTIAL,
					.count = 100,
					.segments = 26,
					.part.world = 4 },
	       TSOCK_EARG, "26", "25");
	refuse((struct tsi_order_opts){ .kind = TSOCK_ORDER_TORCH,
					.count = 7,
					.segments = 2 },
	       TSOCK_EARG, "torch", "segments");
	refuse((struct tsi_order_opts){ .kind = TSOCK_ORDER_TORCH,
					.count = 214748364 },
	       TSOCK_ENOTSUP, "torch", "214748364");
	refuse((struct tsi_order_opts){ .kind = TSOCK_ORDER_PHILOX,
					.count = (UINT64_C(1) << 62) + 1 },
	       TSOCK_ENOTSUP, "4611686018427387905", "sequential");
	refuse((struct tsi_order_opts){ .kind = TSOCK_ORDER_PHILOX,
					.count = 7,
					.part.first = 4,
					.part.world = 4 },
	       TSOCK_EARG, "rank 4", "4");
	o = make((struct tsi_order_opts){ .kind = TSOCK_ORDER_PHILOX,
					  .count = 7 });
	assert_int_equal(tsi_epochs_at(o, 0, 7, &index), TSOCK_EARG);
	tsi_epochs_destroy(o);
	tsi_epochs_destroy(NULL);
}

static void mersenne_twister_is_the_published_one(void **state)
{
	struct tsi_mt19937 mt;
	struct tsi_mt19937 skipped;

	(void)state;
	tsi_mt19937_seed(&mt, 5489);
	assert_int_equal(tsi_mt19937_next(&mt), 3499211612u);
	for (int i = 2; i < 10000; i++)
		(void)tsi_mt19937_next(&mt);
	assert_int_equal(tsi_mt19937_next(&mt), 4123659995u);
	for (uint64_t n = 0; n < 3000; n += 7) {
		tsi_mt19937_seed(&mt, 1);
		tsi_mt19937_seed(&skipped, 1);
		for (uint64_t i = 0; i < n; i++)
			(void)tsi_mt19937_next(&mt);
		tsi_mt19937_skip(&skipped, n);
		assert_int_equal(tsi_mt19937_next(&mt),
				 tsi_mt19937_next(&skipped));
	}
}

/* Threads that claim positions as the producer's workers do. */
enum { RUN_COUNT = 30011, RUN_EPOCHS = 7 };

struct run {
	struct tsi_epochs *order;
	_Atomic uint64_t next;
	uint32_t *got;
};

static void *claim(void *arg)
{
	struct run *r = arg;
	uint64_t seq;

	while ((seq = r->next++) < (uint64_t)RUN_COUNT * RUN_EPOCHS) {
		uint64_t index;

		if (tsi_epochs_at(r->order, seq / RUN_COUNT, seq % RUN_COUNT,
				  &index))
			abort();
		r->got[seq] = (uint32_t)index;
	}
	return NULL;
}

static void many_threads_get_what_one_gets(void **state)
{
	(void)state;
	for (int kind = TSOCK_ORDER_PHILOX; kind <= TSOCK_ORDER_TORCH; kind++) {
		struct tsi_order_opts opts = {
			.kind = (enum tsock_order_kind)kind,
			.seed = 4,
			.count = RUN_COUNT
		};
		struct run r = { .order = make(opts) };
		struct tsi_epochs *alone = make(opts);
		pthread_t thread[8];

		r.got = calloc((size_t)RUN_COUNT * RUN_EPOCHS, sizeof(*r.got));
		for (int i = 0; i < 8; i++)
			pthread_create(&thread[i], NULL, claim, &r);
		for (int i = 0; i < 8; i++)
			pthread_join(thread[i], NULL);
		for (uint64_t s = 0; s < RUN_COUNT * RUN_EPOCHS; s++)
			assert_int_equal(r.got[s], at(alone, s / RUN_COUNT,
						      s % RUN_COUNT));
		free(r.got);
		tsi_epochs_destroy(r.order);
		tsi_epochs_destroy(alone);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_epoch_has_every_sample_once),
		cmocka_unit_test(philox_differs_by_seed_and_by_epoch),
		cmocka_unit_test(philox_order_is_the_one_it_always_was),
		cmocka_unit_test(torch_order_is_the_data_loaders),
		cmocka_unit_test(philox_is_uniform),
		cmocka_unit_test(asking_in_any_order_gives_the_same),
		cmocka_unit_test(segments_hold_the_same_samples_in_every_epoch),
		cmocka_unit_test(sequential_segments_are_contiguous),
		cmocka_unit_test(ranks_share_an_epoch_padded_by_its_head),
		cmocka_unit_test(ranks_with_segments_cover_the_data_set),
		cmocka_unit_test(impossible_options_are_refused_by_name),
		cmocka_unit_test(mersenne_twister_is_the_published_one),
		cmocka_unit_test(many_threads_get_what_one_gets),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL) != 0;
}
