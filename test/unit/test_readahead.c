/* SPDX-License-Identifier: MIT */
/*
 * test_readahead.c - what is read ahead of workers, how far and in which order,
 * of files and a disk that are made up.
 */
#include "io/readahead.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX 4096
#define SIZE 131072 /* what is expected of a sample before one was seen */
#define FOREVER_S 60

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* What there is, by sequence number. */
	uint64_t size[MAX], place[MAX];
	bool left_out[MAX];
	/* What was done with it. */
	unsigned looked[MAX], advised[MAX];
	unsigned order[MAX], norder; /* of advice */
	unsigned looks;
	unsigned inside, most_inside; /* of look(), at once */
	uint64_t told, budget, most_ahead;
	bool keeps_open;
	/* A look blocks until so many are inside, or it was let go. */
	unsigned wait_inside;
	unsigned block_at; /* which look; 0: none */
	bool blocked, let_go;
} f = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER };

static int begin_test(void **state)
{
	(void)state;
	memset(f.looked, 0, sizeof(f.looked));
	memset(f.advised, 0, sizeof(f.advised));
	memset(f.left_out, 0, sizeof(f.left_out));
	for (unsigned i = 0; i < MAX; i++) {
		f.size[i] = SIZE;
		f.place[i] = i * 2654435761u % 1000003;
	}
	f.norder = f.looks = f.inside = f.most_inside = 0;
	f.told = f.most_ahead = 0;
	f.keeps_open = f.blocked = f.let_go = false;
	f.wait_inside = f.block_at = 0;
	return 0;
}

/* With the lock: until it changes; a minute without that is a failure. */
static void await_change(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += FOREVER_S;
	if (pthread_cond_timedwait(&f.changed, &f.lock, &until)) {
		fprintf(stderr, "nothing happened for a minute\n");
		abort();
	}
}

static bool locate(void *arg, uint64_t seq, struct tsi_read_request *out)
{
	(void)arg;
	assert_true(seq < MAX);
	if (f.left_out[seq])
		return false;
	*out = (struct tsi_read_request){ .path = "file", .tag = seq };
	return true;
}

static bool look(const struct tsi_read_request *q, uint64_t *bytes,
		 struct tsi_readahead_place *place, int *fd)
{
	pthread_mutex_lock(&f.lock);
	f.looked[q->tag]++;
	f.looks++;
	f.inside++;
	if (f.inside > f.most_inside)
		f.most_inside = f.inside;
	f.blocked = f.looks == f.block_at;
	pthread_cond_broadcast(&f.changed);
	while (f.most_inside < f.wait_inside || (f.blocked && !f.let_go))
		await_change();
	f.inside--;
	*bytes = f.size[q->tag];
	if (place)
		*place = (struct tsi_readahead_place){ f.place[q->tag], 0 };
	if (f.keeps_open)
		*fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pthread_mutex_unlock(&f.lock);
	return *bytes > 0;
}

static void advise(const struct tsi_read_request *q, int fd)
{
	uint64_t ahead = 0;

	pthread_mutex_lock(&f.lock);
	if (f.keeps_open && fd < 0)
		abort();
	f.advised[q->tag]++;
	f.order[f.norder++] = (unsigned)q->tag;
	for (uint64_t i = f.told + 1; i < MAX; i++)
		if (f.advised[i])
			ahead += f.size[i];
	if (ahead > f.most_ahead)
		f.most_ahead = ahead;
	pthread_cond_broadcast(&f.changed);
	pthread_mutex_unlock(&f.lock);
}

static const struct tsi_readahead_ops made_up = { look, advise };

static struct tsi_readahead *start(uint64_t budget, bool sorted, uint64_t end)
{
	struct tsi_readahead_opts o = {
		.budget = budget,
		.samples = MAX,
		.threads = sorted ? 1 : TSI_READAHEAD_THREADS,
		.sorted = sorted,
		.end = end,
		.locate = locate,
		.ops = &made_up,
	};
	struct tsi_readahead *r;

	f.budget = budget;
	assert_int_equal(tsi_readahead_create(&o, &r), 0);
	return r;
}

static void tell(struct tsi_readahead *r, uint64_t seq)
{
	pthread_mutex_lock(&f.lock);
	f.told = seq;
	pthread_mutex_unlock(&f.lock);
	tsi_readahead_tell(r, seq);
}

static void await_advice(unsigned n)
{
	pthread_mutex_lock(&f.lock);
	while (f.norder < n)
		await_change();
	pthread_mutex_unlock(&f.lock);
}

/* By place from order[from] on to order[to - 1]. */
static bool is_sorted(unsigned from, unsigned to)
{
	for (unsigned i = from + 1; i < to; i++)
		if (f.place[f.order[i - 1]] > f.place[f.order[i]])
			return false;
	return true;
}

static void a_batch_is_asked_for_by_place(void **state)
{
	struct tsi_readahead *r = start(100 * SIZE, true, MAX);

	(void)state;
	/* The stream begins here: what is before it is nobody's. */
	tell(r, 40);
	await_advice(100);
	assert_true(is_sorted(0, 100));
	/* Half of it is read: the next half is asked for. */
	tell(r, 90);
	await_advice(150);
	assert_true(is_sorted(100, 150));
	tsi_readahead_destroy(r);
	assert_int_equal(f.norder, 150);
	for (unsigned i = 0; i < MAX; i++) {
		assert_int_equal(f.advised[i], i > 40 && i <= 190);
		assert_int_equal(f.looked[i], f.advised[i]);
	}
	assert_int_equal(f.most_ahead, 100 * SIZE);
}

