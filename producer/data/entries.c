/* SPDX-License-Identifier: MIT */
/*
 * entries.c - the entries of a folder.
 */
#include "data/entries.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's struct linux_dirent64. */
_Static_assert(offsetof(struct dirent, d_off) == 8 &&
		       offsetof(struct dirent, d_reclen) == 16 &&
		       offsetof(struct dirent, d_type) == 18 &&
		       offsetof(struct dirent, d_name) == 19,
	       "entries are as the kernel writes them");

void tsi_entries_begin(struct tsi_entries *e, int fd)
{
	e->fd = fd;
	e->at = e->len = 0;
}

/* Have an entry in the buffer; 0: there are no more, -1: errno. */
static int fill(struct tsi_entries *e)
{
	long n;

	if (e->at < e->len)
		return 1;
	/*
	 * A short answer is no sign of the end: network file systems give as
	 * much as one reply of the server had, and an error after some entries
	 * is only told by the next call.
	 */
	do
		n = syscall(SYS_getdents64, e->fd, e->buf, sizeof(e->buf));
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == ENOENT) /* the folder was removed */
		n = 0;
	e->at = 0;
	e->len = n > 0 ? (size_t)n : 0;
	return n > 0 ? 1 : (int)n;
}

const struct dirent *tsi_entries_next(struct tsi_entries *e)
{
	int got;

	while ((got = fill(e)) > 0) {
		const struct dirent *d =
			(const void *)((const char *)e->buf + e->at);

		e->at += d->d_reclen;
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			return d;
	}
	if (!got)
		errno = 0;
	return NULL;
}
