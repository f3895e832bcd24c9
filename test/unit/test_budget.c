/* SPDX-License-Identifier: MIT */
/*
 * test_budget.c - what large images claim: never more than there is, in the
 * order of asking, and nobody waits while holding something.
 */
#include "pixel/budget.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/err.h"

#define THREADS 8
#define ROUNDS 3000
#define SIZE 1000
#define LONG 60000

static struct tsi_budget *make(uint64_t size)
{
	struct tsi_budget *b;

	assert_int_equal(tsi_budget_create(size, &b), 0);
	return b;
}

static void pause_ms(void)
{
	struct timespec ts = { 0, 1000000 };

	nanosleep(&ts, NULL);
}

/* ---- many at once ---- */

struct crowd {
	struct tsi_budget *budget;
	_Atomic uint64_t held;
	_Atomic unsigned wrong;
	_Atomic unsigned seed;
};

static void hold(struct crowd *c, uint64_t more)
{
	if (atomic_fetch_add(&c->held, more) + more > SIZE)
		atomic_fetch_add(&c->wrong, 1);
}

/* Claims, at times in two steps, as a large file with a large image does. */
static void *claim_and_end(void *arg)
{
	struct crowd *c = arg;
	unsigned seed = atomic_fetch_add(&c->seed, 1);

	for (int i = 0; i < ROUNDS; i++) {
		struct tsi_budget_claim claim = { .budget = c->budget };
		uint64_t first = 1 + (uint64_t)rand_r(&seed) % (SIZE / 2);
		uint64_t total = first + (uint64_t)rand_r(&seed) % (SIZE / 2);
		int err;

		if (tsi_budget_claim_grow(&claim, first))
			atomic_fetch_add(&c->wrong, 1);
		hold(c, first);
		err = tsi_budget_claim_grow(&claim, total);
		if (err == TSOCK_EAGAIN) {
			atomic_fetch_sub(&c->held, first);
			tsi_budget_claim_end(&claim);
			err = tsi_budget_claim_grow(&claim, claim.wanted);
			first = 0;
		}
		if (err || claim.held != total)
			atomic_fetch_add(&c->wrong, 1);
		hold(c, total - first);
		atomic_fetch_sub(&c->held, total);
		tsi_budget_claim_end(&claim);
	}
	return NULL;
}

static void all_get_their_turn_and_never_more_than_there_is(void **state)
{
	struct crowd c = { .budget = make(SIZE) };
	struct tsi_budget_claim all = { .budget = c.budget };
	pthread_t thread[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, claim_and_end, &c), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(c.wrong, 0);
	/* Everything came back. */
	assert_int_equal(tsi_budget_claim_all(&all), 0);
	assert_int_equal(all.held, SIZE);
	tsi_budget_claim_end(&all);
	tsi_budget_destroy(c.budget);
}

/* ---- one after the other ---- */

struct asker {
	struct tsi_budget_claim claim;
	uint64_t bytes;
	_Atomic int *turn;
	int got; /* its place among those that were served */
	int err;
	pthread_t thread;
};

static void *ask(void *arg)
{
	struct asker *a = arg;

	a->err = tsi_budget_claim_grow(&a->claim, a->bytes);
	a->got = atomic_fetch_add(a->turn, 1);
	tsi_budget_claim_end(&a->claim);
	return NULL;
}

