/* SPDX-License-Identifier: MIT */
/*
 * files.c - files of many samples, which stay open.
 */
#include "io/files.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"

#define BUCKETS 1024

struct tsi_io_file {
	struct tsi_io_file *next; /* of its bucket */
	int dirfd;
	int fd;
	size_t align;
	dev_t dev;
	ino_t ino;
	/* Under the lock. */
	unsigned users;
	bool forgotten; /* in no bucket any more; the last user closes it */
	int64_t looked_ms;
	char path[];
};

struct tsi_io_files {
	unsigned most;
	int64_t check_ms;
	pthread_mutex_t lock;
	unsigned count;
	struct tsi_io_file *bucket[BUCKETS];
};

int tsi_io_files_create(unsigned most, int64_t check_ms,
			struct tsi_io_files **out)
{
	struct tsi_io_files *f = calloc(1, sizeof(*f));

	if (!f)
		return tsi_err(TSOCK_ENOMEM, "no memory for open files");
	f->most = most;
	f->check_ms = check_ms;
	pthread_mutex_init(&f->lock, NULL);
	*out = f;
	return 0;
}

static void close_file(struct tsi_io_file *file)
{
	close(file->fd);
	free(file);
}

void tsi_io_files_destroy(struct tsi_io_files *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		while (f->bucket[i]) {
			struct tsi_io_file *file = f->bucket[i];

			f->bucket[i] = file->next;
			close_file(file);
		}
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* Where a file of this path is, or would be. */
static struct tsi_io_file **find(struct tsi_io_files *f, int dirfd,
				 const char *path)
{
	uint64_t key = tsi_hash(path, strlen(path), 0);
	struct tsi_io_file **at = &f->bucket[key % BUCKETS];

	while (*at && ((*at)->dirfd != dirfd || strcmp((*at)->path, path)))
		at = &(*at)->next;
	return at;
}

/* Does the path still lead to this file? */
static bool is_there(const struct tsi_io_file *file)
{
	struct stat st;

	return !fstatat(file->dirfd, file->path, &st, 0) &&
	       st.st_dev == file->dev && st.st_ino == file->ino;
}

struct tsi_io_file *tsi_io_files_take(struct tsi_io_files *f, int dirfd,
				      const char *path)
{
	int64_t now = tsi_now_ms();
	struct tsi_io_file *file;
	bool old = false;

	pthread_mutex_lock(&f->lock);
	file = *find(f, dirfd, path);
	if (file) {
		file->users++;
		old = now - file->looked_ms >= f->check_ms;
		if (old)
			file->looked_ms = now;
	}
	pthread_mutex_unlock(&f->lock);
	/* Without the lock: on a network this may take a while. */
	if (!old || is_there(file))
		return file;
	tsi_io_files_give(f, file, true);
	return NULL;
}

struct tsi_io_file *tsi_io_files_keep(struct tsi_io_files *f, int dirfd,
				      const char *path, int fd, size_t align)
{
	size_t len = strlen(path) + 1;
	struct tsi_io_file *file, **at;
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	file = malloc(sizeof(*file) + len);
	if (!file)
		return NULL;
	*file = (struct tsi_io_file){ .dirfd = dirfd,
				      .fd = fd,
				      .align = align,
				      .dev = st.st_dev,
				      .ino = st.st_ino,
				      .users = 1,
				      .looked_ms = tsi_now_ms() };
	memcpy(file->path, path, len);
	pthread_mutex_lock(&f->lock);
	at = find(f, dirfd, path);
	if (*at || f->count == f->most) {
		free(file);
		file = NULL;
	} else {
		*at = file;
		f->count++;
	}
	pthread_mutex_unlock(&f->lock);
	return file;
}

void tsi_io_files_give(struct tsi_io_files *f, struct tsi_io_file *file,
		       bool forget)
{
	bool last;

	pthread_mutex_lock(&f->lock);
	if (forget && !file->forgotten) {
		*find(f, file->dirfd, file->path) = file->next;
		file->forgotten = true;
		f->count--;
	}
	last = --file->users == 0 && file->forgotten;
	pthread_mutex_unlock(&f->lock);
	if (last)
		close_file(file);
}

int tsi_io_file_fd(const struct tsi_io_file *file)
{
	return file->fd;
}

size_t tsi_io_file_align(const struct tsi_io_file *file)
{
	return file->align;
}
