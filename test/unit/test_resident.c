/* SPDX-License-Identifier: MIT */
/*
 * test_resident.c - who owns samples that lie in a GPU's memory too, and when
 * that memory is given back.  No memory is looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stage/resident.h"

#define CAPACITY 16
#define DEVICE 3

static struct tsi_residents *table;
static struct tsi_resident_held *held[CAPACITY];
static uint8_t memory[1024];

static int set_up(void **state)
{
	(void)state;
	memset(held, 0, sizeof(held));
	return tsi_residents_create(CAPACITY, &table);
}

static int tear_down(void **state)
{
	(void)state;
	tsi_residents_destroy(table);
	return 0;
}

static void count_one(void *arg)
{
	++*(unsigned *)arg;
}

/* Samples of 4 bytes in a field 1; field 0 is in host memory alone. */
static void keep(unsigned device, uint64_t first, unsigned count,
		 unsigned *released)
{
	struct tsi_resident r = { .device = device,
				  .first = first,
				  .count = count,
				  .data = { NULL, memory + 4 * (first % 200) },
				  .bytes = { 8, 4 },
				  .release = count_one,
				  .arg = released };

	*released = 0;
	tsi_residents_give_back(tsi_residents_keep(table, &r));
}

static unsigned take(unsigned device, uint64_t first, unsigned count)
{
	unsigned n = 0;

	tsi_residents_take(table, device, first, count, held);
	for (unsigned i = 0; i < count; i++)
		n += held[i] != NULL;
	return n;
}

static void drop(void)
{
	tsi_residents_drop(table, held, CAPACITY);
	for (unsigned i = 0; i < CAPACITY; i++)
		assert_null(held[i]);
}

static void without_a_stage_on_that_gpu_it_is_given_back_at_once(void **state)
{
	unsigned a, b;

	(void)state;
	keep(DEVICE, 0, 4, &a);
	assert_int_equal(a, 1);
	tsi_residents_attach(table, DEVICE + 1);
	keep(DEVICE, 4, 4, &a);
	assert_int_equal(a, 1);
	keep(64000, 8, 4, &b); /* no GPU has such a number */
	assert_int_equal(b, 1);
	assert_int_equal(take(DEVICE, 0, 12), 0);
	tsi_residents_detach(table, DEVICE + 1);
}

static void it_is_given_back_when_the_last_sample_was_copied(void **state)
{
	unsigned a, b;

	(void)state;
	tsi_residents_attach(table, DEVICE);
	keep(DEVICE, 30, 5, &a);
	keep(DEVICE, 35, 5, &b);
	assert_int_equal(take(DEVICE, 28, 4), 2);
	assert_null(held[1]);
	assert_null(tsi_resident_at(held[1], 1, 29));
	assert_ptr_equal(tsi_resident_at(held[2], 1, 30), memory + 4 * 30);
	assert_ptr_equal(tsi_resident_at(held[3], 1, 31), memory + 4 * 31);
	assert_null(tsi_resident_at(held[3], 0, 31));
	drop();
	assert_int_equal(a, 0);
	/* A second stage has these from the ring. */
	assert_int_equal(take(DEVICE, 30, 2), 0);
	assert_int_equal(take(DEVICE, 32, 8), 8);
	assert_int_equal(a + b, 0);
	drop();
	assert_int_equal(a, 1);
	assert_int_equal(b, 1);
	tsi_residents_detach(table, DEVICE);
}

static void another_gpu_s_stage_leaves_it_alone(void **state)
{
	unsigned a;

	(void)state;
	tsi_residents_attach(table, DEVICE);
	tsi_residents_attach(table, 0);
	keep(DEVICE, 0, 4, &a);
	assert_int_equal(take(0, 0, 4), 0);
	tsi_residents_detach(table, 0);
	assert_int_equal(take(DEVICE, 0, 4), 4);
	drop();
	assert_int_equal(a, 1);
	tsi_residents_detach(table, DEVICE);
}

/* Also where a sample of that number had been made before, as after a jump
 * back. */
static void what_is_written_anew_is_not_taken_from_the_old_memory(void **state)
{
	unsigned a, b, c;

	(void)state;
	tsi_residents_attach(table, DEVICE);
	keep(DEVICE, 0, 8, &a);
	tsi_residents_give_back(tsi_residents_forget(table, 2, 3));
	assert_int_equal(take(DEVICE, 0, 5), 2);
	assert_null(held[2]);
	drop();
	keep(DEVICE, 5, 3, &b);
	assert_int_equal(a, 1);
	/* A ring's length later. */
	keep(DEVICE, 5 + CAPACITY, 2, &c);
	assert_int_equal(take(DEVICE, 5, 2), 0);
	assert_int_equal(b, 0);
	tsi_residents_give_back(tsi_residents_forget(table, 7 + CAPACITY, 1));
	assert_int_equal(b, 1);
	assert_int_equal(c, 0);
	assert_int_equal(take(DEVICE, 5 + CAPACITY, 3), 2);
	drop();
	assert_int_equal(c, 1);
	tsi_residents_detach(table, DEVICE);
}

static void the_last_stage_s_end_gives_back_what_it_did_not_take(void **state)
{
	unsigned a, b, other;

	(void)state;
	tsi_residents_attach(table, DEVICE);
	tsi_residents_attach(table, DEVICE);
	tsi_residents_attach(table, 0);
	keep(DEVICE, 0, 4, &a);
	keep(DEVICE, 4, 4, &b);
	keep(0, 8, 4, &other);
	assert_int_equal(take(DEVICE, 2, 1), 1);
	tsi_residents_detach(table, DEVICE);
	assert_int_equal(a + b, 0);
	tsi_residents_detach(table, DEVICE);
	/* The first one still has a sample under way. */
	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	drop();
	assert_int_equal(a, 1);
	assert_int_equal(other, 0);
	tsi_residents_destroy(table);
	table = NULL;
	assert_int_equal(other, 1);
}

static void a_stage_without_a_table_has_nothing(void **state)
{
	(void)state;
	tsi_residents_attach(NULL, DEVICE);
	tsi_residents_take(NULL, DEVICE, 0, CAPACITY, held);
	tsi_residents_drop(NULL, held, CAPACITY);
	tsi_residents_detach(NULL, DEVICE);
	assert_null(held[0]);
	assert_null(tsi_resident_at(NULL, 0, 0));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_stage_on_that_gpu_it_is_given_back_at_once),
		TEST(it_is_given_back_when_the_last_sample_was_copied),
		TEST(another_gpu_s_stage_leaves_it_alone),
		TEST(what_is_written_anew_is_not_taken_from_the_old_memory),
		TEST(the_last_stage_s_end_gives_back_what_it_did_not_take),
		TEST(a_stage_without_a_table_has_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
