/*
 * test_consumer.c - consumers on GPUs: each sees every sample exactly once,
 * whichever way it comes there, and no byte changes while anything reads it.
 */
#include "onboard.h"

static void run(const struct source *src, struct rider *r, unsigned n)
{
	pid_t producer = start_producer(src), pid[32];

	for (unsigned i = 0; i < n; i++) {
		r[i].src = src;
		pid[i] = start_rider(&r[i]);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(ended(pid[i]), 0);
	kill_and_reap(producer);
}

static void crowd(enum kind kind, unsigned n)
{
	static const uint32_t size[] = { 16, 7, 1, 12, 5, 16, 3, 10 };
	struct source src = { .name = "crowd",
			      .n = 203,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = n == 2 ? 65536 : 1500,
			      .image = SIDE };
	struct rider r[8] = { { 0 } };

	for (unsigned i = 0; i < n; i++) {
		r[i].kind = kind;
		r[i].batch = size[i];
		r[i].epochs = 2;
		r[i].floats = i % 2 == 0;
		r[i].streams = 1 + i % 2;
		r[i].delay_us = i * 5000;
	}
	run(&src, r, n);
}

#define CROWD(name, kind) \
	static void name##_alone(void **state) \
	{ \
		(void)state; \
		crowd(kind, 1); \
	} \
	static void name##_by_two(void **state) \
	{ \
		(void)state; \
		crowd(kind, 2); \
	} \
	static void name##_by_eight(void **state) \
	{ \
		(void)state; \
		crowd(kind, 8); \
	}

CROWD(host, HOST)
CROWD(staged, STAGED)
CROWD(staged_private, STAGED_PRIVATE)
CROWD(shared, SHARED)
CROWD(private, PRIVATE)
CROWD(legacy, LEGACY)
CROWD(legacy_private, LEGACY_PRIVATE)

#define TESTS_OF(name) \
	cmocka_unit_test(name##_alone), cmocka_unit_test(name##_by_two), \
		cmocka_unit_test(name##_by_eight)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TESTS_OF(host),           TESTS_OF(staged),
		TESTS_OF(staged_private), TESTS_OF(shared),
		TESTS_OF(private),        TESTS_OF(legacy),
		TESTS_OF(legacy_private),
	};

	own_folder();
	return cmocka_run_group_tests_name("gpu consumers", tests, NULL, NULL);
}
