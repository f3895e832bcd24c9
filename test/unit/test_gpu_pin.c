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
#include "mem/gpu.h"

static void host_memory_is_pinned_and_read(void **state)
{
	size_t n = 3 << 20;
	uint8_t *host, *got = malloc(n);
	tsi_gpu_stream s;
	void *dev;
	int fd, err;

	(void)state;
	need_gpus(1);
	fd = memfd_create("ring", MFD_CLOEXEC);
	assert_int_equal(posix_fallocate(fd, 0, (off_t)n), 0);
	host = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(host != MAP_FAILED);
	for (int twice = 0; twice < 2; twice++) {
		err = tsi_gpu_pin(host, n);
		if (err == TSOCK_ENOTSUP || err == TSOCK_ENOMEM) {
			print_message("%s\n", tsock_errmsg());
			skip();
		}
		assert_int_equal(err, 0);
		pattern(host, n, 3);
		assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
		assert_int_equal(tsi_gpu_alloc(0, n, &dev), 0);
		upload(0, s, dev, host, n);
		fetch(0, s, got, dev, n);
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
	need_gpus(1);
	host = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
	assert_true(host != MAP_FAILED);
	tsi_gpu_pin_chunk(3 * 4096 - 5); /* whole pages all the same */
	err = tsi_gpu_pin(host, n);
	tsi_gpu_pin_chunk(0);
	if (err == TSOCK_ENOTSUP || err == TSOCK_ENOMEM) {
		print_message("%s\n", tsock_errmsg());
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_equal(tsi_gpu_stream_create(0, &s), 0);
	assert_int_equal(tsi_gpu_alloc(0, n, &dev), 0);
	pattern(host, n, 5);
	memcpy(want, host, n);
	/* All of it, and parts that begin and end anywhere. */
	upload(0, s, dev, host, n);
	memset(host, 0, n);
	fetch(0, s, host, dev, n);
	assert_memory_equal(host, want, n);
	for (size_t at = 1; at < n / 2; at = at * 3 + 1000) {
		upload(0, s, dev, host + at, n / 2 - 7);
		fetch(0, s, got, dev, n / 2 - 7);
		assert_memory_equal(got, want + at, n / 2 - 7);
	}
	/* The same address without chunks. */
	tsi_gpu_unpin(host);
	assert_int_equal(tsi_gpu_pin(host, n), 0);
	upload(0, s, dev, host, n);
	fetch(0, s, got, dev, n);
	assert_memory_equal(got, want, n);
	tsi_gpu_unpin(host);
	tsi_gpu_unpin(host); /* is none any more */
	tsi_gpu_free(0, dev);
	tsi_gpu_stream_destroy(0, s);
	munmap(host, n);
	free(want);
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_memory_is_pinned_and_read),
		cmocka_unit_test(
			copies_cross_the_borders_of_what_is_page_locked),
	};

	if (tsi_gpu_count(&ngpus)) {
		puts(tsock_errmsg());
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
