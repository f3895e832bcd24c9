/* SPDX-License-Identifier: MIT */
/*
 * test_ring.c - geometry, slots, margins, publishing, and headers that lie.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring/header.h"
#include "ring/ring.h"
#include "test/lib/ring_fixture.h"

static struct tsock_field image(uint64_t size)
{
	return (struct tsock_field){ "image", TSOCK_U8, TSOCK_FIELD_IMAGE,
				     3,       0,        { size, size, 3, 0 } };
}

static struct tsock_field label(void)
{
	return (struct tsock_field){ .name = "label", .dtype = TSOCK_I64 };
}

static void defaults_are_the_documented_ones(void **state)
{
	struct tsock_field f[] = { image(224), label() };
	struct tsi_geometry g;

	(void)state;
	assert_int_equal(
		tsi_geometry_make(f, 2, &(struct tsi_geometry_wish){ 0 }, &g),
		0);
	assert_int_equal(g.capacity, 1776);
	assert_int_equal(g.join_window, 752);
	assert_int_equal(g.max_batch, 512);
	assert_int_equal(g.field[0].margin, 0);
	assert_int_equal(g.field[1].margin, 512);
	assert_int_equal(g.field[0].map_bytes, 1776 * 224 * 224 * 3);
}

static void ring_grows_to_what_window_and_batch_need(void **state)
{
	struct tsock_field f[] = { image(224) };
	struct tsi_geometry g;

	(void)state;
	assert_int_equal(
		tsi_geometry_make(f, 1,
				  &(struct tsi_geometry_wish){
					  .ring = 10, .max_batch = 512 },
				  &g),
		0);
	assert_int_equal(g.capacity, 2048);
	assert_int_equal(tsi_geometry_make(f, 1,
					   &(struct tsi_geometry_wish){
						   .ring = 10,
						   .join_window = 5000,
						   .max_batch = 100 },
					   &g),
			 0);
	assert_true(g.capacity >= 5200);
}

static void odd_samples_get_a_margin_and_small_growth_is_taken(void **state)
{
	struct tsock_field odd[] = { image(299), label() };
	struct tsock_field large[] = { image(299), image(32) };
	struct tsock_field even[] = { image(64) };
	struct tsi_geometry g;

	(void)state;
	assert_int_equal(
		tsi_geometry_make(odd, 2,
				  &(struct tsi_geometry_wish){
					  .ring = 1000, .max_batch = 64 },
				  &g),
		0);
	/* The labels' margin takes 512 bytes, and 24 more images 6 MB. */
	assert_int_equal(g.capacity, 1000);
	assert_int_equal(g.field[0].margin, 64);
	assert_int_equal(g.field[1].margin, 64);
	assert_int_equal(
		tsi_geometry_make(large, 2,
				  &(struct tsi_geometry_wish){
					  .ring = 1001, .max_batch = 64 },
				  &g),
		0);
	assert_int_equal(g.capacity % 4, 0);
	assert_int_equal(g.field[0].margin, 64);
	assert_int_equal(g.field[1].margin, 0);
	assert_int_equal(
		tsi_geometry_make(even, 1,
				  &(struct tsi_geometry_wish){
					  .ring = 257, .max_batch = 16 },
				  &g),
		0);
	assert_int_equal(g.field[0].margin, 0);
	assert_int_equal(g.field[0].map_bytes % 4096, 0);
}

static void impossible_fields_are_refused(void **state)
{
	struct tsock_field f[] = { image(224) };
	struct tsi_geometry g;

	(void)state;
	f[0].dtype = 99;
	assert_int_equal(
		tsi_geometry_make(f, 1, &(struct tsi_geometry_wish){ 0 }, &g),
		TSOCK_EARG);
	f[0] = image(UINT64_C(1) << 31);
	assert_int_equal(
		tsi_geometry_make(f, 1, &(struct tsi_geometry_wish){ 0 }, &g),
		TSOCK_EARG);
	f[0] = image(0);
	assert_int_equal(
		tsi_geometry_make(f, 1, &(struct tsi_geometry_wish){ 0 }, &g),
		TSOCK_EARG);
	assert_int_equal(
		tsi_geometry_make(f, 0, &(struct tsi_geometry_wish){ 0 }, &g),
		TSOCK_EARG);
}

