/* SPDX-License-Identifier: MIT */
/*
 * pages.c - the pages of a private copy-on-write mapping.
 *
 * /proc/self/pagemap has one 64-bit entry per page of this process.  A page of
 * a file that nobody wrote to has bit 61; a copy made by a write hasn't, be it
 * in memory (bit 63) or swapped out (bit 62).  See the kernel's
 * admin-guide/mm/pagemap.
 */
#include "consumer/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "consumer/shared_fd.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define SHARED (UINT64_C(1) << 61)
#define SWAPPED (UINT64_C(1) << 62)
#define PRESENT (UINT64_C(1) << 63)
#define CHUNK 2048 /* entries; on the stack */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int tsi_pages_open(void)
{
	return tsi_shared_fd(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
}

void tsi_pages_close(int fd)
{
	tsi_shared_fd_close(fd);
}

static int any_private(const uint64_t *entry, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((entry[i] & (PRESENT | SWAPPED)) && !(entry[i] & SHARED))
			return 1;
	return 0;
}

int tsi_pages_private(int fd, const void *addr, size_t len)
{
	size_t page = page_size();
	size_t at = (uintptr_t)addr / page, left = len / page;
	uint64_t entry[CHUNK];

	if (fd < 0)
		return -1;
	while (left) {
		size_t n = left < CHUNK ? left : CHUNK;
		ssize_t got = pread(fd, entry, n * sizeof(entry[0]),
				    (off_t)(at * sizeof(entry[0])));

		if (got < (ssize_t)sizeof(entry[0]))
			return -1;
		n = (size_t)got / sizeof(entry[0]);
		if (any_private(entry, n))
			return 1;
		at += n;
		left -= n;
	}
	return 0;
}

/*
 * Write one byte of each page without changing it.  The user may be writing,
 * too, so it is a compare-and-swap, whose value the compiler can't see through.
 */
void tsi_pages_touch(void *addr, size_t len)
{
	size_t page = page_size();

	for (size_t at = 0; at < len; at += page) {
		_Atomic uint8_t *p = (_Atomic uint8_t *)addr + at;
		uint8_t v = atomic_load(p), same;

		do {
			same = v;
			__asm__ volatile("" : "+r"(same));
		} while (!atomic_compare_exchange_weak(p, &v, same));
	}
}

int tsi_pages_take(void *addr, size_t len)
{
	if (!madvise(addr, len, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	tsi_pages_touch(addr, len);
	return 0;
}

bool tsi_pages_reset(int fd, void *addr, size_t len)
{
	if (!tsi_pages_private(fd, addr, len))
		return true;
	if (!madvise(addr, len, MADV_DONTNEED))
		return true;
	/* Somebody locked it. */
	return !munlock(addr, len) && !madvise(addr, len, MADV_DONTNEED);
}
