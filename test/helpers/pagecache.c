/* SPDX-License-Identifier: MIT */
/*
 * pagecache.c - how much of files is in the page cache.
 *
 *   pagecache drop FILE...    write them to the disk, and take them out of it
 *   pagecache count FILE...   print how many of their pages are in it, and how
 *                             many they have
 *   pagecache direct FILE...  exit 0 if they can be read past it
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *path)
{
	perror(path);
	exit(1);
}

static void drop(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		die(path);
	close(fd);
}

static void count(const char *path, size_t *cached, size_t *all)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char *in;
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	pages = ((size_t)st.st_size + page - 1) / page;
	in = calloc(pages + 1, 1);
	at = pages ? mmap(NULL, pages * page, PROT_READ, MAP_SHARED, fd, 0)
		   : NULL;
	if (!in || at == MAP_FAILED || (pages && mincore(at, pages * page, in)))
		die(path);
	for (size_t i = 0; i < pages; i++)
		*cached += in[i] & 1;
	*all += pages;
	if (pages)
		munmap(at, pages * page);
	free(in);
	close(fd);
}

/* Opening says less than reading. */
static void try_direct(const char *path)
{
	void *to = aligned_alloc(4096, 4096);
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);

	if (!to || fd < 0 || pread(fd, to, 4096, 0) < 0)
		die(path);
	free(to);
	close(fd);
}

int main(int argc, char **argv)
{
	size_t cached = 0, all = 0;

	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[1], "drop"))
			drop(argv[i]);
		else if (!strcmp(argv[1], "count"))
			count(argv[i], &cached, &all);
		else if (!strcmp(argv[1], "direct"))
			try_direct(argv[i]);
		else
			return 2;
	}
	if (argc > 1 && !strcmp(argv[1], "count"))
		printf("%zu %zu\n", cached, all);
	return argc < 2 ? 2 : 0;
}