static void an_image_that_cannot_be_converted_is_refused(void **state)
{
	struct tsock_field f = image(8);
	struct tsi_geometry g;

	(void)state;
	f.shape[2] = 2;
	assert_int_equal(tsi_geometry_make(&f, 1,
					   &(struct tsi_geometry_wish){
						   .ring = 64, .max_batch = 4 },
					   &g),
			 TSOCK_EARG);
	f = image(8);
	f.ndim = 2;
	assert_int_equal(tsi_geometry_make(&f, 1,
					   &(struct tsi_geometry_wish){
						   .ring = 64, .max_batch = 4 },
					   &g),
			 TSOCK_EARG);
	f = image(8);
	f.dtype = TSOCK_F32;
	assert_int_equal(tsi_geometry_make(&f, 1,
					   &(struct tsi_geometry_wish){
						   .ring = 64, .max_batch = 4 },
					   &g),
			 TSOCK_EARG);
}

static void make(struct tsi_ring *r, uint64_t size, uint64_t ring,
		 uint64_t batch)
{
	struct tsock_field f[] = { image(size), label() };
	struct tsi_ring_ident id = { 7, 100, TSI_NEVER };
	struct tsi_geometry g;

	assert_int_equal(
		tsi_geometry_make(f, 2,
				  &(struct tsi_geometry_wish){
					  .ring = ring, .max_batch = batch },
				  &g),
		0);
	assert_int_equal(tsi_ring_create(&g, &id, r), 0);
}

static void the_margin_repeats_the_rings_first_samples(void **state)
{
	struct tsi_ring r;
	uint64_t c, bytes;

	(void)state;
	make(&r, 7, 40, 8);
	c = r.shared->capacity;
	bytes = r.shared->field[0].sample_bytes;
	assert_int_equal(r.shared->field[0].margin, 8);
	for (uint64_t s = 0; s < 2 * c; s++) {
		memset(tsi_ring_slot(&r, 0, s), (int)(s & 255), bytes);
		tsi_ring_mirror(&r, s, 1);
	}
	for (uint64_t i = 0; i < 8; i++)
		assert_memory_equal((uint8_t *)r.data[0].base + (c + i) * bytes,
				    (uint8_t *)r.data[0].base + i * bytes,
				    bytes);
	tsi_ring_destroy(&r);
}

/* A thread that sleeps until its row is woken. */
struct sleeper {
	const struct tsi_ring_shared *ring;
	unsigned row;
	_Atomic pid_t tid;
	pthread_t thread;
};

static void *sleep_once(void *arg)
{
	struct sleeper *s = arg;
	uint32_t seen = tsi_header_wakes(s->ring, s->row);

	atomic_store(&s->tid, (pid_t)syscall(SYS_gettid));
	tsi_header_sleep(s->ring, s->row, seen, 600000);
	return NULL;
}

static char state_of(pid_t tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %*s %c", &state), 1);
	fclose(f);
	return state;
}

static void fall_asleep(struct sleeper *s, const struct tsi_ring *r,
			unsigned row)
{
	s->ring = r->shared;
	s->row = row;
	atomic_init(&s->tid, 0);
	assert_int_equal(pthread_create(&s->thread, NULL, sleep_once, s), 0);
	while (!atomic_load(&s->tid) || state_of(atomic_load(&s->tid)) != 'S')
		sched_yield();
}

/* Was the sleeper still asleep?  The ring didn't wake it, then. */
static bool had_to_be_woken(struct sleeper *s)
{
	const _Atomic uint32_t *word = &s->ring->wake[s->row / TSI_ROWS_A_WORD];
	long n = syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL,
			 NULL, tsi_row_bit(s->row));

	assert_int_equal(pthread_join(s->thread, NULL), 0);
	return n == 1;
}

