/* SPDX-License-Identifier: MIT */
/*
 * test_disk.c - which disks rotate, which files are on a network, and what the
 * kernel says of a file.
 */
#include "io/disk.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/readahead.h"
#include "test/lib/file_reader.h"

static char sys[64];

static void shell(const char *fmt, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

/* A disk with a partition, as sysfs has them. */
static void put_disk(const char *name, unsigned minor, int rotates,
		     const char *driver)
{
	shell("cd %s && mkdir -p dev/block devices/%s/queue "
	      "devices/%s/device devices/%s/%s1 && "
	      "echo %d >devices/%s/queue/rotational && "
	      "ln -s ../../../bus/drivers/%s devices/%s/device/driver && "
	      "ln -s ../../devices/%s dev/block/8:%u && "
	      "ln -s ../../devices/%s/%s1 dev/block/8:%u",
	      sys, name, name, name, name, rotates, name, driver, name, name,
	      minor, name, name, minor + 1);
}

static void expect(unsigned minor, enum tsi_disk kind)
{
	assert_int_equal(tsi_disk_of_device(makedev(8, minor), sys), kind);
}

static void a_disk_says_whether_it_rotates(void **state)
{
	(void)state;
	snprintf(sys, sizeof(sys), "/tmp/tsock-sys-XXXXXX");
	assert_non_null(mkdtemp(sys));
	put_disk("sda", 0, 1, "sd");
	put_disk("sdb", 16, 0, "sd");
	put_disk("vda", 32, 1, "virtio_blk");
	expect(0, TSI_DISK_ROTATES);
	expect(1, TSI_DISK_ROTATES);
	expect(16, TSI_DISK_OTHER);
	expect(17, TSI_DISK_OTHER);
	/* virtio_blk says so of any disk, and isn't believed. */
	expect(32, TSI_DISK_OTHER);
	expect(33, TSI_DISK_OTHER);
	expect(99, TSI_DISK_OTHER);
	shell("rm -rf %s", sys);
}

static void file_systems_of_a_network_are_known(void **state)
{
	(void)state;
	assert_int_equal(tsi_disk_of_type(0x6969), TSI_DISK_NETWORK);
	assert_int_equal(tsi_disk_of_type(0xff534d42), TSI_DISK_NETWORK);
	assert_int_equal(tsi_disk_of_type(0x65735546), TSI_DISK_NETWORK);
	assert_int_equal(tsi_disk_of_type(0xef53), TSI_DISK_OTHER);
	assert_int_equal(tsi_disk_of_type(0x01021994), TSI_DISK_OTHER);
	assert_int_equal(tsi_disk_of(-1), TSI_DISK_OTHER);
}

/* ------------------------------------------------------------------------
 * A file, by the kernel
 */

/* Pages of this file that are in the cache. */
static unsigned cached_pages(const char *name, size_t size)
{
	unsigned char page[256] = { 0 };
	unsigned n = 0, pages = (unsigned)((size + 4095) / 4096);
	int fd = openat(files_dirfd, name, O_RDONLY);
	void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	assert_true(at != MAP_FAILED && pages <= sizeof(page));
	assert_int_equal(mincore(at, size, page), 0);
	for (unsigned i = 0; i < pages; i++)
		n += page[i] & 1;
	munmap(at, size);
	close(fd);
	return n;
}

static void advice_brings_a_file_into_the_cache(void **state)
{
	const struct tsi_readahead_ops *k = &tsi_readahead_by_kernel;
	const size_t size = 700000;
	struct tsi_read_request q = { .dirfd = files_dirfd, .path = "file" };
	struct tsi_readahead_place place = { UINT64_MAX, UINT64_MAX };
	struct timespec ms = { 0, 1000000 };
	uint64_t bytes = 0;
	int fd = -1;

	(void)state;
	files_put("file", size, 1);
	fd = openat(files_dirfd, "file", O_RDONLY);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
	if (cached_pages("file", size)) {
		print_message("[  SKIP  ] this file system is a cache\n");
		skip();
	}
	fd = -1;
	assert_true(k->look(&q, &bytes, &place, &fd));
	assert_int_equal(bytes, size);
	assert_int_equal(fd, -1);
	assert_true(place.major != UINT64_MAX && place.minor != UINT64_MAX);
	/* To look reads nothing of it. */
	assert_int_equal(cached_pages("file", size), 0);
	q.offset = 300000;
	q.length = 5000;
	assert_true(k->look(&q, &bytes, NULL, &fd));
	assert_int_equal(bytes, 5000);
	assert_true(fd >= 0);
	k->advise(&q, fd);
	close(fd);
	while (cached_pages("file", size) < 2)
		nanosleep(&ms, NULL);
	q.offset = q.length = 0;
	k->advise(&q, -1);
	while (cached_pages("file", size) < 171)
		nanosleep(&ms, NULL);
}

static void what_is_no_file_is_passed_over(void **state)
{
	const struct tsi_readahead_ops *k = &tsi_readahead_by_kernel;
	static const char *const paths[] = { "missing", "folder", "fifo",
					     "empty", "/proc/self/maps" };
	int before = files_open_fds();

	(void)state;
	assert_int_equal(mkdirat(files_dirfd, "folder", 0700), 0);
	assert_int_equal(mkfifoat(files_dirfd, "fifo", 0600), 0);
	files_put("empty", 0, 0);
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct tsi_read_request q = { .dirfd = files_dirfd,
					      .path = paths[i] };
		struct tsi_readahead_place place;
		uint64_t bytes;
		int fd = -1;

		assert_false(k->look(&q, &bytes, &place, &fd));
		assert_false(k->look(&q, &bytes, NULL, &fd));
		assert_int_equal(fd, -1);
		k->advise(&q, -1);
	}
	assert_int_equal(files_open_fds(), before);
}

static const struct CMUnitTest disks[] = {
	cmocka_unit_test(a_disk_says_whether_it_rotates),
	cmocka_unit_test(file_systems_of_a_network_are_known),
};

static const struct CMUnitTest suite[] = {
	cmocka_unit_test(advice_brings_a_file_into_the_cache),
	cmocka_unit_test(what_is_no_file_is_passed_over),
};

int main(void)
{
	int failed = cmocka_run_group_tests(disks, NULL, NULL);

	failed += files_run("files", suite);
	return failed != 0;
}