static void start(struct asker *a, struct tsi_budget *b, uint64_t bytes,
		  _Atomic int *turn)
{
	*a = (struct asker){ .claim = { .budget = b },
			     .bytes = bytes,
			     .turn = turn };
	assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

/*
 * Somebody is in line as soon as a claim can't grow though there is room, of
 * which there is for a minute.
 */
static void wait_for_a_line(struct tsi_budget_claim *mine)
{
	while (tsi_budget_claim_grow(mine, mine->held + 1) == 0)
		pause_ms();
	assert_true(mine->held < LONG);
}

static void who_asks_for_little_does_not_overtake(void **state)
{
	struct tsi_budget *b = make(LONG);
	struct tsi_budget_claim mine = { .budget = b };
	struct asker large, small;
	_Atomic int turn = 0;

	(void)state;
	/* Enough is left for the small one, not for the large one. */
	assert_int_equal(tsi_budget_claim_grow(&mine, 300), 0);
	start(&large, b, LONG, &turn);
	wait_for_a_line(&mine);
	start(&small, b, 10, &turn);
	for (int i = 0; i < 50; i++)
		pause_ms();
	assert_int_equal(turn, 0);
	tsi_budget_claim_end(&mine);
	pthread_join(large.thread, NULL);
	pthread_join(small.thread, NULL);
	assert_int_equal(large.err, 0);
	assert_int_equal(small.err, 0);
	assert_int_equal(turn, 2);
	tsi_budget_destroy(b);
}

static void a_claim_that_holds_some_never_waits(void **state)
{
	struct tsi_budget *b = make(SIZE);
	struct tsi_budget_claim one = { .budget = b }, two = { .budget = b };

	(void)state;
	assert_int_equal(tsi_budget_claim_grow(&one, 600), 0);
	assert_int_equal(tsi_budget_claim_grow(&two, 300), 0);
	assert_int_equal(tsi_budget_claim_grow(&one, 700), 0);
	assert_int_equal(tsi_budget_claim_grow(&two, 301), TSOCK_EAGAIN);
	assert_int_equal(two.wanted, 301);
	assert_int_equal(two.held, 300);
	assert_int_equal(tsi_budget_claim_grow(&two, 200), 0);
	tsi_budget_claim_end(&one);
	assert_int_equal(tsi_budget_claim_grow(&two, 301), 0);
	tsi_budget_claim_end(&two);
	tsi_budget_claim_end(&two);
	tsi_budget_destroy(b);
}

static void what_can_never_fit_is_bad_data_with_both_sizes(void **state)
{
	struct tsi_budget *b = make(5000000);
	struct tsi_budget_claim c = { .budget = b };

	(void)state;
	assert_int_equal(tsi_budget_claim_grow(&c, 5000000), 0);
	assert_int_equal(tsi_budget_claim_grow(&c, 7500000), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "7.5 MB"));
	assert_non_null(strstr(tsock_errmsg(), "5.0 MB"));
	assert_non_null(strstr(tsock_errmsg(), "--image-memory"));
	tsi_budget_claim_end(&c);
	tsi_budget_destroy(b);
}

static void without_a_budget_everything_is_granted(void **state)
{
	struct tsi_budget_claim c = { .budget = NULL };

	(void)state;
	assert_int_equal(tsi_budget_claim_grow(&c, UINT64_MAX), 0);
	assert_int_equal(tsi_budget_claim_all(&c), 0);
	tsi_budget_claim_end(&c);
}

static void closing_ends_all_waiting(void **state)
{
	struct tsi_budget *b = make(LONG);
	struct tsi_budget_claim mine = { .budget = b }, late = { .budget = b };
	struct asker a[3];
	_Atomic int turn = 0;

	(void)state;
	assert_int_equal(tsi_budget_claim_grow(&mine, 500), 0);
	for (int i = 0; i < 3; i++)
		start(&a[i], b, LONG, &turn);
	wait_for_a_line(&mine);
	tsi_budget_close(b);
	for (int i = 0; i < 3; i++) {
		pthread_join(a[i].thread, NULL);
		assert_int_equal(a[i].err, TSOCK_ESTREAM);
	}
	assert_int_equal(tsi_budget_claim_grow(&late, 1), TSOCK_ESTREAM);
	tsi_budget_claim_end(&mine);
	tsi_budget_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			all_get_their_turn_and_never_more_than_there_is),
		cmocka_unit_test(who_asks_for_little_does_not_overtake),
		cmocka_unit_test(a_claim_that_holds_some_never_waits),
		cmocka_unit_test(
			what_can_never_fit_is_bad_data_with_both_sizes),
		cmocka_unit_test(without_a_budget_everything_is_granted),
		cmocka_unit_test(closing_ends_all_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
