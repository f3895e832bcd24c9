/* SPDX-License-Identifier: MIT */
/*
 * test_pages.c - which pages of a private mapping are copies, and making them
 * so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "consumer/pages.h"
#include "mem/memfd.h"

static void pages_say_whether_they_are_private(void **state)
{
	struct tsi_memfd m;
	int fd = tsi_pages_open();
	size_t len = 5000 * 4096;
	uint8_t *p;

	(void)state;
	if (fd < 0) {
		print_message("/proc/self/pagemap can't be read\n");
		skip();
	}
	assert_int_equal(tsi_memfd_create("test", len, 0, &m), 0);
	memset(m.base, 5, len);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, m.fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(tsi_pages_private(fd, p, len), 0);
	for (size_t i = 0; i < len; i += 4096)
		assert_int_equal(*(volatile uint8_t *)(p + i), 5);
	assert_int_equal(tsi_pages_private(fd, p, len), 0);
	p[len - 1] = 6;
	assert_int_equal(tsi_pages_private(fd, p, len), 1);
	assert_int_equal(tsi_pages_private(fd, p, len - 4096), 0);
	assert_int_equal(tsi_pages_private(-1, p, len), -1);
	assert_true(tsi_pages_reset(fd, p, len));
	assert_int_equal(p[len - 1], 5);
	assert_int_equal(tsi_pages_private(fd, p, len), 0);
	tsi_pages_touch(p, len);
	for (size_t i = 0; i < len; i += 4096) {
		assert_int_equal(tsi_pages_private(fd, p + i, 4096), 1);
		assert_int_equal(p[i], 5);
	}
	munmap(p, len);
	close(fd);
	tsi_memfd_close(&m);
}

static void *count_up(void *arg)
{
	_Atomic uint8_t *p = arg;

	/* The byte that touching writes, too. */
	for (unsigned i = 0; i < 200000; i++)
		atomic_fetch_add(p, 1);
	return NULL;
}

static void touching_undoes_no_write(void **state)
{
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(pthread_create(&t, NULL, count_up, p), 0);
	for (unsigned i = 0; i < 200000; i++)
		tsi_pages_touch(p, 4096);
	pthread_join(t, NULL);
	assert_int_equal(p[0], (uint8_t)200000);
	munmap(p, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_say_whether_they_are_private),
		cmocka_unit_test(touching_undoes_no_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
