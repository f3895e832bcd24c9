/* SPDX-License-Identifier: MIT */
/*
 * old_file.c - a file of a data set that hasn't only just changed.
 */
#include "test/lib/old_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

bool old_file_write(const char *path, const void *bytes, size_t n)
{
	static const struct timespec past[2] = { { .tv_sec = 1 },
						 { .tv_sec = 1 } };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, bytes, n) == (ssize_t)n && !futimens(fd, past);
	return !close(fd) && written;
}