static uint32_t wakes(const struct tsi_ring *r, unsigned row)
{
	return atomic_load(&r->shared->wake[row / TSI_ROWS_A_WORD]);
}

static void publish_wakes_the_rows_that_want_it_and_no_other(void **state)
{
	struct tsi_tail_page a = { .want = 0 }, b = a, c = a, d = a;
	struct sleeper first, same_word, other_word, second;
	struct tsi_ring r;

	(void)state;
	make(&r, 7, 40, 8);
	tsi_ring_attach(&r, 0, &a);
	tsi_ring_attach(&r, 3, &b);
	tsi_ring_attach(&r, 32, &c);
	tsi_ring_attach(&r, 31, &d);
	atomic_store(&a.want, 5);
	atomic_store(&b.want, 9);
	atomic_store(&c.want, 9);
	atomic_store(&d.want, 5);
	tsi_ring_publish(&r, 4);
	assert_int_equal(wakes(&r, 0), 0);

	fall_asleep(&first, &r, 0);
	fall_asleep(&same_word, &r, 3);
	fall_asleep(&other_word, &r, 32);
	fall_asleep(&second, &r, 31);
	tsi_ring_publish(&r, 5); /* both at once */
	assert_int_equal(wakes(&r, 0), 1);
	assert_int_equal(wakes(&r, 32), 0);
	assert_false(had_to_be_woken(&first));
	assert_false(had_to_be_woken(&second));
	assert_true(had_to_be_woken(&same_word));
	tsi_ring_publish(&r, 6); /* still awake: not again */
	assert_int_equal(wakes(&r, 0), 1);

	tsi_ring_detach(&r, 0);
	assert_int_equal(wakes(&r, 0), 2);
	tsi_ring_publish(&r, 20);
	assert_int_equal(wakes(&r, 0), 3);
	assert_int_equal(wakes(&r, 32), 1);
	assert_false(had_to_be_woken(&other_word));
	assert_int_equal(atomic_load(&r.shared->reader[0]), 0);
	tsi_ring_destroy(&r);
}

static void the_nearest_head_that_a_reader_waits_for_is_known(void **state)
{
	struct tsi_tail_page a = { .want = 0 }, b = { .want = 0 };
	struct tsi_ring r;

	(void)state;
	make(&r, 7, 40, 8);
	tsi_ring_attach(&r, 0, &a);
	tsi_ring_attach(&r, 3, &b);
	assert_int_equal(tsi_ring_waited_for(&r, 4), TSI_NEVER);
	atomic_store(&a.want, 9);
	assert_int_equal(tsi_ring_waited_for(&r, 4), 9);
	atomic_store(&b.spin, 7);
	assert_int_equal(tsi_ring_waited_for(&r, 4), 7);
	/* That one is there. */
	assert_int_equal(tsi_ring_waited_for(&r, 7), 9);
	tsi_ring_detach(&r, 0);
	assert_int_equal(tsi_ring_waited_for(&r, 7), TSI_NEVER);
	tsi_ring_destroy(&r);
}

static void the_next_reader_of_a_row_has_another_number(void **state)
{
	struct tsi_tail_page a = { .want = 0 };
	uint32_t first, other, next;
	struct tsi_ring r;

	(void)state;
	make(&r, 7, 40, 8);
	assert_int_equal(atomic_load(&r.shared->reader[2]), 0);
	first = tsi_ring_attach(&r, 2, &a);
	other = tsi_ring_attach(&r, 3, &a);
	assert_int_equal(atomic_load(&r.shared->reader[2]), first);
	tsi_ring_detach(&r, 2);
	next = tsi_ring_attach(&r, 2, &a);
	assert_int_equal(atomic_load(&r.shared->reader[2]), next);
	assert_true(first && other && next);
	assert_true(first != other && first != next && other != next);
	/* Nor is a number 0 when all of them have been given. */
	r.readers = TSI_ROW_DETACHED - 1;
	assert_int_equal(tsi_ring_attach(&r, 4, &a), 1);
	tsi_ring_destroy(&r);
}

