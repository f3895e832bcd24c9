/* SPDX-License-Identifier: MIT */
/*
 * memory.h - a file in memory, as libtiff reads one.
 */
#ifndef TSI_TIFF_MEMORY_H
#define TSI_TIFF_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct tsi_tiff_memory {
	const uint8_t *data;
	size_t len, pos;
};

/* What TIFFClientOpen() is given; the handle is a struct tsi_tiff_memory. */
int64_t tsi_tiff_memory_read(void *handle, void *to, int64_t len);
int64_t tsi_tiff_memory_write(void *handle, void *from, int64_t len);
uint64_t tsi_tiff_memory_seek(void *handle, uint64_t offset, int whence);
uint64_t tsi_tiff_memory_size(void *handle);
int tsi_tiff_memory_close(void *handle);

#endif
