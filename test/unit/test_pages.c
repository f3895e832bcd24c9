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
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memfd.h"
#include "consumer/pages.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21 /* Linux 5.4 */
#endif

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
	tsi_pages_close(fd);
	tsi_memfd_close(&m);
}

/* ---- a page map of the test's own ---- */

#define SHARED (UINT64_C(1) << 61)
#define SWAPPED (UINT64_C(1) << 62)
#define PRESENT (UINT64_C(1) << 63)

/* What a page map says of one page among many that are there and shared. */
static int private_if(uint64_t entry)
{
	enum { PAGES = 5000, ODD = 4321 };
	static uint64_t map[PAGES];
	const uint8_t *page = (const uint8_t *)0x700000000000;
	off_t at = (off_t)((uintptr_t)page / 4096 * sizeof(map[0]));
	int fd = memfd_create("pagemap", MFD_CLOEXEC), is;

	assert_true(fd >= 0);
	for (unsigned i = 0; i < PAGES; i++)
		map[i] = i == ODD ? entry : PRESENT | SHARED;
	assert_int_equal(pwrite(fd, map, sizeof(map), at), sizeof(map));
	is = tsi_pages_private(fd, page, (size_t)PAGES * 4096);
	close(fd);
	return is;
}

static void copies_that_are_swapped_out_are_private(void **state)
{
	(void)state;
	assert_int_equal(private_if(SWAPPED), 1);
	assert_int_equal(private_if(PRESENT), 1);
	/* A page that nobody has touched, one of the file's that moves. */
	assert_int_equal(private_if(0), 0);
	assert_int_equal(private_if(SWAPPED | SHARED), 0);
	assert_int_equal(private_if(PRESENT | SHARED), 0);
}

/* ---- the kernel's page map, where there is swap ---- */

static bool is_swapped(int map, const void *p)
{
	uint64_t entry;

	assert_int_equal(pread(map, &entry, sizeof(entry),
			       (off_t)((uintptr_t)p / 4096 * sizeof(entry))),
			 sizeof(entry));
	return entry & SWAPPED;
}

/* Both the stream's pages and the copies may go, and come back as they were. */
static void pages_are_as_they_were_after_they_were_swapped_out(void **state)
{
	struct tsi_memfd m;
	int fd = tsi_pages_open();
	size_t len = 64 * 4096;
	uint8_t *p;

	(void)state;
	assert_int_equal(tsi_memfd_create("test", len, 0, &m), 0);
	memset(m.base, 5, len);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, m.fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 6, len / 2);
	if (madvise(p, len, MADV_PAGEOUT))
		print_message("MADV_PAGEOUT: %s\n", strerror(errno));
	madvise(m.base, len, MADV_PAGEOUT);
	if (fd >= 0 && is_swapped(fd, p))
		assert_int_equal(tsi_pages_private(fd, p, 4096), 1);
	else
		print_message("nothing was swapped out: no swap here?\n");
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(((uint8_t *)m.base)[i], 5);
		assert_int_equal(p[i], i < len / 2 ? 6 : 5);
	}
	assert_true(tsi_pages_reset(fd, p, len));
	for (size_t i = 0; i < len; i += 4096)
		assert_int_equal(p[i], 5);
	munmap(p, len);
	tsi_pages_close(fd);
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
		cmocka_unit_test(copies_that_are_swapped_out_are_private),
		cmocka_unit_test(
			pages_are_as_they_were_after_they_were_swapped_out),
		cmocka_unit_test(touching_undoes_no_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
