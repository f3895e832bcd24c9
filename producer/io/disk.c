/* SPDX-License-Identifier: MIT */
/*
 * disk.c - what kind of disk a file is on.
 */
#include "io/disk.h"

#include "base/file.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The first character of a file below the device's folder, or 0. */
static char first_of(const char *sys, dev_t dev, const char *name)
{
	char line[16];

	tsi_file_first_line(line, sizeof(line), "%s/dev/block/%u:%u/%s", sys,
			    major(dev), minor(dev), name);
	return line[0];
}

static bool is_virtio(const char *sys, dev_t dev, const char *driver)
{
	char path[PATH_MAX], to[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/dev/block/%u:%u/%s", sys, major(dev),
		 minor(dev), driver);
	n = readlink(path, to, sizeof(to) - 1);
	if (n <= 0)
		return false;
	to[n] = 0;
	name = strrchr(to, '/');
	return !strcmp(name ? name + 1 : to, "virtio_blk");
}

enum tsi_disk tsi_disk_of_device(dev_t dev, const char *sys)
{
	/* A disk has the file; a partition's folder is in its disk's. */
	char is = first_of(sys, dev, "queue/rotational");
	const char *driver = "device/driver";

	if (!is) {
		is = first_of(sys, dev, "../queue/rotational");
		driver = "../device/driver";
	}
	return is == '1' && !is_virtio(sys, dev, driver) ? TSI_DISK_ROTATES
							 : TSI_DISK_OTHER;
}

enum tsi_disk tsi_disk_of_type(uint32_t type)
{
	static const uint32_t network[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB2 */
		0x00c36400, /* Ceph */
		0x0bd00bd0, /* Lustre */
		0x65735546, /* FUSE: sshfs, s3fs, GlusterFS, ... */
		0x01021997, /* 9P */
		0x5346414f, /* AFS */
		0x6b414653, /* AFS, the kernel's */
		0x47504653, /* GPFS */
		0x19830326, /* BeeGFS */
		0xaad7aaea, /* PanFS */
	};

	for (size_t i = 0; i < sizeof(network) / sizeof(network[0]); i++)
		if (type == network[i])
			return TSI_DISK_NETWORK;
	return TSI_DISK_OTHER;
}

enum tsi_disk tsi_disk_of(int fd)
{
	struct statfs fs;
	struct stat st;
	enum tsi_disk kind = TSI_DISK_OTHER;

	if (!fstatfs(fd, &fs))
		kind = tsi_disk_of_type((uint32_t)fs.f_type);
	if (kind == TSI_DISK_OTHER && !fstat(fd, &st))
		kind = tsi_disk_of_device(st.st_dev, "/sys");
	return kind;
}
