/* SPDX-License-Identifier: MIT */
/*
 * test_gpu_pin.c - page-locked memory of the host, and copies from and to it:
 * on a real GPU where there is one, else on the simulation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>

#include "test/lib/gpu_child.h"
#include "mem/cuda/pin.h"
#include "mem/gpu.h"

static void host_memory_is_pinned_and_read(void **state)
{
	size_t n = 3 << 20;
	uint8_t *host, *got = malloc(n);
	tsi_gpu_stream s;
	void *dev;
	int fd, err;

	(void)state;
	gpu_child_need_gpus(1);
	fd = memfd_create("ring", MFD_CLOEXEC);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)n), 0);
	host = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(host != MAP_FAILED);
	for (int twice = 0; twice < 2; twice++) {
		err = tsi_gpu_pin(0, host, n);
		if (err == TSOCK_ENOTSUP || err == TSOCK_ENOMEM) {
			print_message("%s\n", tsock_errmsg());
			skip();
		}
		assert_int_equal(err, 0);
		gpu_child_pattern(host, n, 3);
		assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
		assert_int_equal(tsi_gpu_alloc(0, n, &dev), 0);
		gpu_child_upload(0, s, dev, host, n);
		gpu_child_fetch(0, s, got, dev, n);
		assert_memory_equal(got, host, n);
		tsi_gpu_free(0, dev);
		tsi_gpu_stream_destroy(0, s);
		tsi_gpu_unpin(host);
	}
	munmap(host, n);
	close(fd);
	free(got);
}

static void copies_cross_the_borders_of_what_is_page_locked(void **state)
{
	size_t n = 1 << 20;
	uint8_t *host, *want = malloc(n), *got = malloc(n);
	tsi_gpu_stream s;
	void *dev;
	int err;

	(void)state;
	gpu_child_need_gpus(1);
	host = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	assert_true(host != MAP_FAILED);
	tsi_gpu_pin_chunk(3 * 4096 - 5); /* whole pages all the same */
	err = tsi_gpu_pin(0, host, n);
	tsi_gpu_pin_chunk(0);
	if (err == TSOCK_ENOTSUP || err == TSOCK_ENOMEM) {
		print_message("%s\n", tsock_errmsg());
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_alloc(0, n, &dev), 0);
	gpu_child_pattern(host, n, 5);
	memcpy(want, host, n);
	/* All of it, and parts that begin and end anywhere. */
	gpu_child_upload(0, s, dev, host, n);
	memset(host, 0, n);
	gpu_child_fetch(0, s, host, dev, n);
	assert_memory_equal(host, want, n);
	for (size_t at = 1; at < n / 2; at = at * 3 + 1000) {
		gpu_child_upload(0, s, dev, host + at, n / 2 - 7);
		gpu_child_fetch(0, s, got, dev, n / 2 - 7);
		assert_memory_equal(got, want + at, n / 2 - 7);
	}
	/* That address without chunks. */
	tsi_gpu_unpin(host);
	assert_int_equal(tsi_gpu_pin(0, host, n), 0);
	gpu_child_upload(0, s, dev, host, n);
	gpu_child_fetch(0, s, got, dev, n);
	assert_memory_equal(got, want, n);
	tsi_gpu_unpin(host);
	tsi_gpu_unpin(host); /* is none any more */
	tsi_gpu_free(0, dev);
	tsi_gpu_stream_destroy(0, s);
	munmap(host, n);
	free(want);
	free(got);
}

#define PAGES 8

static void need_simulation(unsigned gpus)
{
	if (!simcuda_live) {
		print_message("only the simulation tells\n");
		skip();
	}
	gpu_child_need_gpus(gpus);
}

static void *pages(void)
{
	void *p = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(97);
	return p;
}

struct gpu_child_upload {
	tsi_gpu_stream s;
	void *dev, *host;
	int err;
};

static void begin_upload(void *arg)
{
	struct gpu_child_upload *u = arg;

	u->err = tsi_gpu_upload(0, u->s, u->dev, u->host, PAGES * 4096);
}

