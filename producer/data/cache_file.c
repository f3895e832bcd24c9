/* SPDX-License-Identifier: MIT */
/*
 * cache_file.c - files that are kept beside a data set's scan.
 *
 * The name is XXH3 of the paths, and the suffix.
 */
#include "data/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

/* The folder of caches; false when there is to be none. */
static bool folder(const char *dir, char *out, size_t len)
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int n;

	if (dir)
		n = snprintf(out, len, "%s", dir);
	else if (xdg && *xdg == '/')
		n = snprintf(out, len, "%s/tsock", xdg);
	else if (home && *home == '/')
		n = snprintf(out, len, "%s/.cache/tsock", home);
	else
		return false;
	return n > 0 && (size_t)n < len;
}

bool tsi_cache_file_path(const struct tsi_cache_name *name, char *out,
			 size_t len)
{
	uint64_t key = tsi_hash(name->root, strlen(name->root), 0);
	char dir[PATH_MAX];
	int n;

	if (!folder(name->dir, dir, sizeof(dir)))
		return false;
	if (name->select)
		key = tsi_hash(name->select, strlen(name->select), key);
	n = snprintf(out, len, "%s/%016" PRIx64 "%s", dir, key, name->suffix);
	return n > 0 && (size_t)n < len;
}

int tsi_cache_file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return -1;
}

/* mkdir -p of what stands before the last slash. */
static void make_folders(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
}

bool tsi_cache_file_replace(const char *path, bool (*write)(void *arg, int fd),
			    void *arg)
{
	char tmp[PATH_MAX];
	int n = snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path);
	int fd, why;
	bool ok;

	if (n < 0 || (size_t)n >= sizeof(tmp)) {
		errno = ENAMETOOLONG;
		return false;
	}
	make_folders(tmp);
	fd = mkostemp(tmp, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		return false;
	ok = write(arg, fd);
	why = errno;
	if (close(fd) && ok) {
		ok = false;
		why = errno;
	}
	if (ok && !rename(tmp, path))
		return true;
	if (ok)
		why = errno;
	unlink(tmp);
	errno = why;
	return false;
}
