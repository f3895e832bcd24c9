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
 * The disk of an open file or folder.  It is not known for virtio disks, which
 * say that they rotate whatever they are, nor for file systems that span several
 * disks (btrfs, ZFS, overlayfs).
 */
enum tsi_disk tsi_disk_of(int fd);

/* The disk of a device number, by the sysfs mounted at sys: "/sys". */
enum tsi_disk tsi_disk_of_device(dev_t dev, const char *sys);

/* The kind of disk that statfs()'s f_type means. */
enum tsi_disk tsi_disk_of_type(uint32_t type);

#endif
