/* SPDX-License-Identifier: MIT */
/*
 * test_mapping.c - private mappings of a ring: what is written stays here, what
 * is published arrives, what is kept stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/lib/mapping_fixture.h"

/* Every place in the ring, across its end, round and round. */
static void walk(const uint64_t *bytes, unsigned nfields,
		 enum tsi_mapping_mode mode, bool pagemap, bool write)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement s;
	uint64_t done = 0;

	fixture_ring_make(&f, bytes, nfields, 32, 8);
	mapping_open(&w, &f, mode);
	if (!pagemap && w.pagemap >= 0) {
		close(w.pagemap);
		w.pagemap = -1;
	}
	mapping_spot_init(&w, &s);
	for (unsigned step = 0; done < 5 * f.geometry.capacity; step++) {
		uint64_t n = 1 + step % 8;

		fixture_ring_publish(&f, done, n);
		mapping_place(&w, done, n, &s);
		assert_true(mapping_shows(&f, &s, done));
		if (write)
			mapping_scribble(&f, &s);
		tsi_mapping_clear(&w, &s);
		done += n;
	}
	assert_true(w.count <= 2);
	mapping_spot_free(&s);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void batches_show_what_is_published(void **state)
{
	(void)state;
	walk(mapping_even, 2, TSI_MAP_SHARED, true, false);
	walk(mapping_odd, 2, TSI_MAP_SHARED, true, false);
	walk(mapping_both, 4, TSI_MAP_SHARED, true, false);
	walk(mapping_even, 2, TSI_MAP_PRIVATE, true, false);
	walk(mapping_odd, 2, TSI_MAP_PRIVATE, true, false);
	walk(mapping_both, 4, TSI_MAP_PRIVATE, true, false);
	walk(mapping_even, 2, TSI_MAP_COPY, true, false);
	walk(mapping_odd, 2, TSI_MAP_COPY, true, false);
	walk(mapping_both, 4, TSI_MAP_COPY, true, false);
}

static void later_samples_arrive_after_batches_were_written_into(void **state)
{
	(void)state;
	walk(mapping_even, 2, TSI_MAP_PRIVATE, true, true);
	walk(mapping_odd, 2, TSI_MAP_PRIVATE, true, true);
	walk(mapping_both, 4, TSI_MAP_PRIVATE, true, true);
	walk(mapping_both, 4, TSI_MAP_COPY, true, true);
}

static void they_arrive_where_pagemap_is_forbidden(void **state)
{
	(void)state;
	walk(mapping_even, 2, TSI_MAP_PRIVATE, false, true);
	walk(mapping_odd, 2, TSI_MAP_PRIVATE, false, true);
}

static void what_one_writes_nobody_else_sees(void **state)
{
	struct fixture_ring f;
	struct tsi_mapping a, b;
	struct tsi_placement x, y;

	(void)state;
	fixture_ring_make(&f, mapping_both, 4, 32, 8);
	mapping_open(&a, &f, TSI_MAP_PRIVATE);
	mapping_open(&b, &f, TSI_MAP_PRIVATE);
	mapping_spot_init(&a, &x);
	mapping_spot_init(&b, &y);
	fixture_ring_publish(&f, 0, 8);
	mapping_place(&a, 0, 8, &x);
	mapping_place(&b, 0, 8, &y);
	mapping_scribble(&f, &x);
	assert_true(mapping_shows(&f, &y, 0));
	for (unsigned i = 0; i < 4; i++)
		assert_true(fixture_ring_equal(
			&f, i, tsi_ring_slot(&f.ring, i, 0), 0, 8));
	assert_true(mapping_is_scribbled(&f, &x));
	tsi_mapping_clear(&a, &x);
	tsi_mapping_clear(&b, &y);
	mapping_spot_free(&x);
	mapping_spot_free(&y);
	tsi_mapping_fini(&a);
	tsi_mapping_fini(&b);
	fixture_ring_free(&f);
}