/* When the first of eight chunks is page-locked, and the others not yet. */
static void copies_may_begin_while_page_locking_is_under_way(void **state)
{
	uint8_t got[PAGES * 4096];
	struct gpu_child_upload u = { .host = pages(), .err = 1 };

	(void)state;
	need_simulation(1);
	gpu_child_pattern(u.host, sizeof(got), 7);
	assert_int_equal(tsi_gpu_stream_create(0, &u.s), 0);
	assert_int_equal(tsi_gpu_alloc(0, sizeof(got), &u.dev), 0);
	tsi_gpu_pin_chunk(4096);
	simcuda_after("cuMemHostRegister", begin_upload, &u);
	assert_int_equal(tsi_gpu_pin(0, u.host, sizeof(got)), 0);
	tsi_gpu_pin_chunk(0);
	assert_int_equal(u.err, 0);
	gpu_child_fetch(0, u.s, got, u.dev, sizeof(got));
	assert_memory_equal(got, u.host, sizeof(got));
	tsi_gpu_unpin(u.host);
	tsi_gpu_free(0, u.dev);
	tsi_gpu_stream_destroy(0, u.s);
	munmap(u.host, sizeof(got));
}

/* ---- which GPUs have to do with it ---- */

static void child_contexts(int argc, char **argv)
{
	struct simcuda_live live;
	void *p = pages(), *own;
	int err = tsi_gpu_pin(3, p, PAGES * 4096);

	(void)argc;
	(void)argv;
	tsi_gpu_unpin(p);
	if (!err)
		err = tsi_gpu_host_alloc(3, 4096, &own);
	if (!err)
		tsi_gpu_host_free(3, own);
	simcuda_live(&live);
	printf("%d, contexts %x, pinned %u", err, live.contexts, live.pinned);
}

static void only_the_gpu_that_asks_gets_a_context(void **state)
{
	char *argv[] = { (char *)"contexts", NULL };
	char out[100];

	(void)state;
	need_simulation(4);
	assert_int_equal(gpu_child_run(argv, NULL, out, sizeof(out)), 0);
	assert_string_equal(out, "0, contexts 8, pinned 0");
}

/* The GPU that was asked is lost; another one can still undo it. */
static void child_lost(int argc, char **argv)
{
	uint8_t *p = pages();
	struct simcuda_live live;
	tsi_gpu_stream s;

	(void)argc;
	(void)argv;
	tsi_gpu_pin_chunk(4096);
	if (tsi_gpu_pin(1, p, PAGES * 4096) || tsi_gpu_stream_create(0, &s))
		exit(96);
	simcuda_set_faults("cudaStreamQuery@1=700");
	printf("healthy %d, %d, ", tsi_gpu_healthy(0), tsi_gpu_healthy(1));
	tsi_gpu_unpin(p);
	simcuda_live(&live);
	printf("pinned %u, one copy of %d", live.pinned,
	       (int)tsi_cuda_pin_run(p, PAGES * 4096) / 4096);
}

static void a_gpu_that_is_lost_leaves_nothing_page_locked(void **state)
{
	char *argv[] = { (char *)"lost", NULL };
	char out[100];

	(void)state;
	need_simulation(2);
	assert_int_equal(gpu_child_run(argv, NULL, out, sizeof(out)), 0);
	assert_string_equal(out, "healthy 0, -13, pinned 0, one copy of 8");
}

int main(int argc, char **argv)
{
	static const struct child children[] = { { "contexts", child_contexts },
						 { "lost", child_lost },
						 { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_memory_is_pinned_and_read),
		cmocka_unit_test(
			copies_cross_the_borders_of_what_is_page_locked),
		cmocka_unit_test(
			copies_may_begin_while_page_locking_is_under_way),
		cmocka_unit_test(only_the_gpu_that_asks_gets_a_context),
		cmocka_unit_test(a_gpu_that_is_lost_leaves_nothing_page_locked),
	};

	gpu_child_main(argc, argv, children);
	if (tsi_gpu_count(&gpu_child_gpus)) {
		puts(tsock_errmsg());
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
