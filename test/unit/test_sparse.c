/* SPDX-License-Identifier: MIT */
/*
 * test_sparse.c - notes on a few of very many items.
 */
#include "run/sparse.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define THREADS 4
#define BITS 6
#define BLOCK (1 << BITS)
#define ITEMS (UINT64_C(1) << 48)
#define NOTES 512

/* On both sides of where another level of nodes begins, and the last ones. */
static void every_item_has_a_place_of_its_own(void **state)
{
	static const uint64_t length[] = { 1,     64,        65,
					   16384, 16385,     1000003,
					   ITEMS, ITEMS + 1, UINT64_MAX };

	(void)state;
	for (unsigned k = 0; k < sizeof(length) / sizeof(length[0]); k++) {
		const uint64_t n = length[k];
		const uint64_t item[] = { 0, n / 3, n / 2, n - 1 };
		struct tsi_sparse t;

		tsi_sparse_init(&t, n, BITS, sizeof(uint64_t));
		for (unsigned i = 0; i < 4; i++)
			assert_null(tsi_sparse_find(&t, item[i]));
		for (unsigned i = 0; i < 4; i++) {
			uint64_t *block = tsi_sparse_make(&t, item[i]);

			assert_non_null(block);
			*block = item[i] / BLOCK;
		}
		for (unsigned i = 0; i < 4; i++) {
			uint64_t *block = tsi_sparse_find(&t, item[i]);

			assert_ptr_equal(block, tsi_sparse_make(&t, item[i]));
			assert_true(*block == item[i] / BLOCK);
		}
		tsi_sparse_fini(&t);
	}
}

static void blocks_are_empty_when_they_are_made(void **state)
{
	struct tsi_sparse t;
	const uint8_t *block;

	(void)state;
	tsi_sparse_init(&t, 1000, BITS, 500);
	block = tsi_sparse_make(&t, 999);
	assert_non_null(block);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(block[i], 0);
	/* Of a neighbour, and of none. */
	assert_ptr_equal(tsi_sparse_find(&t, 960), block);
	assert_null(tsi_sparse_find(&t, 959));
	tsi_sparse_fini(&t);
}

struct visits {
	uint64_t first[8];
	unsigned n;
};

static void visit(void *arg, uint64_t first, void *block)
{
	struct visits *v = arg;

	assert_true(v->n < 8);
	assert_true(*(uint64_t *)block == first);
	v->first[v->n++] = first;
}

static void each_block_is_visited_once_in_order(void **state)
{
	static const uint64_t item[] = { ITEMS - 1, 70, 5, 64, 1 << 20 };
	static const uint64_t first[] = { 0, 64, 1 << 20, ITEMS - 64 };
	struct visits v = { .n = 0 };
	struct tsi_sparse t;

	(void)state;
	tsi_sparse_init(&t, ITEMS, BITS, sizeof(uint64_t));
	tsi_sparse_each(&t, visit, &v);
	assert_int_equal(v.n, 0);
	for (unsigned i = 0; i < 5; i++)
		*(uint64_t *)tsi_sparse_make(&t, item[i]) =
			item[i] / BLOCK * BLOCK;
	tsi_sparse_each(&t, visit, &v);
	assert_int_equal(v.n, 4);
	assert_memory_equal(v.first, first, sizeof(first));
	tsi_sparse_fini(&t);
}

static uint64_t noted(uint64_t k)
{
	/* Far from each other, and some in one block. */
	return k / 4 * (ITEMS / NOTES) + k % 4;
}

static void *note_all(void *arg)
{
	struct tsi_sparse *t = arg;

	for (uint64_t k = 0; k < NOTES; k++) {
		_Atomic uint64_t *block = tsi_sparse_make(t, noted(k));

		if (!block)
			return arg;
		atomic_fetch_add(block, 1);
	}
	return NULL;
}

/* Each thread arrives at the same block, whoever made it. */
static void threads_share_what_they_make(void **state)
{
	struct tsi_sparse t;
	pthread_t thread[THREADS];

	(void)state;
	tsi_sparse_init(&t, ITEMS, BITS, sizeof(uint64_t));
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, note_all, &t),
				 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(thread[i], &failed);
		assert_null(failed);
	}
	for (uint64_t k = 0; k < NOTES; k++) {
		_Atomic uint64_t *block = tsi_sparse_find(&t, noted(k));

		assert_non_null(block);
		assert_int_equal(atomic_load(block), 4 * THREADS);
	}
	tsi_sparse_fini(&t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_item_has_a_place_of_its_own),
		cmocka_unit_test(blocks_are_empty_when_they_are_made),
		cmocka_unit_test(each_block_is_visited_once_in_order),
		cmocka_unit_test(threads_share_what_they_make),
	};

	return cmocka_run_group_tests_name("sparse", tests, NULL, NULL);
}
