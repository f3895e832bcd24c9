/* SPDX-License-Identifier: MIT */
/*
 * test_worker_steady.c - what a worker doesn't do for a sample once it has been
 * through the data set: it allocates nothing, and enters the kernel by
 * io_uring no more than once.
 *
 * This program's own malloc() counts.  A sanitizer has one of its own, so
 * there is nothing to count with it.
 */
#include "run/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <string.h>

#include "test/lib/image_gen.h"
#include "test/lib/sanitized.h"
#include "test/lib/worker_fixture.h"

#define FILES 5
#define WARM_EPOCHS 4

static _Atomic uint64_t calls;
static unsigned submits;

struct io_uring;
int io_uring_submit(struct io_uring *ring);

int io_uring_submit(struct io_uring *ring)
{
	void *fn = dlsym(RTLD_NEXT, "io_uring_submit");
	int (*real)(struct io_uring *);

	memcpy(&real, &fn, sizeof(real));
	submits++;
	return real(ring);
}

#if !SANITIZED
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
	atomic_fetch_add(&calls, 1);
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	atomic_fetch_add(&calls, 1);
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	atomic_fetch_add(&calls, 1);
	return __libc_realloc(p, n);
}
#endif

/* Files of several sizes and samplings, baseline. */
static void put_jpegs(void)
{
	static const char *const name[FILES] = { "a/0.jpg", "a/1.jpg",
						 "b/0.jpg", "b/1.jpg",
						 "c/0.jpg" };

	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_jpeg g = { .width = 64 + 24 * i,
					    .height = 90 + 16 * i,
					    .components = 3,
					    .quality = 60 + (int)i * 8 };
		struct image_gen_bytes b = image_gen_jpeg(&g);

		worker_put(name[i], b.data, b.len);
		free(b.data);
	}
}

static void make_epoch(struct tsi_worker *w, uint64_t epoch, struct sample *to)
{
	for (uint64_t i = 0; i < FILES; i++) {
		struct tsi_made made;

		assert_int_equal(tsi_worker_begin(w, epoch * FILES + i), 0);
		if (tsi_worker_busy(w) == DEPTH)
			assert_int_equal(
				tsi_worker_finish(w, worker_into, to, &made),
				0);
	}
}

/* Calls of malloc() and the like in an epoch after the first ones. */
static uint64_t count_epoch(void)
{
	static struct sample to[64];
	struct tsi_sampler *s = worker_open_sampler();
	struct tsi_worker *w;
	uint64_t start = atomic_load(&calls), before, after;

	assert_int_equal(
		tsi_worker_create(s, worker_options.io, DEPTH, NULL, &w), 0);
	/* Each of the reader's buffers has held each file. */
	for (uint64_t e = 0; e < WARM_EPOCHS * DEPTH; e++)
		make_epoch(w, e, to);
	before = atomic_load(&calls);
	/* The worker itself was counted. */
	assert_true(before > start);
	make_epoch(w, WARM_EPOCHS * DEPTH, to);
	make_epoch(w, WARM_EPOCHS * DEPTH + 1, to);
	after = atomic_load(&calls);
	tsi_worker_destroy(w);
	tsi_sampler_close(s);
	return after - before;
}

static void nothing_is_allocated_for_a_jpeg(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	put_jpegs();
	worker_options.index_memory = 1 << 20;
	assert_int_equal(count_epoch(), 0);
}

static void nothing_is_allocated_for_a_jpeg_without_an_index(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	put_jpegs();
	assert_int_equal(count_epoch(), 0);
}

static void nothing_is_allocated_by_a_shuffled_order(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	put_jpegs();
	worker_options.order = TSOCK_ORDER_PHILOX;
	assert_int_equal(count_epoch(), 0);
}

static bool has_uring(void)
{
	struct tsi_io_reader *r;

	if (tsi_io_reader_create(TSI_READER_URING, 1, &r)) {
		print_message("there is no io_uring here\n");
		return false;
	}
	tsi_io_reader_destroy(r);
	worker_options.io = TSI_READER_URING;
	return true;
}

static void nothing_is_allocated_with_io_uring(void **state)
{
	(void)state;
	if (SANITIZED || !has_uring())
		skip();
	put_jpegs();
	assert_int_equal(count_epoch(), 0);
}

/* Open, read and close, for several files at a time. */
static void a_file_is_one_call_of_io_uring(void **state)
{
	static struct sample to[64];
	struct tsi_sampler *s;
	struct tsi_worker *w;

	(void)state;
	if (!has_uring())
		skip();
	put_jpegs();
	s = worker_open_sampler();
	assert_int_equal(
		tsi_worker_create(s, worker_options.io, DEPTH, NULL, &w), 0);
	make_epoch(w, 0, to);
	submits = 0;
	for (uint64_t e = 1; e <= 20; e++)
		make_epoch(w, e, to);
	/* A file that isn't there yet when it is waited for costs a call more.
	 */
	assert_in_range(submits, 1, 20 * FILES * 3 / 2);
	tsi_worker_destroy(w);
	tsi_sampler_close(s);
}

static void nothing_is_allocated_for_a_png(void **state)
{
	(void)state;
	if (SANITIZED)
		skip();
	worker_put_five();
	assert_int_equal(count_epoch(), 0);
}

#define in_a_tree(test) \
	cmocka_unit_test_setup_teardown(test, worker_make_root, \
					worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_tree(nothing_is_allocated_for_a_jpeg),
		in_a_tree(nothing_is_allocated_for_a_jpeg_without_an_index),
		in_a_tree(nothing_is_allocated_by_a_shuffled_order),
		in_a_tree(nothing_is_allocated_with_io_uring),
		in_a_tree(a_file_is_one_call_of_io_uring),
		in_a_tree(nothing_is_allocated_for_a_png),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