/* Samples 4.. share a page with samples ..3, and are published later. */
static void neighbours_never_share_a_page(void **state)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement x, y, z;

	(void)state;
	fixture_ring_make(&f, mapping_odd, 2, 32, 8);
	mapping_open(&w, &f, TSI_MAP_PRIVATE);
	mapping_spot_init(&w, &x);
	mapping_spot_init(&w, &y);
	mapping_spot_init(&w, &z);
	fixture_ring_publish(&f, 0, 4);
	mapping_place(&w, 0, 4, &x);
	mapping_scribble(&f, &x);
	fixture_ring_publish(&f, 4, 4);
	mapping_place(&w, 4, 4, &y);
	assert_ptr_not_equal(x.window, y.window);
	assert_true(mapping_shows(&f, &y, 4));
	mapping_scribble(&f, &y);
	assert_true(mapping_is_scribbled(&f, &x));
	/* x's page is free again only when x is. */
	fixture_ring_publish(&f, 8, 4);
	tsi_mapping_clear(&w, &x);
	mapping_place(&w, 8, 4, &z);
	assert_ptr_not_equal(z.window, y.window);
	assert_true(mapping_shows(&f, &z, 8));
	assert_true(mapping_is_scribbled(&f, &y));
	tsi_mapping_clear(&w, &y);
	tsi_mapping_clear(&w, &z);
	assert_int_equal(w.count, 2);
	mapping_spot_free(&x);
	mapping_spot_free(&y);
	mapping_spot_free(&z);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void batches_apart_share_a_window(void **state)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement x, y;

	(void)state;
	fixture_ring_make(&f, mapping_even, 2, 32, 8);
	mapping_open(&w, &f, TSI_MAP_PRIVATE);
	mapping_spot_init(&w, &x);
	mapping_spot_init(&w, &y);
	fixture_ring_publish(&f, 0, 16);
	mapping_place(&w, 0, 4, &x);
	mapping_place(&w, 4, 4, &y);
	assert_ptr_equal(x.window, y.window);
	mapping_scribble(&f, &x);
	assert_true(mapping_shows(&f, &y, 4));
	tsi_mapping_clear(&w, &x);
	assert_true(mapping_shows(&f, &y, 4));
	tsi_mapping_clear(&w, &y);
	mapping_spot_free(&x);
	mapping_spot_free(&y);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void keep_over_three_rings(const uint64_t *bytes, unsigned nfields)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement kept, written, s;
	uint64_t at;

	fixture_ring_make(&f, bytes, nfields, 32, 8);
	mapping_open(&w, &f, TSI_MAP_PRIVATE);
	mapping_spot_init(&w, &kept);
	mapping_spot_init(&w, &written);
	mapping_spot_init(&w, &s);
	fixture_ring_publish(&f, 0, 16);
	mapping_place(&w, 0, 8, &kept);
	mapping_place(&w, 8, 8, &written);
	mapping_scribble(&f, &written);
	assert_int_equal(tsi_mapping_make_private(&w, &kept), 0);
	assert_int_equal(tsi_mapping_make_private(&w, &written), 0);
	for (at = 16; at < 16 + 3 * f.geometry.capacity; at += 8) {
		fixture_ring_publish(&f, at, 8);
		mapping_place(&w, at, 8, &s);
		assert_true(mapping_shows(&f, &s, at));
		mapping_scribble(&f, &s);
		tsi_mapping_clear(&w, &s);
		assert_true(mapping_shows(&f, &kept, 0));
		assert_true(mapping_is_scribbled(&f, &written));
	}
	/* Their pages show the ring again. */
	tsi_mapping_clear(&w, &kept);
	tsi_mapping_clear(&w, &written);
	for (unsigned i = 0; i < 8; i++, at += 8) {
		fixture_ring_publish(&f, at, 8);
		mapping_place(&w, at, 8, &s);
		assert_true(mapping_shows(&f, &s, at));
		tsi_mapping_clear(&w, &s);
	}
	mapping_spot_free(&kept);
	mapping_spot_free(&written);
	mapping_spot_free(&s);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void kept_bytes_stay_while_the_ring_goes_round(void **state)
{
	(void)state;
	keep_over_three_rings(mapping_even, 2);
	keep_over_three_rings(mapping_odd, 2);
	keep_over_three_rings(mapping_both, 4);
}

