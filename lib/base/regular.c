/* SPDX-License-Identifier: MIT */
/*
 * regular.c - is a file a regular one, whose reading neither blocks nor
 * consumes?
 */
#include "base/regular.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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

const char *tsi_regular_kind(mode_t mode)
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

bool tsi_regular_made_up(struct tsi_fs_seen *seen, dev_t dev, int fd)
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

	if (tsi_regular_seen(seen, dev) || fstatfs(fd, &fs))
		return false;
	for (size_t i = 0; i < sizeof(made_up) / sizeof(made_up[0]); i++)
		if ((uint32_t)fs.f_type == made_up[i])
			return true;
	seen->dev = dev;
	seen->known = true;
	return false;
}
