/* SPDX-License-Identifier: MIT */
/*
 * direct.c - files that are read past the page cache.
 */
#include "io/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

/*
 * linux/stat.h has this since Linux 6.1; with older headers the fields lie in
 * struct statx's spare bytes.
 */
#define DIOALIGN 0x2000u
#define DIOALIGN_AT 0x98 /* two uint32_t: of memory, of offsets and lengths */

static void say_once(const char *path, const char *why)
{
	static _Atomic bool said;

	if (!atomic_exchange(&said, true))
		tsi_log(TSOCK_LOG_WARN,
			"--direct: %s can't be read past the page cache (%s); "
			"files of which this is so are read through it",
			path, why);
}

/* How the kernel wants reads to be aligned; 0: there can't be any. */
static size_t ask_kernel(int fd)
{
	uint32_t align[2];
	struct statx st;

	memset(&st, 0, sizeof(st));
	if (statx(fd, "", AT_EMPTY_PATH, DIOALIGN, &st) ||
	    !(st.stx_mask & DIOALIGN))
		return TSI_DIRECT_ALIGN;
	memcpy(align, (const char *)&st + DIOALIGN_AT, sizeof(align));
	if (!align[0] || align[0] > TSI_DIRECT_ALIGN)
		return 0;
	return align[1];
}

size_t tsi_io_direct_begin(int fd, const char *path)
{
	size_t align = ask_kernel(fd);

	if (align > 0 && align < TSI_DIRECT_ALIGN)
		align = TSI_DIRECT_ALIGN;
	if (!align || align > TSI_DIRECT_ALIGN_MAX || (align & (align - 1))) {
		say_once(path, "its file system says so");
		return 1;
	}
	if (!fcntl(fd, F_SETFL, O_DIRECT))
		return align;
	say_once(path, strerror(errno));
	return 1;
}

bool tsi_io_direct_refused(int fd, const char *path, int err)
{
	if (err != EINVAL && err != EOPNOTSUPP)
		return false;
	if (fcntl(fd, F_SETFL, 0))
		return false;
	say_once(path, strerror(err));
	return true;
}
