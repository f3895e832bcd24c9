/* SPDX-License-Identifier: MIT */
/*
 * root.c - the folder that a data set lies in.
 */
#include "data/root.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void tsi_root_init(struct tsi_root *r)
{
	r->path = NULL;
	r->fd = -1;
}

int tsi_root_open(struct tsi_root *r, const char *path)
{
	r->path = realpath(path, NULL);
	if (r->path)
		r->fd = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r->path && r->fd >= 0 ? 0 : -1;
}

void tsi_root_close(struct tsi_root *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->path);
	tsi_root_init(r);
}

const char *tsi_root_path(const struct tsi_root *r)
{
	return r->path;
}

int tsi_root_fd(const struct tsi_root *r)
{
	return r->fd;
}

/* "" is the root, which the system calls call ".". */
static const char *below(const char *path)
{
	return *path ? path : ".";
}

int tsi_root_openat(const struct tsi_root *r, const char *path, int flags)
{
	return openat(r->fd, below(path), flags);
}

int tsi_root_stat(const struct tsi_root *r, const char *path, struct stat *st)
{
	return fstatat(r->fd, below(path), st, 0);
}
