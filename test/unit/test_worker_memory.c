/* SPDX-License-Identifier: MIT */
/*
 * test_worker_memory.c - a worker whose files need more memory than it may
 * have, or than there is.
 *
 * The trees are made here: a one-coloured PNG of 40 x 30 pixels, and few bytes
 * of large images.
 */
#include "run/worker.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pixel/budget.h"
#include "test/lib/made_image.h"
#include "test/lib/sanitized.h"
#include "test/lib/worker_fixture.h"
#include "tsock/tsock.h"

#define MB ((size_t)1000 * 1000)

/* Two bytes for each pixel of coefficients; junk is read, no more. */
static void put_large_image(const char *name, unsigned edge, size_t junk)
{
	static struct made m;
	struct made_image_jpeg j = { .sof = 0xc2,
				     .width = edge,
				     .height = edge,
				     .parts = 1,
				     .sampling = 0x11,
				     .scans = 2,
				     .data = 3 };
	uint8_t *data;

	made_image_jpeg(&m, &j);
	data = calloc(1, m.len + junk);
	assert_non_null(data);
	memcpy(data, m.bytes, m.len);
	worker_put(name, data, m.len + junk);
	free(data);
}

static void put_large_file(const char *name, size_t size)
{
	uint8_t *data = calloc(1, size);

	assert_non_null(data);
	memcpy(data, worker_png, sizeof(worker_png));
	worker_put(name, data, size);
	free(data);
}

static void what_fits_no_budget_is_bad_and_the_rest_goes_on(void **state)
{
	struct tsi_budget *tight, *roomy;
	struct sample got[64];
	struct tsi_sampler *s;
	unsigned n;

	(void)state;
	worker_put_five();
	put_large_image("a/1.png", 3000, 0);
	put_large_file("b/1.png", TSI_READER_AHEAD + 1);
	assert_int_equal(tsi_budget_create(TSI_READER_AHEAD, &tight), 0);
	assert_int_equal(tsi_budget_create(30 * MB, &roomy), 0);
	s = worker_open_sampler();
	assert_int_equal(worker_make_within(s, roomy, DEPTH, got, 10, &n), 0);
	assert_int_equal(n, 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(got[i].index, i % 5);
	assert_int_equal(tsi_badlist_count(tsi_sampler_badlist(s)), 0);

	assert_int_equal(worker_make_within(s, tight, DEPTH, got, 10, &n), 0);
	assert_int_equal(n, 4);
	for (int i = 0; i < 10; i++) {
		static const int64_t index[] = { 0, 0, 2, 2, 4 };

		assert_int_equal(got[i].index, index[i % 5]);
	}
	assert_int_equal(tsi_badlist_count(tsi_sampler_badlist(s)), 2);
	tsi_sampler_close(s);
	tsi_budget_destroy(tight);
	tsi_budget_destroy(roomy);
}

struct maker {
	struct tsi_sampler *sampler;
	struct tsi_budget *budget;
	struct sample got[64];
	unsigned substituted;
	int err;
};

static void *make_one(void *arg)
{
	struct maker *m = arg;

	m->err = worker_make_within(m->sampler, m->budget, 1, m->got, 1,
				    &m->substituted);
	return NULL;
}

/* There is memory for the file but not for the image: both are waited for. */
static void a_large_file_gives_its_room_back_while_it_waits(void **state)
{
	struct timespec ms = { 0, 1000000 };
	struct tsi_budget_claim mine = { .budget = NULL };
	struct maker m = { .err = -1 };
	pthread_t thread;

	(void)state;
	worker_put_five();
	put_large_image("a/0.png", 3000, TSI_READER_AHEAD);
	assert_int_equal(tsi_budget_create(40 * MB, &m.budget), 0);
	m.sampler = worker_open_sampler();
	mine.budget = m.budget;
	assert_int_equal(tsi_budget_claim_grow(&mine, 30 * MB), 0);
	assert_int_equal(pthread_create(&thread, NULL, make_one, &m), 0);
	/* The thread is in line when a claim can't grow any more... */
	while (tsi_budget_claim_grow(&mine, mine.held + 1) == 0)
		nanosleep(&ms, NULL);
	tsi_budget_claim_end(&mine);
	pthread_join(thread, NULL);
	assert_int_equal(m.err, 0);
	assert_int_equal(m.substituted, 0);
	assert_int_equal(m.got[0].index, 0);
	/* ... and gave everything back. */
	assert_int_equal(tsi_budget_claim_all(&mine), 0);
	tsi_budget_claim_end(&mine);
	tsi_sampler_close(m.sampler);
	tsi_budget_destroy(m.budget);
}

/* In a child whose address space ends soon behind what it has. */
static void without_memory_for_one(void)
{
	struct tsi_sampler *s = worker_open_sampler();
	struct sample got[64];
	struct rlimit limit;
	unsigned n = 0;
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &pages), 1);
	fclose(f);
	limit.rlim_cur = limit.rlim_max =
		(rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + 14 * MB;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	if (worker_make(s, 1, got, 5, &n))
		fail_msg("%s", tsock_errmsg());
	assert_int_equal(n, 1);
	assert_int_equal(got[0].index, 0);
	assert_int_equal(got[1].index, 0);
	tsi_sampler_close(s);
}

static void an_image_that_finds_no_memory_does_not_end_the_stream(void **state)
{
	struct tsi_io_reader *r;
	int status = 0;
	pid_t pid;

	(void)state;
	if (SANITIZED)
		skip();
	/* The other reader's threads reserve address space of their own. */
	if (tsi_io_reader_create(TSI_READER_URING, 1, &r)) {
		print_message("there is no io_uring here\n");
		skip();
	}
	tsi_io_reader_destroy(r);
	worker_options.io = TSI_READER_URING;
	worker_put_five();
	put_large_image("a/1.png", 6000, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		without_memory_for_one();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define in_a_tree(test) \
	cmocka_unit_test_setup_teardown(test, worker_make_root, \
					worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_tree(what_fits_no_budget_is_bad_and_the_rest_goes_on),
		in_a_tree(a_large_file_gives_its_room_back_while_it_waits),
		in_a_tree(
			an_image_that_finds_no_memory_does_not_end_the_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
