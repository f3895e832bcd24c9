/* SPDX-License-Identifier: MIT */
/*
 * memory.c - a file in memory, as libtiff reads one.
 */
#include "tiff/memory.h"

#include <stdio.h>
#include <string.h>

int64_t tsi_tiff_memory_read(void *handle, void *to, int64_t len)
{
	struct tsi_tiff_memory *m = handle;
	size_t n = m->len - m->pos;

	if (len < 0)
		return -1;
	if (n > (uint64_t)len)
		n = (size_t)len;
	memcpy(to, m->data + m->pos, n);
	m->pos += n;
	return (int64_t)n;
}

int64_t tsi_tiff_memory_write(void *handle, void *from, int64_t len)
{
	(void)handle, (void)from, (void)len;
	return -1;
}

/* A place behind the end is the end to those who read there. */
uint64_t tsi_tiff_memory_seek(void *handle, uint64_t offset, int whence)
{
	struct tsi_tiff_memory *m = handle;

	if (whence == SEEK_CUR)
		offset += m->pos;
	else if (whence == SEEK_END)
		offset += m->len;
	m->pos = offset < m->len ? (size_t)offset : m->len;
	return offset;
}

uint64_t tsi_tiff_memory_size(void *handle)
{
	return ((struct tsi_tiff_memory *)handle)->len;
}

int tsi_tiff_memory_close(void *handle)
{
	(void)handle;
	return 0;
}
