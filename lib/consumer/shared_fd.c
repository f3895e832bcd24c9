/* SPDX-License-Identifier: MIT */
/*
 * shared_fd.c - one descriptor for all handles that have the same file.
 *
 * Descriptors of one file have its number, on one file system.  Not so those
 * without a file, such as an eventfd, which all have the same one; and before
 * Linux 6.9 a pidfd is one of those.
 */
#include "consumer/shared_fd.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MOST 512
#define ANON_INODES 0x09041934 /* the file system of those without a file */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
	dev_t dev;
	ino_t ino;
	int fd;
	unsigned users; /* 0: not in use */
} shared[MOST];

static void forget_shared(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(shared, 0, sizeof(shared));
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_shared);
}

/* Is the file's number its own? */
static bool is_file(int fd, struct stat *st)
{
	struct statfs fs;

	return fd >= 0 && !fstat(fd, st) && !fstatfs(fd, &fs) &&
	       fs.f_type != ANON_INODES;
}

int tsi_shared_fd(int fd)
{
	unsigned i, unused = MOST;
	struct stat st;

	if (!is_file(fd, &st))
		return fd;
	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&lock);
	for (i = 0; i < MOST; i++) {
		if (!shared[i].users)
			unused = i;
		else if (shared[i].ino == st.st_ino &&
			 shared[i].dev == st.st_dev)
			break;
	}
	if (i < MOST) {
		shared[i].users++;
		close(fd);
		fd = shared[i].fd;
	} else if (unused < MOST) {
		shared[unused].dev = st.st_dev;
		shared[unused].ino = st.st_ino;
		shared[unused].fd = fd;
		shared[unused].users = 1;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

void tsi_shared_fd_close(int fd)
{
	bool last = true;

	if (fd < 0)
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < MOST; i++)
		if (shared[i].users && shared[i].fd == fd)
			last = !--shared[i].users;
	if (last)
		close(fd);
	pthread_mutex_unlock(&lock);
}
