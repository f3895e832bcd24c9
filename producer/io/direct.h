/* SPDX-License-Identifier: MIT */
/*
 * direct.h - files that are read past the page cache (O_DIRECT).
 *
 * Offsets, lengths and memory of such reads are multiples of a file's
 * alignment, so a read begins before the bytes that are wanted and ends behind
 * them.  A file whose file system refuses is read through the cache, which the
 * log says once.  An alignment of 1 means: through the cache.
 */
#ifndef TSI_IO_DIRECT_H
#define TSI_IO_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the kernel doesn't say more; no disk has larger blocks there. */
#define TSI_DIRECT_ALIGN ((size_t)4096)
/* Files that want more than this are read through the cache. */
#define TSI_DIRECT_ALIGN_MAX ((size_t)64 << 10)

/*
 * Read this open file past the cache from now on; path is for the log.  Returns
 * its alignment, a power of two from TSI_DIRECT_ALIGN to TSI_DIRECT_ALIGN_MAX,
 * or 1.
 */
size_t tsi_io_direct_begin(int fd, const char *path);

/*
 * A read past the cache failed by err.  Was it refused for being that, and is
 * the file read through the cache from now on?
 */
bool tsi_io_direct_refused(int fd, const char *path, int err);

/* n rounded to a multiple of align, a power of two. */
static inline uint64_t tsi_io_direct_down(uint64_t n, size_t align)
{
	return n & ~((uint64_t)align - 1);
}

static inline uint64_t tsi_io_direct_up(uint64_t n, size_t align)
{
	return tsi_io_direct_down(n + align - 1, align);
}

#endif
