/* SPDX-License-Identifier: MIT */
/*
 * root.c - the folder that a data set lies in.
 */
#include "data/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

void tsi_root_init(struct tsi_root *r)
{
	r->given = NULL;
	r->path = NULL;
	r->name = NULL;
	r->fd = -1;
}

int tsi_root_open(struct tsi_root *r, const char *path)
{
	r->given = strdup(path);
	if (!r->given)
		return -1;
	r->path = realpath(path, NULL);
	if (!r->path)
		return -1;
	do
		r->fd = open(r->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (r->fd < 0 && errno == EINTR);
	if (r->fd < 0)
		return -1;
	r->name = strdup(r->path);
	return r->name ? 0 : -1;
}

int tsi_root_open_pattern(struct tsi_root *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *pattern = slash ? slash + 1 : path;
	char *folder =
		slash ? strndup(path, (size_t)(pattern - path)) : strdup(".");
	char *name = NULL;
	int err = folder ? tsi_root_open(r, folder) : -1;
	size_t at;

	free(folder);
	if (err)
		return -1;
	at = strlen(r->path);
	name = realloc(r->name, at + strlen(pattern) + 2);
	if (!name) {
		errno = ENOMEM;
		return -1;
	}
	/* The root folder of all is "/" already. */
	if (name[at - 1] != '/')
		name[at++] = '/';
	strcpy(name + at, pattern);
	r->name = name;
	return 0;
}

void tsi_root_close(struct tsi_root *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->given);
	free(r->path);
	free(r->name);
	tsi_root_init(r);
}

const char *tsi_root_path(const struct tsi_root *r)
{
	return r->path;
}

const char *tsi_root_pattern(const struct tsi_root *r)
{
	const char *rest = r->name + strlen(r->path);

	if (!*rest)
		return NULL;
	return *rest == '/' ? rest + 1 : rest;
}

const char *tsi_root_name(const struct tsi_root *r)
{
	return r->name;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool tsi_root_equal(const struct tsi_root *a, const struct tsi_root *b)
{
	struct stat x, y;

	return !fstat(a->fd, &x) && !fstat(b->fd, &y) && is_same(&x, &y);
}

bool tsi_root_replaced(const struct tsi_root *r, uint64_t *now)
{
	struct stat opened, there;
	uint64_t seen[2] = { 0 };

	if (fstat(r->fd, &opened))
		return false;
	if (stat(r->given, &there)) {
		seen[0] = (uint64_t)errno;
	} else {
		if (is_same(&opened, &there))
			return false;
		seen[0] = there.st_ino;
		seen[1] = there.st_dev;
	}
	*now = tsi_hash(seen, sizeof(seen), 0);
	return true;
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
	int fd;

	do
		fd = openat(r->fd, below(path), flags);
	while (fd < 0 && errno == EINTR);
	return fd;
}

int tsi_root_stat(const struct tsi_root *r, const char *path, struct stat *st)
{
	return fstatat(r->fd, below(path), st, 0);
}
