/* SPDX-License-Identifier: MIT */
/*
 * test_pool.c - how many workers work, and how far ahead of the consumers.
 */
#include "run/pool.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/service.h"
#include "test/lib/worker_fixture.h"

#define EPOCH 5 /* samples */

static struct tsi_service *service;
static struct tsi_pool *pool;
static tsock *consumer;

static _Atomic bool disk_hangs;

static bool reads_an_image(int fd)
{
	char link[64], path[256] = "";
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	return n > 4 && !strcmp(path + n - 4, ".png");
}

/* The reader's threads call this, and it takes as long as the disk hangs. */
ssize_t pread(int fd, void *to, size_t len, off_t at)
{
	struct timespec ms = { 0, 1000000 };

	while (atomic_load(&disk_hangs) && reads_an_image(fd))
		nanosleep(&ms, NULL);
	return syscall(SYS_pread64, fd, to, len, at);
}

/* Nothing is in the page cache. */
ssize_t preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
	(void)fd;
	(void)v;
	(void)n;
	(void)at;
	(void)flags;
	errno = EAGAIN;
	return -1;
}

/* Three workers serve five images, and there is a consumer. */
static int start_stream(void **state)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;

	if (worker_make_root(state))
		return -1;
	worker_put_five();
	worker_options.name = "pool";
	worker_options.threads = 3;
	worker_options.io = TSI_READER_PREAD;
	worker_options.image_memory = 1 << 20;
	worker_options.ring = 64;
	worker_options.max_batch = 8;
	o.batch_size = EPOCH;
	if (setenv("TSOCK_DIR", worker_root, 1) ||
	    tsi_service_open(&worker_options, &service) ||
	    tsi_service_start(service))
		return -1;
	pool = tsi_service_pool(service);
	return tsock_open("pool", &o, &consumer) || tsock_begin(consumer);
}

static int stop_stream(void **state)
{
	tsock_close(consumer);
	tsi_service_close(service);
	return worker_remove_root(state);
}

static tsock_batch *next_batch(void)
{
	tsock_batch *b;
	int err;

	while ((err = tsock_next(consumer, 20000, &b)) == TSOCK_EEPOCH)
		assert_int_equal(tsock_begin(consumer), 0);
	assert_int_equal(err, 0);
	return b;
}

/* Read an epoch, and compare it with a worker's samples of this number. */
static void read_epoch(uint64_t epoch)
{
	static struct sample want[64];
	tsock_batch *b = next_batch();
	unsigned substituted;

	assert_true(epoch * EPOCH + EPOCH <= 64);
	assert_int_equal(worker_make(tsi_service_sampler(service), 1, want,
				     epoch * EPOCH + EPOCH, &substituted),
			 0);
	for (unsigned i = 0; i < EPOCH; i++) {
		const struct sample *w = &want[epoch * EPOCH + i];
		const uint8_t *image = tsock_batch_data(b, TSI_FIELD_IMAGE);
		const int32_t *box = tsock_batch_data(b, TSI_FIELD_BOX);

		assert_memory_equal(image + i * sizeof(w->image), w->image,
				    sizeof(w->image));
		assert_memory_equal(box + 5 * i, w->box, sizeof(w->box));
	}
	tsock_batch_release(b);
}

static void wait_a_little(unsigned *waited)
{
	struct timespec ms = { 0, 1000000 };

	assert_true((*waited)++ < 60000);
	nanosleep(&ms, NULL);
}

/* Wait until so many workers are parked. */
static void wait_parked(unsigned n)
{
	unsigned waited = 0;

	while (tsi_pool_parked(pool) != n)
		wait_a_little(&waited);
}

/* Read until so many are: one that waits for a sample makes that one first. */
static void read_until_parked(unsigned n)
{
	unsigned waited = 0;

	while (tsi_pool_parked(pool) < n) {
		tsock_batch_release(next_batch());
		wait_a_little(&waited);
	}
}

