/* SPDX-License-Identifier: MIT */
/*
 * test_ragged.c - batches of any shapes in a slot: written, read in place, and
 * read where a slot holds anything else.
 *
 * Slots end at a page that can't be touched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "tsock/tsock.h"

#define NEST "[\"l\",[[\"f\",0],[\"f\",1],[\"f\",2]]]"
#define PAGE 4096
#define ARRAYS 3

/* Batches' sizes are multiples of 64, as pages are. */
static uint8_t *page;

static int set_up(void **state)
{
	(void)state;
	page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED || mprotect(page + PAGE, PAGE, PROT_NONE);
}

static int tear_down(void **state)
{
	(void)state;
	return munmap(page, 2 * PAGE);
}

/* A slot of so many bytes, a multiple of 64, and of nothing behind them. */
static uint8_t *slot_of(uint64_t room)
{
	memset(page, 0xee, PAGE);
	return page + PAGE - room;
}

static const struct tsock_ragged_array some[ARRAYS] = {
	{ TSOCK_RAGGED_I32, 2, { 3, 7 }, 0, NULL },
	{ TSOCK_RAGGED_BOOL, 2, { 3, 7 }, 0, NULL },
	{ TSOCK_RAGGED_I64, 1, { 3 }, 0, NULL },
};

/* Write those arrays into a slot that is just large enough. */
static uint8_t *written(struct tsock_ragged_array *a, uint64_t *room)
{
	uint8_t *slot;

	memcpy(a, some, sizeof(some));
	*room = tsock_ragged_bytes(NEST, a, ARRAYS);
	assert_int_not_equal(*room, 0);
	slot = slot_of(*room);
	assert_int_equal(tsock_ragged_write(slot, *room, NEST, a, ARRAYS), 0);
	for (unsigned i = 0; i < ARRAYS; i++)
		memset(a[i].data, (int)i + 1, a[i].bytes);
	return slot;
}