static void only_tails_that_pass_what_is_waited_for_ring(void **state)
{
	struct tsi_ring r;

	(void)state;
	make(&r, 7, 40, 8);
	assert_false(tsi_header_notifies(r.shared, 0, 100));
	atomic_store(&r.shared->gate_want, 10);
	assert_true(tsi_header_notifies(r.shared, 10, 11));
	assert_false(tsi_header_notifies(r.shared, 11, 12));
	assert_false(tsi_header_notifies(r.shared, 5, 10));
	atomic_store(&r.shared->front_want, 20);
	assert_true(tsi_header_notifies(r.shared, 19, 20));
	assert_false(tsi_header_notifies(r.shared, 20, 21));
	atomic_store(&r.shared->start_want, 30);
	assert_true(tsi_header_notifies(r.shared, 30, 31));
	assert_true(tsi_header_notifies(r.shared, 29, 45));
	assert_false(tsi_header_notifies(r.shared, 29, 30));
	assert_false(tsi_header_notifies(r.shared, 31, 32));
	tsi_ring_destroy(&r);
}

/* Between the two no head wakes it, and it is told once that it was. */
static void
a_reader_that_was_not_detached_after_all_is_one_as_before(void **state)
{
	struct tsi_tail_page a = { .want = 5 }, b = { .want = 0 };
	struct tsi_ring r;
	uint32_t reader;

	(void)state;
	make(&r, 7, 40, 8);
	for (unsigned more = 0; more < 2; more++) {
		const _Atomic uint32_t *now = &r.shared->reader[2];
		uint32_t before = wakes(&r, 2);

		reader = tsi_ring_attach(&r, 2, &a);
		/* The reader may have the last row, or not. */
		if (more)
			tsi_ring_attach(&r, 3, &b);
		tsi_ring_set_aside(&r, 2);
		assert_int_equal(atomic_load(now), reader | TSI_ROW_DETACHED);
		assert_int_equal(wakes(&r, 2), ++before);
		tsi_ring_publish(&r, 5);
		assert_int_equal(wakes(&r, 2), before);
		tsi_ring_undo_set_aside(&r, 2, &a);
		assert_int_equal(atomic_load(now), reader);
		tsi_ring_publish(&r, 6);
		assert_int_equal(wakes(&r, 2), ++before);
		tsi_ring_detach(&r, 2);
	}
	tsi_ring_destroy(&r);
}

static void samples_in_a_row_end_where_the_generation_does(void **state)
{
	static const uint64_t bytes[] = { 64 };
	struct fixture_ring f;

	(void)state;
	fixture_ring_make_two(&f, bytes, 1, 64, 8);
	assert_int_equal(tsi_ring_in_half(&f.ring, 5, 9), 9);
	tsi_ring_set_generation(&f.ring, 2, 10);
	assert_int_equal(tsi_ring_in_half(&f.ring, 5, 3), 3);
	assert_int_equal(tsi_ring_in_half(&f.ring, 5, 9), 5);
	assert_int_equal(tsi_ring_in_half(&f.ring, 10, 9), 9);
	fixture_ring_free(&f);
}

