/* SPDX-License-Identifier: MIT */
/*
 * readahead_kernel.c - where files lie, whether they are in the page cache, and
 * the advice to read them.
 */
#include "io/readahead.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/fiemap.h>
#include <linux/fs.h>

#include "io/slot.h"

#define PIECE 131072 /* of an advice: the kernel cuts longer ones off */

/* cachestat(), since Linux 6.5, for headers that are older. */
#define CACHESTAT 451

struct range {
	uint64_t offset, length;
};

struct pages {
	uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/* All of it, as far as this kernel tells. */
static bool is_cached(int fd, uint64_t offset, uint64_t bytes)
{
	struct range range = { offset, bytes };
	struct pages pages = { 0 };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t all = (offset + bytes + page - 1) / page - offset / page;

	return !syscall(CACHESTAT, fd, &range, &pages, 0) &&
	       pages.cached >= all;
}

/* On the disk or, where the file system doesn't say, as it was made. */
static void find_place(int fd, uint64_t offset, uint64_t bytes,
		       struct tsi_readahead_place *place)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} u;
	const struct fiemap_extent *e = u.map.fm_extents;
	struct stat st;

	memset(&u, 0, sizeof(u));
	u.map.fm_start = offset;
	u.map.fm_length = bytes;
	u.map.fm_extent_count = 1;
	if (!ioctl(fd, FS_IOC_FIEMAP, &u.map) && u.map.fm_mapped_extents &&
	    !(e->fe_flags & FIEMAP_EXTENT_UNKNOWN)) {
		place->major = e->fe_physical;
		if (offset > e->fe_logical)
			place->major += offset - e->fe_logical;
		place->minor = 0;
	} else if (!fstat(fd, &st)) {
		place->major = st.st_ino;
		place->minor = offset;
	}
}

static bool look_at_file(const struct tsi_read_request *q, uint64_t *bytes,
			 struct tsi_readahead_place *place, int *fd_out)
{
	struct tsi_fs_seen seen = { .known = false };
	int fd = tsi_io_slot_open_file(q);
	size_t size, align;
	bool is;

	if (fd < 0)
		return false;
	is = !tsi_io_slot_check_file(fd, q, &seen, &size, &align) && size &&
	     !is_cached(fd, q->offset, size);
	if (is)
		*bytes = size;
	if (is && place)
		find_place(fd, q->offset, size, place);
	if (is && !place)
		*fd_out = fd;
	else
		close(fd);
	return is;
}

static void advise(const struct tsi_read_request *q, int fd)
{
	struct tsi_fs_seen seen = { .known = false };
	bool is_open = fd >= 0;
	size_t size, align;

	if (!is_open)
		fd = tsi_io_slot_open_file(q);
	if (fd < 0)
		return;
	if (!tsi_io_slot_check_file(fd, q, &seen, &size, &align))
		for (size_t at = 0; at < size; at += PIECE)
			posix_fadvise(
				fd, (off_t)(q->offset + at),
				(off_t)(size - at < PIECE ? size - at : PIECE),
				POSIX_FADV_WILLNEED);
	if (!is_open)
		close(fd);
}

const struct tsi_readahead_ops tsi_readahead_by_kernel = { look_at_file,
							   advise };