static bool all_bytes_are(const struct tsock_ragged_array *a, uint8_t value)
{
	const uint8_t *p = a->data;

	for (uint64_t i = 0; i < a->bytes; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void a_batch_is_found_where_it_was_written(void **state)
{
	struct tsock_ragged_array in[ARRAYS], out[ARRAYS];
	const char *nest;
	uint32_t bytes, count;
	uint64_t room;
	uint8_t *slot = written(in, &room);

	(void)state;
	assert_int_equal(tsock_ragged_read(slot, room, NEST, out, ARRAYS), 0);
	assert_memory_equal(out, in, sizeof(in));
	assert_int_equal(out[0].bytes, 3 * 7 * 4);
	assert_int_equal(out[1].bytes, 3 * 7);
	assert_int_equal(out[2].bytes, 3 * 8);
	for (unsigned i = 0; i < ARRAYS; i++) {
		assert_int_equal((uintptr_t)out[i].data % TSOCK_RAGGED_ALIGN,
				 0);
		assert_true(all_bytes_are(&out[i], (uint8_t)(i + 1)));
	}
	assert_int_equal(tsock_ragged_read(slot, room, NULL, out, ARRAYS), 0);
	assert_int_equal(tsock_ragged_nest(slot, room, &nest, &bytes, &count),
			 0);
	assert_int_equal(count, ARRAYS);
	assert_int_equal(bytes, strlen(NEST));
	assert_memory_equal(nest, NEST, bytes);
}

static uint64_t number_at(const uint8_t *p, unsigned bytes)
{
	uint64_t n = 0;

	while (bytes--)
		n = n << 8 | p[bytes];
	return n;
}

static void the_layout_is_the_documented_one(void **state)
{
	struct tsock_ragged_array a[ARRAYS];
	uint64_t room;
	uint8_t *slot = written(a, &room);
	const uint8_t *second = slot + 24 + 88;

	(void)state;
	assert_memory_equal(slot, "tsockpk1", 8);
	assert_int_equal(number_at(slot + 8, 4), ARRAYS);
	assert_int_equal(number_at(slot + 12, 4), strlen(NEST));
	assert_int_equal(number_at(slot + 16, 8), room);
	/* 24 + 3 * 88 + 31 bytes of head, then 84 bytes. */
	assert_int_equal(number_at(slot + 24 + 8, 8), 320);
	assert_int_equal(number_at(second, 4), 0);
	assert_int_equal(number_at(second + 4, 4), 2);
	assert_int_equal(number_at(second + 8, 8), 448);
	assert_int_equal(number_at(second + 16, 8), 21);
	assert_int_equal(number_at(second + 24, 8), 3);
	assert_int_equal(number_at(second + 32, 8), 7);
	for (unsigned d = 2; d < TSOCK_RAGGED_DIMS; d++)
		assert_int_equal(number_at(second + 24 + d * 8, 8), 0);
	assert_memory_equal(slot + 24 + 3 * 88, NEST, strlen(NEST));
	assert_int_equal(room, 576);
}

static void scalars_and_empty_arrays_are_arrays(void **state)
{
	struct tsock_ragged_array out[ARRAYS], a[ARRAYS] = {
		{ TSOCK_RAGGED_C128, 0, { 0 }, 0, NULL },
		/* Empty, whatever the others are. */
		{ TSOCK_RAGGED_F64, 3, { UINT64_MAX, 0, 2 }, 0, NULL },
		{ TSOCK_RAGGED_U16, 8, { 1, 2, 1, 3, 1, 1, 1, 5 }, 0, NULL },
	};
	uint64_t room = tsock_ragged_bytes(NEST, a, ARRAYS);
	uint8_t *slot = slot_of(room);

	(void)state;
	assert_int_equal(tsock_ragged_write(slot, room, NEST, a, ARRAYS), 0);
	assert_int_equal(tsock_ragged_read(slot, room, NEST, out, ARRAYS), 0);
	assert_memory_equal(out, a, sizeof(a));
	assert_int_equal(a[0].bytes, 16);
	assert_int_equal(a[1].bytes, 0);
	assert_int_equal(a[2].bytes, 60);
	/* And so is none at all. */
	room = tsock_ragged_bytes("[\"c\",3]", NULL, 0);
	assert_int_equal(room, 64);
	slot = slot_of(room);
	assert_int_equal(tsock_ragged_write(slot, room, "[\"c\",3]", NULL, 0),
			 0);
	assert_int_equal(tsock_ragged_read(slot, room, NULL, NULL, 0), 0);
}

static void a_batch_that_is_too_large_leaves_the_slot_alone(void **state)
{
	struct tsock_ragged_array a[ARRAYS];
	uint64_t room = tsock_ragged_bytes(NEST, some, ARRAYS);
	uint8_t *slot = slot_of(room);

	(void)state;
	memcpy(a, some, sizeof(a));
	assert_int_equal(tsock_ragged_write(slot, room - 1, NEST, a, ARRAYS),
			 TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "takes 576 bytes"));
	assert_non_null(strstr(tsock_errmsg(), "has 575"));
	assert_memory_equal(a, some, sizeof(a));
	for (uint64_t i = 0; i < room; i++)
		assert_int_equal(slot[i], 0xee);
}

static void refuse(const char *nest, struct tsock_ragged_array a,
		   const char *word)
{
	struct tsock_ragged_array was = a;
	uint8_t *slot = slot_of(PAGE);

	assert_int_equal(tsock_ragged_write(slot, PAGE, nest, &a, 1),
			 TSOCK_EARG);
	if (!strstr(tsock_errmsg(), word))
		fail_msg("\"%s\" has no \"%s\"", tsock_errmsg(), word);
	assert_memory_equal(&a, &was, sizeof(a));
	assert_int_equal(slot[0], 0xee);
	tsi_err(0, "nothing");
	assert_int_equal(tsock_ragged_bytes(nest, &a, 1), 0);
	assert_non_null(strstr(tsock_errmsg(), word));
}

static void batches_that_can_not_be_are_refused(void **state)
{
	struct tsock_ragged_array a = { TSOCK_RAGGED_U8, 1, { 8 }, 0, NULL };
	const char *nest = "[\"f\",0]";

	(void)state;
	refuse("", a, "nest has 0 bytes");
	refuse(nest, (struct tsock_ragged_array){ .dtype = 15 }, "dtype 15");
	refuse(nest, (struct tsock_ragged_array){ .dtype = 1, .ndim = 9 },
	       "9 dimensions");
	refuse(nest,
	       (struct tsock_ragged_array){
		       .dtype = TSOCK_RAGGED_I64,
		       .ndim = 2,
		       .shape = { UINT64_C(1) << 31, UINT64_C(1) << 30 } },
	       "2^64");
	refuse(nest,
	       (struct tsock_ragged_array){ .dtype = TSOCK_RAGGED_U8,
					    .ndim = 1,
					    .shape = { UINT64_MAX - 40 } },
	       "2^64");
	assert_int_equal(
		tsock_ragged_write(slot_of(PAGE) + 32, PAGE - 32, nest, &a, 1),
		TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "no multiple of 64"));
}

