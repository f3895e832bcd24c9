/* SPDX-License-Identifier: MIT */
/*
 * test_swap.c - a stream whose pages are pushed out of memory, again and again,
 * while samples are written and read: every byte comes back as it was.
 *
 * MADV_PAGEOUT leaves pages alone that more than one mapping shows, so the
 * consumer's go first; in memory that is mapped shared nothing is lost by that.
 * Where there is no swap all is read and checked in the same way, and the cases
 * say at their end that they have shown nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/lib/served.h"

#define N 100000
#define RING 2048 /* window 1024: that many samples may be held */
#define BATCH 128 /* 96 KiB, so that batches get windows */
#define KEPT 4
#define ROUNDS 4 /* of the ring */
#define PATIENCE_MS 60000

static int why; /* errno of a MADV_PAGEOUT that failed */

/* Pages that this machine has written to swap since it was started. */
static unsigned long long pages_out(void)
{
	FILE *f = fopen("/proc/vmstat", "r");
	unsigned long long n = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "pswpout %llu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* All was as it should be, and has shown nothing without swap. */
static void skip_unless_more_than(unsigned long long before)
{
	if (pages_out() > before)
		return;
	print_message("no page was swapped out: %s\n",
		      why ? strerror(why) : "is there swap (/proc/swaps)?");
	skip();
}

/* The whole pages of a range. */
static uint8_t *whole_pages(const void *p, size_t *len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)p + page - 1) / page * page;
	uintptr_t to = ((uintptr_t)p + *len) / page * page;

	*len = to > from ? to - from : 0;
	return (uint8_t *)from;
}

static void push_out(const void *range, size_t len)
{
	uint8_t *p = whole_pages(range, &len);

	if (madvise(p, len, MADV_PAGEOUT))
		why = errno;
}

/* The producer's pages, those of all samples that the ring has room for. */
static void push_ring_out(const struct served *v)
{
	push_out(tsock_serve_slot(v->s, 0, 0), (size_t)RING * SERVED_BYTES);
}

static size_t bytes_of(const tsock_batch *b)
{
	return tsock_batch_count(b) * SERVED_BYTES;
}

/* What a consumer of read-only memory has of the ring, from its slot 0 on. */
static void let_go_of(const void *ring)
{
	size_t len = (size_t)RING * SERVED_BYTES;
	uint8_t *p = whole_pages(ring, &len);

	assert_int_equal(madvise(p, len, MADV_DONTNEED), 0);
}

static void a_ring_that_is_swapped_out_has_its_samples_again(void **state)
{
	tsock_batch *kept[KEPT];
	const void *ring = NULL;
	unsigned long long before = pages_out();
	struct served v;
	tsock *t;

	(void)state;
	served_start(&v, "swap", N, RING, BATCH);
	t = served_begin(&v, BATCH, 0, 0);
	for (uint64_t next = 0; next < ROUNDS * RING; next += KEPT * BATCH) {
		for (unsigned i = 0; i < KEPT; i++) {
			assert_int_equal(tsock_next(t, PATIENCE_MS, &kept[i]),
					 0);
			assert_true(served_good(kept[i]));
		}
		/* Each round begins at slot 0 again. */
		if (next % RING == 0)
			ring = tsock_batch_data(kept[0], 0);
		let_go_of(ring);
		/* The worker is at it meanwhile. */
		push_ring_out(&v);
		for (unsigned i = 0; i < KEPT; i++) {
			assert_int_equal(tsock_batch_seq(kept[i]),
					 next + i * BATCH);
			assert_true(served_good(kept[i]));
			tsock_batch_release(kept[i]);
		}
	}
	tsock_close(t);
	served_stop(&v);
	skip_unless_more_than(before);
}

/* Samples of a batch with odd numbers are the holder's own. */
static void write_some(tsock_batch *b)
{
	uint8_t *p = tsock_batch_data_mut(b, 0);

	assert_non_null(p);
	for (uint64_t i = 1; i < tsock_batch_count(b); i += 2)
		memset(p + i * SERVED_BYTES, (int)(0x80 | i), SERVED_BYTES);
}

static bool some_are_written(const tsock_batch *b)
{
	const uint8_t *p = tsock_batch_data(b, 0);

	for (uint64_t i = 0; i < bytes_of(b); i++) {
		uint64_t k = i / SERVED_BYTES;

		if (p[i] != (k % 2 ? (uint8_t)(0x80 | k)
				   : served_pixel(tsock_batch_seq(b) + k)))
			return false;
	}
	return true;
}

/* Windows are used in turn: what was written must not show in the next one. */
static void what_was_written_into_a_batch_goes_out_and_comes_back(void **state)
{
	unsigned long long before = pages_out();
	struct served v;
	tsock_batch *b;
	tsock *t;

	(void)state;
	served_start(&v, "swap", N, RING, BATCH);
	t = served_begin(&v, BATCH, 0, TSOCK_WRITABLE);
	for (unsigned i = 0; i < ROUNDS * RING / BATCH; i++) {
		assert_int_equal(tsock_next(t, PATIENCE_MS, &b), 0);
		assert_true(served_good(b));
		write_some(b);
		push_out(tsock_batch_data(b, 0), bytes_of(b));
		push_ring_out(&v);
		assert_true(some_are_written(b));
		push_out(tsock_batch_data(b, 0), bytes_of(b));
		tsock_batch_release(b);
	}
	tsock_close(t);
	served_stop(&v);
	skip_unless_more_than(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_ring_that_is_swapped_out_has_its_samples_again),
		cmocka_unit_test(
			what_was_written_into_a_batch_goes_out_and_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
