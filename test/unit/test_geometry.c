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
	assert_int_equal(
		tsi_geometry_make(&f, 1, &(struct tsi_geometry_wish){ 0 }, &g),
		TSOCK_EARG);
	assert_string_equal(tsock_errmsg(), "field 0 has no name");
	f.name[0] = 0;
	assert_int_equal(
		tsi_geometry_make(&f, 1, &(struct tsi_geometry_wish){ 0 }, &g),
		TSOCK_EARG);
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
	assert_int_equal(tsi_geometry_make(f, TSOCK_MAX_FIELDS,
					   &(struct tsi_geometry_wish){ 0 },
					   &g),
			 0);
	assert_int_equal(tsi_geometry_make(f, TSOCK_MAX_FIELDS + 1,
					   &(struct tsi_geometry_wish){ 0 },
					   &g),
			 TSOCK_EARG);
}

static void too_many_samples_are_refused(void **state)
{
	struct tsock_field f = bytes_of(1);
	struct tsi_geometry g;

	(void)state;
	assert_int_equal(tsi_geometry_make(&f, 1,
					   &(struct tsi_geometry_wish){
						   .ring = MOST,
						   .join_window = MOST,
						   .max_batch = MOST / 4 },
					   &g),
			 0);
	assert_int_equal(
		tsi_geometry_make(
			&f, 1, &(struct tsi_geometry_wish){ .ring = MOST + 1 },
			&g),
		TSOCK_EARG);
	assert_int_equal(tsi_geometry_make(&f, 1,
					   &(struct tsi_geometry_wish){
						   .join_window = MOST + 1 },
					   &g),
			 TSOCK_EARG);
	assert_int_equal(tsi_geometry_make(&f, 1,
					   &(struct tsi_geometry_wish){
						   .max_batch = MOST / 4 + 1 },
					   &g),
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

		assert_int_equal(tsi_geometry_make(&f, 1,
						   &(struct tsi_geometry_wish){
							   .ring = MOST },
						   &g),
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
	struct tsi_geometry base, g;

	(void)state;
	assert_int_equal(
		tsi_geometry_make(f, 2,
				  &(struct tsi_geometry_wish){
					  .ring = 64, .max_batch = 16 },
				  &base),
		0);
	assert_int_equal(tsi_geometry_like(&base, f, 2, 0, &g), 0);
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
	assert_int_equal(
		tsi_geometry_make(f, 2,
				  &(struct tsi_geometry_wish){
					  .ring = 1000, .max_batch = 16 },
				  &g),
		0);
	assert_int_equal(g.granularity, page);
	assert_int_equal(tsi_geometry_margin(&g, 0), 0);
	assert_int_equal(tsi_geometry_map_bytes(&g, 0) % page, 0);
	assert_int_equal(tsi_geometry_map_bytes(&g, 1) % page, 0);
	assert_true(tsi_geometry_is_sound(&g));
}

/* ---- how many samples ---- */

static struct tsi_geometry sized(const struct tsi_geometry_wish *w)
{
	struct tsock_field f = bytes_of(65536); /* a page of any machine */
	struct tsi_geometry g;

	assert_int_equal(tsi_geometry_make(&f, 1, w, &g), 0);
	assert_true(tsi_geometry_is_sound(&g));
	return g;
}

static void a_small_data_set_has_a_ring_of_two_epochs(void **state)
{
	static const struct {
		uint64_t epoch, ring, batch; /* as they are said */
		uint64_t capacity, window, largest;
	} want[] = {
		{ 1 << 20, 0, 0, 2048, 1024, 512 },
		{ 1024, 0, 0, 2048, 1024, 512 },
		{ 1023, 0, 0, 2046, 1023, 512 },
		{ 700, 0, 0, 1400, 700, 512 },
		{ 513, 0, 0, 1026, 513, 512 },
		/* A batch may have a whole epoch: one more of these. */
		{ 512, 0, 0, 1536, 512, 512 },
		{ 100, 0, 0, 300, 100, 100 },
		{ 10, 0, 0, 64, 32, 10 },
		{ 1, 0, 0, 64, 32, 1 },
		{ 700, 0, 1024, 2100, 700, 700 },
		{ 1500, 0, 1024, 3000, 1500, 1024 },
		{ 100, 0, 16, 200, 100, 16 },
		/* What was said counts. */
		{ 100, 2048, 0, 2048, 1024, 100 },
		{ 700, 64, 16, 64, 32, 16 },
		{ 10, 64, 512, 64, 32, 10 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct tsi_geometry_wish w = { .ring = want[i].ring,
					       .max_batch = want[i].batch,
					       .epoch_len = want[i].epoch };
		struct tsi_geometry g = sized(&w);

		assert_int_equal(g.capacity, want[i].capacity);
		assert_int_equal(g.join_window, want[i].window);
		assert_int_equal(g.max_batch, want[i].largest);
	}
}

/* ---- how many bytes ---- */

static struct tsock_field image_of(uint64_t side)
{
	return (struct tsock_field){ .name = "image",
				     .dtype = TSOCK_U8,
				     .flags = TSOCK_FIELD_IMAGE,
				     .ndim = 3,
				     .shape = { side, side, 3 } };
}

static void no_ring_takes_more_than_a_gib_unless_that_is_asked_for(void **state)
{
	static const struct {
		uint64_t side, batch, least; /* as they are said */
		uint64_t capacity, window, largest;
	} want[] = {
		{ 32, 0, 0, 2048, 1024, 512 },
		{ 208, 0, 0, 2048, 1024, 512 },
		{ 224, 0, 0, 1776, 752, 512 },
		{ 256, 0, 0, 1360, 336, 512 },
		{ 384, 0, 0, 600, 68, 266 },
		{ 512, 0, 0, 336, 38, 149 },
		{ 1024, 0, 0, 80, 10, 35 },
		/* It grows for batches, and an eighth for late readers. */
		{ 1024, 0, 35, 80, 10, 35 },
		{ 1024, 0, 36, 81, 9, 36 },
		{ 1024, 0, 128, 288, 32, 128 },
		{ 1024, 512, 0, 1152, 128, 512 },
		{ 224, 1024, 0, 2304, 256, 1024 },
		{ 224, 0, 1024, 2304, 256, 1024 },
		/* One image is larger than all of it. */
		{ 16384, 0, 0, 3, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct tsi_geometry_wish w = { .max_batch = want[i].batch,
					       .least_batch = want[i].least };
		struct tsock_field f = image_of(want[i].side);
		struct tsi_geometry g;

		assert_int_equal(tsi_geometry_make(&f, 1, &w, &g), 0);
		/* Whole pages may take up to a quarter more. */
		assert_in_range(g.capacity, want[i].capacity,
				want[i].capacity + 8);
		assert_int_equal(g.join_window, want[i].window);
		assert_int_equal(g.max_batch, want[i].largest);
		assert_true(g.capacity >= g.join_window + 2 * g.max_batch);
	}
}

static void a_ring_may_be_asked_for_in_bytes(void **state)
{
	struct tsock_field f = image_of(256);
	struct tsi_geometry_wish w = { .bytes = UINT64_C(4) << 30 };
	struct tsi_geometry g;

	(void)state;
	assert_int_equal(tsi_geometry_make(&f, 1, &w, &g), 0);
	assert_int_equal(g.capacity, 5456); /* not 2,048 */
	assert_int_equal(g.max_batch, 512);
	w.bytes = 64 << 20;
	assert_int_equal(tsi_geometry_make(&f, 1, &w, &g), 0);
	assert_int_equal(g.capacity, 80);
	assert_int_equal(g.max_batch, 35);
	assert_int_equal(g.join_window, 10);
	/* The other two have to find room in it. */
	w.max_batch = 35;
	w.join_window = 10;
	assert_int_equal(tsi_geometry_make(&f, 1, &w, &g), 0);
	assert_int_equal(g.capacity, 80);
	w.max_batch++;
	assert_int_equal(tsi_geometry_make(&f, 1, &w, &g), TSOCK_EARG);
	assert_string_equal(tsock_errmsg(),
			    "a ring of 67.1 MB has room for 80 samples of "
			    "0.786 MB (as float32), and two batches of 36 with "
			    "a join window of 10 need 82, 64.5 MB: make --ring "
			    "larger, or --max-batch or --join-window smaller");
	w = (struct tsi_geometry_wish){ .bytes = 64 << 20, .least_batch = 64 };
	assert_int_equal(tsi_geometry_make(&f, 1, &w, &g), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "two batches of 64"));
	/* Where none are said, a small machine's ring takes fewer than 1 GiB. */
	w = (struct tsi_geometry_wish){ .usual = 64 << 20 };
	assert_int_equal(tsi_geometry_make(&f, 1, &w, &g), 0);
	assert_int_equal(g.capacity, 80);
	w.least_batch = 64;
	assert_int_equal(tsi_geometry_make(&f, 1, &w, &g), 0);
	assert_int_equal(g.capacity, 144);
}

/* Samples from the first of a batch to the end of the next, at most. */
static uint64_t longest_pair(uint64_t epoch, uint64_t batch)
{
	uint64_t first = 0, most = 0;

	while (first < 2 * epoch) {
		uint64_t left = epoch - first % epoch;
		uint64_t next = first + (batch < left ? batch : left);

		left = epoch - next % epoch;
		left = next + (batch < left ? batch : left) - first;
		most = left > most ? left : most;
		first = next;
	}
	return most;
}

static void check_pairs(const struct tsi_geometry_wish *w)
{
	struct tsi_geometry g = sized(w);

	assert_true(g.capacity >= w->ring);
	assert_true(g.join_window >= w->join_window);
	for (uint64_t b = 1; b <= w->max_batch; b++)
		assert_true(longest_pair(w->epoch_len, b) <=
			    g.capacity - g.join_window);
}

/* While an epoch's start is kept for others, a job can have one batch in hand
 * and take the next, whatever size it has asked for. */
static void two_batches_fit_beside_the_join_window(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 40; n++)
		for (uint64_t b = 1; b < 50; b += 3)
			for (uint64_t ring = 0; ring < 200; ring += 33)
				for (uint64_t join = 0; join < 80; join += 26)
					check_pairs(&(struct tsi_geometry_wish){
						.ring = ring,
						.join_window = join,
						.max_batch = b,
						.epoch_len = n });
}

/* ---- what another process states ---- */

static struct tsi_geometry stated(void)
{
	struct tsock_field f[] = { bytes_of(4096), bytes_of(7) };
	struct tsi_geometry g;

	assert_int_equal(
		tsi_geometry_make(f, 2,
				  &(struct tsi_geometry_wish){
					  .ring = 64, .max_batch = 16 },
				  &g),
		0);
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
		cmocka_unit_test(a_small_data_set_has_a_ring_of_two_epochs),
		cmocka_unit_test(two_batches_fit_beside_the_join_window),
		cmocka_unit_test(
			no_ring_takes_more_than_a_gib_unless_that_is_asked_for),
		cmocka_unit_test(a_ring_may_be_asked_for_in_bytes),
		cmocka_unit_test(counts_out_of_bounds_are_refused),
		cmocka_unit_test(a_ring_on_the_host_has_pages_of_this_machine),
		cmocka_unit_test(a_granularity_that_no_memory_has_is_refused),
		cmocka_unit_test(a_field_that_contradicts_itself_is_refused),
		cmocka_unit_test(a_field_whose_bytes_overflow_is_refused),
	};

	return cmocka_run_group_tests_name("geometry", tests, NULL, NULL);
}
