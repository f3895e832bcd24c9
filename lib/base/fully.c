/* SPDX-License-Identifier: MIT */
/*
 * fully.c - read() and write() until all bytes are through.
 */
#include "base/fully.h"

#include <errno.h>
#include <unistd.h>

/* A call moved n bytes, or failed; false: it is not to be made again. */
static bool is_repeated(ssize_t n, size_t *done)
{
	if (n == 0)
		errno = ENOSPC; /* of a write */
	if (n > 0)
		*done += (size_t)n;
	return n > 0 || errno == EINTR;
}

ssize_t tsi_fully_read(int fd, void *to, size_t len)
{
	char *p = to;
	size_t done = 0;
	ssize_t n;

	while (done < len && (n = read(fd, p + done, len - done)) != 0)
		if (!is_repeated(n, &done))
			return -1;
	return (ssize_t)done;
}

ssize_t tsi_fully_pread(int fd, void *to, size_t len, uint64_t at)
{
	char *p = to;
	size_t done = 0;
	ssize_t n;

	while (done < len &&
	       (n = pread(fd, p + done, len - done, (off_t)(at + done))) != 0)
		if (!is_repeated(n, &done))
			return -1;
	return (ssize_t)done;
}

bool tsi_fully_write(int fd, const void *from, size_t len)
{
	const char *p = from;
	size_t done = 0;

	while (done < len)
		if (!is_repeated(write(fd, p + done, len - done), &done))
			return false;
	return true;
}

bool tsi_fully_pwrite(int fd, const void *from, size_t len, uint64_t at)
{
	const char *p = from;
	size_t done = 0;

	while (done < len)
		if (!is_repeated(pwrite(fd, p + done, len - done,
					(off_t)(at + done)),
				 &done))
			return false;
	return true;
}
