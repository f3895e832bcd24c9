/* SPDX-License-Identifier: MIT */
/*
 * test_geometry.c - rings that can't be made, and numbers of another process
 * that can't be those of a ring.
 */
#include "ring/geometry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST (UINT64_C(1) << 31) /* samples of a ring */

/* A field of so many bytes. */
static struct tsock_field bytes_of(uint64_t n)
{
	return (struct tsock_field){
		.name = "bytes", .dtype = TSOCK_U8, .ndim = 1, .shape = { n }
	};
}

/* ---- rings that are made ---- */

static void a_name_has_to_be_there_and_to_end(void **state)
{
	struct tsock_field f = bytes_of(8);
	struct tsi_geometry g;

	(void)state;
	assert_true(tsi_geometry_field_is_good(&f));
	memset(f.name, 'x', sizeof(f.name));
	assert_false(tsi_geometry_field_is_good(&f));
	assert_int_equal(tsi_geometry_make(&f, 1, 0, 0, 0, &g), TSOCK_EARG);
	assert_string_equal(tsock_errmsg(), "field 0 has no name");
	f.name[0] = 0;
	assert_int_equal(tsi_geometry_make(&f, 1, 0, 0, 0, &g), TSOCK_EARG);
	assert_string_equal(tsock_errmsg(), "field 0 has no name");
}

static void a_sample_whose_bytes_cannot_be_counted_is_refused(void **state)
{
	struct tsock_field f = bytes_of(UINT64_C(1) << 40);

	(void)state;
	assert_int_equal(tsi_geometry_field_bytes(&f), UINT64_C(1) << 40);
	f.shape[0]++;
	assert_int_equal(tsi_geometry_field_bytes(&f), 0);
	f.ndim = 2;
	f.shape[0] = f.shape[1] = UINT64_C(1) << 32;
	assert_int_equal(tsi_geometry_field_bytes(&f), 0);
	f = bytes_of(8);
	f.ndim = TSOCK_MAX_DIMS + 1;
	assert_int_equal(tsi_geometry_field_bytes(&f), 0);
}

static void too_many_fields_are_refused(void **state)
{
	struct tsock_field f[TSOCK_MAX_FIELDS + 1];
	struct tsi_geometry g;

	(void)state;
	for (unsigned i = 0; i <= TSOCK_MAX_FIELDS; i++)
		f[i] = bytes_of(8);
	assert_int_equal(tsi_geometry_make(f, TSOCK_MAX_FIELDS, 0, 0, 0, &g),
			 0);
	assert_int_equal(
		tsi_geometry_make(f, TSOCK_MAX_FIELDS + 1, 0, 0, 0, &g),
		TSOCK_EARG);
}

static void too_many_samples_are_refused(void **state)
{
	struct tsock_field f = bytes_of(1);
	struct tsi_geometry g;

	(void)state;
	assert_int_equal(tsi_geometry_make(&f, 1, MOST, MOST, MOST / 4, &g), 0);
	assert_int_equal(tsi_geometry_make(&f, 1, MOST + 1, 0, 0, &g),
			 TSOCK_EARG);
	assert_int_equal(tsi_geometry_make(&f, 1, 0, MOST + 1, 0, &g),
			 TSOCK_EARG);
	assert_int_equal(tsi_geometry_make(&f, 1, 0, 0, MOST / 4 + 1, &g),
			 TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "at most 2147483648 samples"));
}

/* By their number it overflows, or it is only larger than any memory. */
static void too_many_bytes_are_refused(void **state)
{
	static const uint64_t bytes[] = { UINT64_C(1) << 40, 1 << 20 };
	struct tsi_geometry g = { .capacity = 5 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct tsock_field f = bytes_of(bytes[i]);

		assert_int_equal(tsi_geometry_make(&f, 1, MOST, 0, 0, &g),
				 TSOCK_EARG);
		assert_string_equal(tsock_errmsg(),
				    "a ring of 2147483648 samples of field "
				    "bytes is too large; make the ring "
				    "smaller");
	}
	assert_int_equal(g.capacity, 5);
}

/* Memory of a GPU without VMM. */
static void where_nothing_is_mapped_twice_each_field_has_a_margin(void **state)
{
	struct tsock_field f[] = { bytes_of(4096), bytes_of(3) };
	struct tsi_geometry g;

	(void)state;
	assert_int_equal(tsi_geometry_for(f, 2, 64, 0, 16, 0, &g), 0);
	assert_int_equal(g.capacity, 64);
	assert_int_equal(tsi_geometry_margin(&g, 0), 16);
	assert_int_equal(tsi_geometry_margin(&g, 1), 16);
	assert_int_equal(tsi_geometry_map_bytes(&g, 0), (64 + 16) * 4096);
	assert_int_equal(tsi_geometry_map_bytes(&g, 1), 512);
	assert_int_equal(g.bytes, (64 + 16) * 4096 + 512);
	assert_true(tsi_geometry_is_sound(&g));
}