static void workers_above_the_limit_are_parked_until_it_is_raised(void **state)
{
	(void)state;
	assert_int_equal(tsi_pool_limit(pool), 3);
	assert_int_equal(tsi_pool_parked(pool), 0);
	tsi_pool_set_limit(pool, 1);
	assert_int_equal(tsi_pool_limit(pool), 1);
	read_until_parked(2);
	/* The one that is left makes the stream alone: more than the ring. */
	for (int i = 0; i < 40; i++)
		tsock_batch_release(next_batch());
	assert_int_equal(tsi_pool_parked(pool), 2);
	tsi_pool_set_limit(pool, 2);
	wait_parked(1);
	tsi_pool_set_limit(pool, 3);
	wait_parked(0);
}

static void the_limit_is_at_least_one_and_at_most_all(void **state)
{
	(void)state;
	tsi_pool_set_limit(pool, 0);
	assert_int_equal(tsi_pool_limit(pool), 1);
	tsi_pool_set_limit(pool, 99);
	assert_int_equal(tsi_pool_limit(pool), 3);
}

static void a_limit_that_changes_all_the_time_changes_no_byte(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		tsi_pool_set_limit(pool, 1 + i % 3);
		read_epoch(i);
	}
}

/* stop_stream() closes it. */
static void a_pool_is_closed_with_workers_parked(void **state)
{
	(void)state;
	tsi_pool_set_limit(pool, 1);
	read_until_parked(2);
}

/* The consumer is within epoch 0, of 5 samples, and the ring holds 64. */
static void the_next_epochs_are_made_before_this_one_is_over(void **state)
{
	struct tsock_stats st = { .size = sizeof(st) };
	unsigned waited = 0;

	(void)state;
	for (;;) {
		tsock_serve_stats(tsi_service_server(service), &st);
		if (st.head > 5 * EPOCH)
			break;
		wait_a_little(&waited);
	}
	read_epoch(0);
}

/* Read until none is left, and then until this is said of the wait. */
static void read_until_said(const char *what, char text[TSOCK_WAITS_FOR])
{
	unsigned waited = 0;
	tsock_batch *b;
	int err;

	for (*text = '\0'; !strstr(text, what); wait_a_little(&waited)) {
		err = tsock_next(consumer, 0, &b);
		if (!err)
			tsock_batch_release(b);
		else if (err == TSOCK_EEPOCH)
			assert_int_equal(tsock_begin(consumer), 0);
		else
			assert_int_equal(err, TSOCK_EAGAIN);
		tsi_service_tell(service, 0);
		assert_int_equal(
			tsock_waits_for(consumer, 5000, text, TSOCK_WAITS_FOR),
			0);
	}
}

static void consumers_are_told_of_a_file_that_is_read_slowly(void **state)
{
	char text[TSOCK_WAITS_FOR], want[128];
	unsigned waited = 0;
	uint64_t file;

	(void)state;
	atomic_store(&disk_hangs, true);
	read_until_said(" to be read for ", text);
	snprintf(want, sizeof(want), ", which has been waiting for %s/",
		 worker_root);
	assert_non_null(strstr(text, want));
	assert_non_null(strstr(text, ".png to be read for "));
	atomic_store(&disk_hangs, false);
	/* All reads come, until the ring is full. */
	while (tsi_pool_waits(pool, &file))
		wait_a_little(&waited);
}

static void workers_convert_unless_a_cpu_is_left_for_views(void **state)
{
	(void)state;
	assert_false(tsi_pool_converts(1, 2));
	assert_true(tsi_pool_converts(1, 1));
	assert_true(tsi_pool_converts(2, 2));
	assert_false(tsi_pool_converts(15, 128));
	/* More than one thread can convert for. */
	assert_true(tsi_pool_converts(16, 128));
}

#define with_a_stream(test) \
	cmocka_unit_test_setup_teardown(test, start_stream, stop_stream)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_a_stream(
			workers_above_the_limit_are_parked_until_it_is_raised),
		with_a_stream(the_limit_is_at_least_one_and_at_most_all),
		with_a_stream(
			a_limit_that_changes_all_the_time_changes_no_byte),
		with_a_stream(a_pool_is_closed_with_workers_parked),
		with_a_stream(the_next_epochs_are_made_before_this_one_is_over),
		with_a_stream(consumers_are_told_of_a_file_that_is_read_slowly),
		cmocka_unit_test(
			workers_convert_unless_a_cpu_is_left_for_views),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