/* Workers that take no sample before it was looked at. */
static void read_all(struct tsi_readahead *r, uint64_t end)
{
	tell(r, 0);
	for (uint64_t i = 1; i < end; i++) {
		pthread_mutex_lock(&f.lock);
		while (!f.looked[i] && !f.left_out[i])
			await_change();
		pthread_mutex_unlock(&f.lock);
		tell(r, i);
	}
}

static void no_more_than_the_budget_is_ahead(void **state)
{
	const uint64_t budget = 64 * SIZE, end = MAX - 100;

	(void)state;
	for (unsigned sorted = 0; sorted < 2; sorted++) {
		struct tsi_readahead *r;
		uint64_t x = 1;

		begin_test(NULL);
		for (unsigned i = 0; i < MAX; i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			f.size[i] = (x >> 33) % (1 + (i / 64 % 5) * SIZE);
			f.left_out[i] = i % 7 == 3;
		}
		f.size[1000] = budget + 1;
		r = start(budget, sorted, end);
		read_all(r, end);
		tsi_readahead_destroy(r);
		assert_in_range(f.most_ahead, 1, budget);
		for (unsigned i = 0; i < MAX; i++) {
			bool may = i > 0 && i < end && !f.left_out[i];

			assert_in_range(f.looked[i], 0, may);
			assert_in_range(f.advised[i], 0,
					may && f.size[i] && i != 1000);
		}
	}
}

/* As when all readers left and others begin another epoch. */
static void what_the_stream_jumps_over_is_not_read(void **state)
{
	struct tsi_readahead *r;

	(void)state;
	f.block_at = 3;
	r = start(50 * SIZE, true, MAX);
	tell(r, 0);
	pthread_mutex_lock(&f.lock);
	while (!f.blocked)
		await_change();
	pthread_mutex_unlock(&f.lock);
	tell(r, 2000);
	pthread_mutex_lock(&f.lock);
	f.let_go = true;
	pthread_cond_broadcast(&f.changed);
	pthread_mutex_unlock(&f.lock);
	await_advice(50);
	tsi_readahead_destroy(r);
	assert_int_equal(f.looks, 3 + 50);
	for (unsigned i = 0; i < MAX; i++)
		assert_int_equal(f.advised[i], i > 2000 && i <= 2050);
}

static void several_are_asked_for_at_once(void **state)
{
	struct tsi_readahead *r;
	int fd = dup(1), after;

	(void)state;
	close(fd);
	f.wait_inside = TSI_READAHEAD_THREADS;
	f.keeps_open = true;
	r = start(30 * SIZE, false, MAX);
	tell(r, 10);
	await_advice(30);
	tsi_readahead_destroy(r);
	assert_int_equal(f.most_inside, TSI_READAHEAD_THREADS);
	assert_int_equal(f.norder, 30);
	for (unsigned i = 0; i < MAX; i++)
		assert_int_equal(f.advised[i], i > 10 && i <= 40);
	after = dup(1);
	close(after);
	assert_int_equal(after, fd);
}

static void nothing_behind_the_end_is_read(void **state)
{
	(void)state;
	for (unsigned sorted = 0; sorted < 2; sorted++) {
		struct tsi_readahead *r;

		begin_test(NULL);
		r = start(50 * SIZE, sorted, 33);
		tell(r, 5);
		await_advice(27);
		tell(r, 32);
		tsi_readahead_destroy(r);
		assert_int_equal(f.norder, 27);
		assert_int_equal(f.looks, 27);
	}
}

/* ------------------------------------------------------------------------
 * The end
 */

static void it_ends_with_the_file_that_it_is_at(void **state)
{
	struct tsi_readahead *r;

	(void)state;
	f.block_at = 5;
	r = start(1000 * SIZE, true, MAX);
	tell(r, 0);
	pthread_mutex_lock(&f.lock);
	while (!f.blocked)
		await_change();
	pthread_mutex_unlock(&f.lock);
	tsi_readahead_stop(r);
	pthread_mutex_lock(&f.lock);
	f.let_go = true;
	pthread_cond_broadcast(&f.changed);
	pthread_mutex_unlock(&f.lock);
	tsi_readahead_destroy(r);
	assert_int_equal(f.looks, 5);
	assert_int_equal(f.norder, 0);
	tsi_readahead_destroy(NULL);
	tsi_readahead_tell(NULL, 1);
	/* One that was never told anything has done nothing. */
	begin_test(NULL);
	tsi_readahead_destroy(start(1000 * SIZE, false, MAX));
	assert_int_equal(f.looks, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_batch_is_asked_for_by_place),
		TEST(no_more_than_the_budget_is_ahead),
		TEST(what_the_stream_jumps_over_is_not_read),
		TEST(several_are_asked_for_at_once),
		TEST(nothing_behind_the_end_is_read),
		TEST(it_ends_with_the_file_that_it_is_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