static void all_batches_of_three_rings_can_be_kept(void **state)
{
	enum { BATCHES = 20 };
	struct tsi_placement s[BATCHES];
	struct fixture_ring f;
	struct tsi_mapping w;
	uint64_t at = 0;

	(void)state;
	fixture_ring_make(&f, mapping_both, 4, 32, 7);
	mapping_open(&w, &f, TSI_MAP_PRIVATE);
	for (unsigned i = 0; i < BATCHES; i++, at += 7) {
		mapping_spot_init(&w, &s[i]);
		fixture_ring_publish(&f, at, 7);
		mapping_place(&w, at, 7, &s[i]);
		assert_int_equal(tsi_mapping_make_private(&w, &s[i]), 0);
	}
	assert_true(at > 3 * f.geometry.capacity);
	for (unsigned i = 0; i < BATCHES; i++)
		assert_true(mapping_shows(&f, &s[i], 7 * i));
	for (unsigned i = 0; i < BATCHES; i++)
		tsi_mapping_clear(&w, &s[i]);
	assert_true(w.count > 3);
	/* Then the windows that were made for them are given back. */
	for (unsigned i = 0; i < 4 * BATCHES; i++, at += 7) {
		fixture_ring_publish(&f, at, 7);
		mapping_place(&w, at, 7, &s[0]);
		assert_true(mapping_shows(&f, &s[0], at));
		tsi_mapping_clear(&w, &s[0]);
	}
	assert_int_equal(w.count, 2);
	for (unsigned i = 0; i < BATCHES; i++)
		mapping_spot_free(&s[i]);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void read_only_batches_cannot_be_kept_or_written(void **state)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement s;

	(void)state;
	fixture_ring_make(&f, mapping_even, 2, 32, 8);
	mapping_open(&w, &f, TSI_MAP_SHARED);
	mapping_spot_init(&w, &s);
	fixture_ring_publish(&f, 0, 8);
	mapping_place(&w, 0, 8, &s);
	assert_int_equal(tsi_mapping_make_private(&w, &s), TSOCK_EHELD);
	assert_int_equal(
		mprotect(w.field[0].plain[0], 4096, PROT_READ | PROT_WRITE),
		-1);
	tsi_mapping_clear(&w, &s);
	mapping_spot_free(&s);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

/* A ring that goes on in its other half, and then in the first one again. */
static void turn(const uint64_t *bytes, unsigned n, enum tsi_mapping_mode mode)
{
	struct tsi_placement s, kept, across;
	struct fixture_ring f;
	struct tsi_mapping w;
	uint64_t c, since;

	fixture_ring_make_two(&f, bytes, n, 32, 8);
	c = tsi_ring_capacity(&f.ring);
	since = c + 20;
	mapping_open(&w, &f, mode);
	mapping_spot_init(&w, &s);
	mapping_spot_init(&w, &kept);
	mapping_spot_init(&w, &across);
	fixture_ring_publish(&f, 0, c);
	fixture_ring_publish(&f, c, 20);
	mapping_place(&w, since - 12, 8, &kept);
	tsi_ring_set_generation(&f.ring, 2, since);
	fixture_ring_publish(&f, since, c - 4);
	tsi_mapping_turn(&w, 1, since);
	/* What was written since is in no slot of what was there before. */
	assert_true(mapping_shows(&f, &kept, since - 12));
	mapping_place(&w, since - 4, 8, &across);
	assert_true(mapping_shows(&f, &across, since - 4));
	assert_true(across.own);
	for (uint64_t q = since; q + 8 <= since + c - 4; q += 8) {
		mapping_place(&w, q, 8, &s);
		assert_true(mapping_shows(&f, &s, q));
		assert_true(mode == TSI_MAP_COPY || !s.own);
		tsi_mapping_clear(&w, &s);
	}
	assert_true(mapping_shows(&f, &kept, since - 12));
	tsi_mapping_clear(&w, &kept);
	/* Across the ring's end and both halves at once. */
	since += c - 4;
	tsi_ring_set_generation(&f.ring, 3, since);
	fixture_ring_publish(&f, since, 8);
	tsi_mapping_turn(&w, 0, since);
	mapping_place(&w, since - 3, 8, &s);
	assert_true(mapping_shows(&f, &s, since - 3));
	tsi_mapping_clear(&w, &s);
	tsi_mapping_clear(&w, &across);
	mapping_spot_free(&s);
	mapping_spot_free(&kept);
	mapping_spot_free(&across);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void batches_are_found_in_both_halves_of_a_ring(void **state)
{
	(void)state;
	for (unsigned mode = TSI_MAP_SHARED; mode <= TSI_MAP_COPY; mode++) {
		turn(mapping_even, 2, mode);
		turn(mapping_odd, 2, mode);
		turn(mapping_both, 4, mode);
	}
}

/* Whatever a header says: there is no memory behind it. */
static void a_ring_of_one_half_never_turns(void **state)
{
	struct tsi_placement s;
	struct fixture_ring f;
	struct tsi_mapping w;

	(void)state;
	fixture_ring_make(&f, mapping_both, 4, 32, 8);
	mapping_open(&w, &f, TSI_MAP_SHARED);
	mapping_spot_init(&w, &s);
	fixture_ring_publish(&f, 0, 16);
	tsi_mapping_turn(&w, 1, 4);
	mapping_place(&w, 0, 8, &s);
	assert_true(mapping_shows(&f, &s, 0));
	tsi_mapping_clear(&w, &s);
	mapping_spot_free(&s);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_show_what_is_published),
		cmocka_unit_test(
			later_samples_arrive_after_batches_were_written_into),
		cmocka_unit_test(they_arrive_where_pagemap_is_forbidden),
		cmocka_unit_test(what_one_writes_nobody_else_sees),
		cmocka_unit_test(neighbours_never_share_a_page),
		cmocka_unit_test(batches_apart_share_a_window),
		cmocka_unit_test(kept_bytes_stay_while_the_ring_goes_round),
		cmocka_unit_test(all_batches_of_three_rings_can_be_kept),
		cmocka_unit_test(read_only_batches_cannot_be_kept_or_written),
		cmocka_unit_test(batches_are_found_in_both_halves_of_a_ring),
		cmocka_unit_test(a_ring_of_one_half_never_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
