/* SPDX-License-Identifier: MIT */
/*
 * block.c - the memory of a table, which other processes can map.
 *
 * Where the system has no memfds, or they can't be sealed, a block is private
 * memory.
 */
#include "data/block.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Newer than the oldest C library that this builds on. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define NAME "tsock:table"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* Beyond this limit the kernel sends a signal that kills by default. */
static bool within_file_size(size_t len)
{
	struct rlimit r;

	return getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY ||
	       len <= r.rlim_cur;
}

/* Every page is there before it is mapped: a job must not meet a hole. */
static void *map_memory(int fd, size_t len)
{
	void *at;

	while (fallocate(fd, 0, 0, (off_t)len))
		if (errno != EINTR)
			return NULL;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (!fcntl(fd, F_ADD_SEALS, SEALS))
		return at;
	munmap(at, len);
	return NULL;
}

static void *alloc_shared(size_t len, struct tsi_block *how)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	void *at;
	int fd;

	if (!within_file_size(len))
		return NULL;
	/* Some systems demand this flag, and before Linux 6.3 none knew it. */
	fd = memfd_create(NAME, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(NAME, flags);
	if (fd < 0)
		return NULL;
	at = map_memory(fd, len);
	if (!at)
		close(fd);
	else
		*how = (struct tsi_block){ .len = len, .fd = fd };
	return at;
}

void *tsi_block_alloc(size_t len, struct tsi_block *how)
{
	void *at = len >= TSI_BLOCK_SHARED ? alloc_shared(len, how) : NULL;

	if (at)
		return at;
	*how = (struct tsi_block){ .len = 0 };
	return malloc(len);
}

void tsi_block_free(void *at, const struct tsi_block *how)
{
	if (!how->len) {
		free(at);
		return;
	}
	munmap(at, how->len);
	close(how->fd);
}