/* Reserving takes a while, and the control thread has other work. */
static void a_large_half_is_reserved_bit_by_bit(void **state)
{
	static const uint64_t bytes[] = { 512 << 10 };
	const uint64_t bit = 16 << 20;
	struct fixture_ring f;
	uint64_t all;

	(void)state;
	fixture_ring_make(&f, bytes, 1, 40, 8);
	assert_false(tsi_ring_has_spare(&f.ring));
	fixture_ring_free(&f);
	f.geometry.two_halves = true;
	assert_int_equal(tsi_ring_create(&f.geometry, &f.ident, &f.ring), 0);
	all = f.geometry.bytes;
	assert_in_range(all, bit + 1, 2 * bit - 1);
	assert_int_equal(tsi_ring_reserve(&f.ring), TSOCK_EAGAIN);
	assert_int_equal(tsi_ring_spare(&f.ring), bit);
	assert_false(tsi_ring_has_spare(&f.ring));
	assert_int_equal(tsi_ring_reserve(&f.ring), TSOCK_EAGAIN);
	assert_int_equal(tsi_ring_spare(&f.ring), all);
	assert_int_equal(tsi_ring_reserve(&f.ring), 0);
	assert_true(tsi_ring_has_spare(&f.ring));
	fixture_ring_free(&f);
}

static void finishing_happens_once_and_tells_why(void **state)
{
	struct tsi_ring r;

	(void)state;
	make(&r, 7, 40, 8);
	tsi_ring_finish(&r, TSI_RING_FAILED, "disk on fire");
	tsi_ring_finish(&r, TSI_RING_CLOSED, NULL);
	assert_int_equal(atomic_load(&r.shared->state), TSI_RING_FAILED);
	assert_string_equal(r.shared->error, "disk on fire");
	tsi_ring_destroy(&r);
}

/* Any word of a header may be anything: accepted headers are safe to use. */
static void headers_that_lie_are_refused_or_harmless(void **state)
{
	struct tsi_ring_shared *s = malloc(sizeof(*s));
	struct tsi_ring_ident id;
	struct tsi_geometry g;
	struct tsi_ring r;
	unsigned seed = 1;

	(void)state;
	make(&r, 299, 40, 8);
	assert_int_equal(tsi_ring_read(r.shared, sizeof(*s), &g, &id), 0);
	assert_int_equal(tsi_ring_read(r.shared, 100, &g, &id), TSOCK_EPROTO);
	for (unsigned i = 0; i < 200000; i++) {
		size_t at;

		memcpy(s, r.shared, sizeof(*s));
		at = (size_t)rand_r(&seed) %
		     offsetof(struct tsi_ring_shared, head);
		((uint8_t *)s)[at] ^= (uint8_t)(1u << (rand_r(&seed) & 7));
		if (tsi_ring_read(s, sizeof(*s), &g, &id))
			continue;
		assert_true(g.nfields >= 1 && g.nfields <= TSOCK_MAX_FIELDS);
		for (unsigned f = 0; f < g.nfields; f++) {
			const struct tsi_ring_field *x = &g.field[f];

			assert_true((g.capacity + x->margin) *
					    x->sample_bytes <=
				    x->map_bytes);
		}
		assert_true(g.max_batch * 4 <= g.capacity);
	}
	tsi_ring_destroy(&r);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_documented_ones),
		cmocka_unit_test(ring_grows_to_what_window_and_batch_need),
		cmocka_unit_test(
			odd_samples_get_a_margin_and_small_growth_is_taken),
		cmocka_unit_test(impossible_fields_are_refused),
		cmocka_unit_test(an_image_that_cannot_be_converted_is_refused),
		cmocka_unit_test(the_margin_repeats_the_rings_first_samples),
		cmocka_unit_test(
			publish_wakes_the_rows_that_want_it_and_no_other),
		cmocka_unit_test(
			the_nearest_head_that_a_reader_waits_for_is_known),
		cmocka_unit_test(the_next_reader_of_a_row_has_another_number),
		cmocka_unit_test(only_tails_that_pass_what_is_waited_for_ring),
		cmocka_unit_test(
			a_reader_that_was_not_detached_after_all_is_one_as_before),
		cmocka_unit_test(
			samples_in_a_row_end_where_the_generation_does),
		cmocka_unit_test(a_large_half_is_reserved_bit_by_bit),
		cmocka_unit_test(finishing_happens_once_and_tells_why),
		cmocka_unit_test(headers_that_lie_are_refused_or_harmless),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