/* Read what is in a slot; what is found must be the slot's. */
static int read_all(const uint8_t *slot, uint64_t room)
{
	struct tsock_ragged_array a[ARRAYS], was[ARRAYS];
	const char *nest;
	uint32_t len, count;
	uint64_t sum = 0;
	int err;

	memset(a, 0x55, sizeof(a));
	memcpy(was, a, sizeof(a));
	if (tsock_ragged_nest(slot, room, &nest, &len, &count) == 0)
		for (uint32_t i = 0; i < len; i++)
			sum += (uint8_t)nest[i];
	err = tsock_ragged_read(slot, room, NULL, a, ARRAYS);
	if (err) {
		assert_memory_equal(a, was, sizeof(a));
		return err;
	}
	for (unsigned i = 0; i < ARRAYS; i++) {
		const uint8_t *p = a[i].data;

		assert_true(p >= slot && p <= slot + room);
		assert_true(a[i].bytes <= (uint64_t)(slot + room - p));
		assert_true(a[i].ndim <= TSOCK_RAGGED_DIMS);
		for (uint64_t b = 0; b < a[i].bytes; b++)
			sum += p[b];
	}
	assert_int_not_equal(sum, 0);
	return 0;
}

static void whatever_a_slot_holds_is_read_within_it(void **state)
{
	static const uint8_t to[] = { 0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xff };
	struct tsock_ragged_array a[ARRAYS];
	uint64_t room, refused = 0;
	uint8_t *slot = written(a, &room);

	(void)state;
	assert_int_equal(read_all(slot, room), 0);
	for (unsigned at = 0; at < 24 + ARRAYS * 88; at++) {
		uint8_t was = slot[at];

		for (unsigned i = 0; i < sizeof(to); i++) {
			int err;

			slot[at] = to[i];
			err = read_all(slot, room);
			assert_true(err == 0 || err == TSOCK_EPROTO);
			refused += err != 0;
		}
		slot[at] = was;
	}
	assert_true(refused > 500);
	assert_int_equal(read_all(slot, room), 0);
	for (uint64_t cut = 64; cut <= room; cut += 64) {
		memmove(slot + cut, slot, room - cut);
		assert_int_equal(read_all(slot + cut, room - cut),
				 TSOCK_EPROTO);
		slot = written(a, &room);
	}
}

struct lie {
	unsigned at, bytes;
	uint64_t value;
	const char *word; /* of the sentence */
};

static void tell(uint8_t *slot, const struct lie *lie)
{
	for (unsigned i = 0; i < lie->bytes; i++)
		slot[lie->at + i] = (uint8_t)(lie->value >> 8 * i);
}

