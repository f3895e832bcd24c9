/* SPDX-License-Identifier: MIT */
/*
 * files.c - files of many samples, which stay open.
 *
 * A file that is there is taken and given back with no lock: its users are
 * counted in a word that also says whether the file was forgotten, and the
 * lists are changed so that others can go through them meanwhile.  A file that
 * was forgotten stays in memory, without its descriptor, since somebody may be
 * looking at it.
 */
#include "io/files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"

#define BUCKETS 1024

/* Bits of users.  FORGOTTEN: in no bucket any more; the last user closes it. */
#define FORGOTTEN 1u
#define USER 2u

typedef _Atomic(struct tsi_io_file *) list;

struct tsi_io_file {
	list next;                /* of its bucket */
	struct tsi_io_file *dead; /* the next one that was forgotten */
	int dirfd;
	int fd;
	size_t align;
	dev_t dev;
	ino_t ino;
	_Atomic unsigned users;
	_Atomic int64_t looked_ms;
	char path[];
};

struct tsi_io_files {
	unsigned most;
	int64_t check_ms;
	pthread_mutex_t lock; /* of who changes the lists */
	unsigned count;
	struct tsi_io_file *dead;
	list bucket[BUCKETS];
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

void tsi_io_files_destroy(struct tsi_io_files *f)
{
	struct tsi_io_file *file;

	if (!f)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		while ((file = atomic_load(&f->bucket[i]))) {
			atomic_store(&f->bucket[i], atomic_load(&file->next));
			close(file->fd);
			free(file);
		}
	while ((file = f->dead)) {
		f->dead = file->dead;
		free(file);
	}
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* ---- lists ---- */

static list *bucket_of(struct tsi_io_files *f, const char *path)
{
	return &f->bucket[tsi_hash(path, strlen(path), 0) % BUCKETS];
}

static struct tsi_io_file *first_of(list *at)
{
	/* Acquire pairs with tsi_io_files_keep(): what the file is. */
	return atomic_load_explicit(at, memory_order_acquire);
}

static bool is_of(const struct tsi_io_file *file, int dirfd, const char *path)
{
	return file->dirfd == dirfd && !strcmp(file->path, path);
}

/* With the lock: where a file of this path is, or would be. */
static list *find_file(struct tsi_io_files *f, int dirfd, const char *path)
{
	list *at = bucket_of(f, path);

	while (first_of(at) && !is_of(first_of(at), dirfd, path))
		at = &first_of(at)->next;
	return at;
}

/* ---- users ---- */

/* False: it was forgotten. */
static bool use(struct tsi_io_file *file)
{
	/* Relaxed: what the file is was seen when it was found. */
	unsigned old = atomic_load_explicit(&file->users, memory_order_relaxed);

	do {
		if (old & FORGOTTEN)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&file->users, &old, old + USER, memory_order_relaxed,
		memory_order_relaxed));
	return true;
}

static void forget_file(struct tsi_io_files *f, struct tsi_io_file *file)
{
	pthread_mutex_lock(&f->lock);
	/* Relaxed: the lists are the lock's, and its user still has it. */
	if (!(atomic_fetch_or_explicit(&file->users, FORGOTTEN,
				       memory_order_relaxed) &
	      FORGOTTEN)) {
		/* A thread that is at this file still finds those behind it.
		 * Release pairs with first_of(). */
		atomic_store_explicit(find_file(f, file->dirfd, file->path),
				      first_of(&file->next),
				      memory_order_release);
		file->dead = f->dead;
		f->dead = file;
		f->count--;
	}
	pthread_mutex_unlock(&f->lock);
}

/* Does the path still lead to this file? */
static bool is_there(const struct tsi_io_file *file)
{
	struct stat st;

	return !fstatat(file->dirfd, file->path, &st, 0) &&
	       st.st_dev == file->dev && st.st_ino == file->ino;
}

/* Is it time to look?  For one thread it is. */
static bool is_due(const struct tsi_io_files *f, struct tsi_io_file *file)
{
	int64_t now = tsi_now_ms();
	/* Relaxed: orders nothing. */
	int64_t looked =
		atomic_load_explicit(&file->looked_ms, memory_order_relaxed);

	return now - looked >= f->check_ms &&
	       atomic_compare_exchange_strong(&file->looked_ms, &looked, now);
}

struct tsi_io_file *tsi_io_files_take(struct tsi_io_files *f, int dirfd,
				      const char *path)
{
	struct tsi_io_file *file = first_of(bucket_of(f, path));

	while (file && !(is_of(file, dirfd, path) && use(file)))
		file = first_of(&file->next);
	if (!file || !is_due(f, file) || is_there(file))
		return file;
	tsi_io_files_give(f, file, true);
	return NULL;
}

struct tsi_io_file *tsi_io_files_keep(struct tsi_io_files *f, int dirfd,
				      const char *path, int fd, size_t align)
{
	size_t len = strlen(path) + 1;
	struct tsi_io_file *file;
	struct stat st;
	list *at;

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
				      .users = USER,
				      .looked_ms = tsi_now_ms() };
	memcpy(file->path, path, len);
	pthread_mutex_lock(&f->lock);
	at = find_file(f, dirfd, path);
	if (first_of(at) || f->count == f->most) {
		free(file);
		file = NULL;
	} else {
		/* Release pairs with first_of(). */
		atomic_store_explicit(at, file, memory_order_release);
		f->count++;
	}
	pthread_mutex_unlock(&f->lock);
	return file;
}

void tsi_io_files_give(struct tsi_io_files *f, struct tsi_io_file *file,
		       bool forget)
{
	if (forget)
		forget_file(f, file);
	/* Release, and acquire for the last one: all have read what they read
	 * before the file is closed. */
	if (atomic_fetch_sub_explicit(&file->users, USER,
				      memory_order_acq_rel) ==
	    (USER | FORGOTTEN))
		close(file->fd);
}

int tsi_io_file_fd(const struct tsi_io_file *file)
{
	return file->fd;
}

size_t tsi_io_file_align(const struct tsi_io_file *file)
{
	return file->align;
}
