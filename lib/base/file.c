/* SPDX-License-Identifier: MIT */
/*
 * file.c - files: all of what is read and written, the first line of a small
 * one, and which are regular ones.
 */
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

/* Not in the headers of every kernel that we build with. */
#ifndef CONFIGFS_MAGIC
#define CONFIGFS_MAGIC 0x62656570
#endif
#ifndef MQUEUE_MAGIC
#define MQUEUE_MAGIC 0x19800202
#endif
#ifndef FUSE_CTL_MAGIC
#define FUSE_CTL_MAGIC 0x65735543
#endif

/* A call moved n bytes, or failed; false: it is not to be made again. */
static bool is_repeated(ssize_t n, size_t *done)
{
	if (n == 0)
		errno = ENOSPC; /* of a write */
	if (n > 0)
		*done += (size_t)n;
	return n > 0 || errno == EINTR;
}

ssize_t tsi_file_read(int fd, void *to, size_t len)
{
	char *p = to;
	size_t done = 0;
	ssize_t n;

	while (done < len && (n = read(fd, p + done, len - done)) != 0)
		if (!is_repeated(n, &done))
			return -1;
	return (ssize_t)done;
}

ssize_t tsi_file_pread(int fd, void *to, size_t len, uint64_t at)
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

bool tsi_file_write(int fd, const void *from, size_t len)
{
	const char *p = from;
	size_t done = 0;

	while (done < len)
		if (!is_repeated(write(fd, p + done, len - done), &done))
			return false;
	return true;
}

bool tsi_file_pwrite(int fd, const void *from, size_t len, uint64_t at)
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

bool tsi_file_first_line(char *line, size_t n, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int len;
	FILE *f;
	bool ok;

	line[0] = '\0';
	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fgets(line, (int)n, f) != NULL;
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return ok;
}

const char *tsi_file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return NULL;
	case S_IFDIR:
		return "a folder";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	default:
		return "no regular file";
	}
}

bool tsi_file_made_up(struct tsi_fs_seen *seen, dev_t dev, int fd)
{
	static const uint32_t made_up[] = {
		PROC_SUPER_MAGIC,    SYSFS_MAGIC,        CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,      TRACEFS_MAGIC,
		SECURITYFS_MAGIC,    SELINUX_MAGIC,      SMACK_MAGIC,
		BPF_FS_MAGIC,        BINFMTFS_MAGIC,     PSTOREFS_MAGIC,
		EFIVARFS_MAGIC,      DEVPTS_SUPER_MAGIC, CONFIGFS_MAGIC,
		MQUEUE_MAGIC,        FUSE_CTL_MAGIC,
	};
	struct statfs fs;

	if (tsi_file_seen(seen, dev) || fstatfs(fd, &fs))
		return false;
	for (size_t i = 0; i < sizeof(made_up) / sizeof(made_up[0]); i++)
		if ((uint32_t)fs.f_type == made_up[i])
			return true;
	seen->dev = dev;
	seen->known = true;
	return false;
}
