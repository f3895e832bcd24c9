/* SPDX-License-Identifier: MIT */
/*
 * disk.h - what kind of disk a file is on.
 */
#ifndef TSI_IO_DISK_H
#define TSI_IO_DISK_H

#include <stdint.h>
#include <sys/types.h>

enum tsi_disk {
	TSI_DISK_OTHER, /* an SSD, memory, or not known */
	TSI_DISK_ROTATES,
	TSI_DISK_NETWORK,
};

/*
 * Of this open file or folder.  Disks that a virtual machine has by virtio call
 * themselves rotating ones whatever they are, and are not known.  Nor are those
 * of file systems that span several disks (btrfs, ZFS, overlayfs).
 */
enum tsi_disk tsi_disk_of(int fd);

/* Of these numbers, by the sysfs that is mounted at sys: "/sys". */
enum tsi_disk tsi_disk_of_device(dev_t dev, const char *sys);

/* Of statfs()'s f_type. */
enum tsi_disk tsi_disk_of_type(uint32_t type);

#endif