/* Two lies where one alone would be found otherwise; the word is the last's. */
static void lies_about_sizes_are_named(void **state)
{
	enum { A1 = 24, OFFSET = 8, BYTES = 16, SHAPE = 24, LAST = 24 + 176 };
	static const struct lie lies[][2] = {
		{ { 0, 1, 'T', "doesn't begin with tsockpk1" } },
		{ { 7, 1, '2', "another version" } },
		{ { 8, 4, UINT32_MAX, "4294967295 arrays" } },
		{ { 12, 4, UINT32_MAX, "4294967295 bytes of nest" } },
		{ { 16, 8, UINT64_MAX, "in a slot of 576" } },
		{ { 16, 8, 577, "says that it has 577 bytes" } },
		{ { 16, 8, 300, "don't fit" } },
		{ { 16, 8, 512, "array 2, of 24 bytes" } },
		{ { A1, 4, 15, "dtype 15" } },
		{ { A1 + 4, 4, 9, "9 dimensions" } },
		{ { A1 + BYTES, 8, 80, "isn't what its shape takes" } },
		{ { A1 + BYTES, 8, 85, "isn't what its shape takes" } },
		{ { A1 + SHAPE, 8, UINT64_MAX, "isn't what its shape" } },
		/* 2^62 * 7 * 4 is 0 in 64 bits. */
		{ { A1 + SHAPE, 8, UINT64_C(1) << 62, "isn't what its shape" },
		  { A1 + BYTES, 8, 0, "isn't what its shape" } },
		{ { A1 + OFFSET, 8, 321, "at byte 321" } },
		{ { A1 + OFFSET, 8, 256, "at byte 256" } },
		{ { A1 + OFFSET, 8, 0, "at byte 0" } },
		{ { LAST + OFFSET, 8, 576, "at byte 576" } },
		{ { LAST + OFFSET, 8, 640, "at byte 640" } },
		{ { LAST + OFFSET, 8, UINT64_MAX - 63, "at byte 18446744" } },
		{ { LAST + SHAPE, 8, 9, "isn't what its shape" },
		  { LAST + BYTES, 8, 72, "array 2, of 72 bytes" } },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct tsock_ragged_array a[ARRAYS];
		uint64_t room;
		uint8_t *slot = written(a, &room);
		const char *word = NULL;

		for (unsigned j = 0; j < 2 && lies[i][j].word; j++) {
			tell(slot, &lies[i][j]);
			word = lies[i][j].word;
		}
		assert_int_equal(read_all(slot, room), TSOCK_EPROTO);
		if (!strstr(tsock_errmsg(), word))
			fail_msg("\"%s\" has no \"%s\"", tsock_errmsg(), word);
	}
}

static void another_nest_or_number_of_arrays_is_named(void **state)
{
	struct tsock_ragged_array a[ARRAYS], out[ARRAYS + 1];
	uint64_t room;
	uint8_t *slot = written(a, &room);

	(void)state;
	assert_int_equal(
		tsock_ragged_read(slot, room, "[\"f\",0]", out, ARRAYS),
		TSOCK_EPROTO);
	assert_non_null(strstr(tsock_errmsg(), "nested as " NEST));
	assert_non_null(strstr(tsock_errmsg(), "not as [\"f\",0]"));
	/* As long, and its last byte is another. */
	slot[24 + 3 * 88 + strlen(NEST) - 1] = '}';
	assert_int_equal(tsock_ragged_read(slot, room, NEST, out, ARRAYS),
			 TSOCK_EPROTO);
	assert_int_equal(tsock_ragged_read(slot, room, NULL, out, ARRAYS), 0);
	assert_int_equal(tsock_ragged_read(slot, room, NULL, out, ARRAYS + 1),
			 TSOCK_EPROTO);
	assert_non_null(strstr(tsock_errmsg(), "has 3 arrays"));
	assert_non_null(strstr(tsock_errmsg(), "expects 4"));
	assert_int_equal(tsock_ragged_read(slot, room, NULL, out, 2),
			 TSOCK_EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_is_found_where_it_was_written),
		cmocka_unit_test(the_layout_is_the_documented_one),
		cmocka_unit_test(scalars_and_empty_arrays_are_arrays),
		cmocka_unit_test(
			a_batch_that_is_too_large_leaves_the_slot_alone),
		cmocka_unit_test(batches_that_can_not_be_are_refused),
		cmocka_unit_test(whatever_a_slot_holds_is_read_within_it),
		cmocka_unit_test(lies_about_sizes_are_named),
		cmocka_unit_test(another_nest_or_number_of_arrays_is_named),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