/* They are mapped by page, which another kernel may have of another size. */
static void a_ring_on_the_host_has_pages_of_this_machine(void **state)
{
	struct tsock_field f[] = { bytes_of(512), bytes_of(3) };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct tsi_geometry g;

	(void)state;
	assert_int_equal(tsi_geometry_make(f, 2, 1000, 0, 16, &g), 0);
	assert_int_equal(g.granularity, page);
	assert_int_equal(tsi_geometry_margin(&g, 0), 0);
	assert_int_equal(tsi_geometry_map_bytes(&g, 0) % page, 0);
	assert_int_equal(tsi_geometry_map_bytes(&g, 1) % page, 0);
	assert_true(tsi_geometry_is_sound(&g));
}

/* ---- what another process states ---- */

static struct tsi_geometry stated(void)
{
	struct tsock_field f[] = { bytes_of(4096), bytes_of(7) };
	struct tsi_geometry g;

	assert_int_equal(tsi_geometry_make(f, 2, 64, 0, 16, &g), 0);
	assert_int_equal(tsi_geometry_margin(&g, 1), 16);
	assert_true(tsi_geometry_is_sound(&g));
	return g;
}

/* With one number other than it was. */
#define refused_with(number, value) \
	do { \
		struct tsi_geometry g = stated(); \
\
		g.number = (value); \
		assert_false(tsi_geometry_is_sound(&g)); \
	} while (0)

static void counts_out_of_bounds_are_refused(void **state)
{
	(void)state;
	refused_with(nfields, 0);
	refused_with(nfields, TSOCK_MAX_FIELDS + 1);
	refused_with(capacity, 0);
	refused_with(capacity, (UINT64_C(1) << 32) + 1);
	refused_with(max_batch, 0);
	refused_with(max_batch, 17);
	refused_with(join_window, 65);
}

static void a_granularity_that_no_memory_has_is_refused(void **state)
{
	(void)state;
	refused_with(granularity, 4097);
	refused_with(granularity, 512);
	refused_with(granularity, UINT64_C(1) << 31);
	refused_with(granularity, 0);
}

static void a_field_that_contradicts_itself_is_refused(void **state)
{
	(void)state;
	refused_with(field[0].desc.dtype, 99);
	refused_with(field[0].sample_bytes, 4095);
	refused_with(field[0].margin, 15);
	/* A margin where the memory is as long as without. */
	refused_with(field[0].margin, 16);
	refused_with(field[1].margin, 0);
	refused_with(field[0].map_bytes, 64 * 4096 - 1);
	refused_with(field[0].map_bytes, 65 * 4096);
	refused_with(field[1].map_bytes, 7 * 80);
}

static void a_field_whose_bytes_overflow_is_refused(void **state)
{
	struct tsi_geometry g = stated();

	(void)state;
	g.capacity = UINT64_C(1) << 32;
	g.nfields = 1;
	g.field[0].desc = bytes_of(UINT64_C(1) << 40);
	g.field[0].sample_bytes = UINT64_C(1) << 40;
	/* What is left of 2^72 in 64 bits. */
	g.field[0].map_bytes = 0;
	assert_false(tsi_geometry_is_sound(&g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_to_be_there_and_to_end),
		cmocka_unit_test(
			a_sample_whose_bytes_cannot_be_counted_is_refused),
		cmocka_unit_test(too_many_fields_are_refused),
		cmocka_unit_test(too_many_samples_are_refused),
		cmocka_unit_test(too_many_bytes_are_refused),
		cmocka_unit_test(
			where_nothing_is_mapped_twice_each_field_has_a_margin),
		cmocka_unit_test(counts_out_of_bounds_are_refused),
		cmocka_unit_test(a_ring_on_the_host_has_pages_of_this_machine),
		cmocka_unit_test(a_granularity_that_no_memory_has_is_refused),
		cmocka_unit_test(a_field_that_contradicts_itself_is_refused),
		cmocka_unit_test(a_field_whose_bytes_overflow_is_refused),
	};

	return cmocka_run_group_tests_name("geometry", tests, NULL, NULL);
}
