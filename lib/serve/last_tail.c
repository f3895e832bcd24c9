/* SPDX-License-Identifier: MIT */
/*
 * last_tail.c - the tail page of a reader of the producer before.
 */
#include "serve/last_tail.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memfd.h"
#include "ring/tail_page.h"
#include "wire/peer.h"

/* What the kernel calls the pages that tsi_conn_make() makes. */
#define LINK "/memfd:tsock:tsock-tail (deleted)"

/* Anything else is not even opened: it might be a device. */
static bool is_tail_page(int dir, const char *name)
{
	char link[sizeof(LINK) + 1];
	ssize_t n = readlinkat(dir, name, link, sizeof(link));

	return n == sizeof(LINK) - 1 && !memcmp(link, LINK, sizeof(LINK) - 1);
}

/* The page, if it is that reader's; else NULL. */
static void *map_page(int dir, const char *name,
		      const struct tsi_reader_row *row)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = sizeof(struct tsi_tail_page);
	void *page = MAP_FAILED;

	if (fd < 0)
		return NULL;
	if (!tsi_memfd_check(fd, len, TSI_MEM_PEER_WRITES, "a tail page"))
		page = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return NULL;
	if (tsi_tail_page_is(page, row->nonce))
		return page;
	munmap(page, len);
	return NULL;
}

void tsi_last_tail_find(struct tsi_last_tail *l,
			const struct tsi_reader_row *row)
{
	char path[32];
	const struct dirent *e;
	DIR *dir;

	l->page = NULL;
	if (!row->pid || !row->born || tsi_peer_ended(row->pid, row->born))
		return;
	snprintf(path, sizeof(path), "/proc/%u/fd", row->pid);
	dir = opendir(path);
	while (dir && !l->page && (e = readdir(dir)))
		if (is_tail_page(dirfd(dir), e->d_name))
			l->page = map_page(dirfd(dir), e->d_name, row);
	if (dir)
		closedir(dir);
}

uint64_t tsi_last_tail_read(const struct tsi_last_tail *l)
{
	return tsi_tail_page_tail(l->page);
}

void tsi_last_tail_close(struct tsi_last_tail *l)
{
	if (l->page)
		munmap(l->page, sizeof(struct tsi_tail_page));
	l->page = NULL;
}
