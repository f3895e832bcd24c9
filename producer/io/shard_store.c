/* SPDX-License-Identifier: MIT */
/*
 * shard_store.c - a local folder with whole copies of large files.
 *
 * The file .lock is locked while room is made and a copy is begun.  A copy that
 * is being written is locked by its writer, so that one whose writer is dead is
 * known, and removed.
 */
#include "io/shard_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"

#define LOCK ".lock"
#define COPY ".shard"
#define PART ".part" /* behind a copy's name, while it is written */
#define CHUNK ((size_t)1 << 20)

struct tsi_shard_store {
	int fd;
	uint64_t bytes;
	uint8_t *chunk;
	char path[];
};

struct copy {
	char name[TSI_SHARD_NAME];
	uint64_t bytes;
	int64_t used_ns;
};

struct folder {
	struct copy *copy;
	size_t n, cap;
	uint64_t bytes; /* of all of them, and of those that are written */
};

static int read_folder(const struct tsi_shard_store *s, struct folder *f);

/* What the disk has free or copies have, but a twentieth of the disk. */
static int use_disk(struct tsi_shard_store *s)
{
	struct folder f = { .n = 0 };
	struct statvfs v;
	uint64_t free_bytes, twentieth;
	int err = read_folder(s, &f);

	free(f.copy);
	if (err)
		return err;
	if (fstatvfs(s->fd, &v))
		return tsi_err_sys("ask for the disk of %s", s->path);
	free_bytes = (uint64_t)v.f_bavail * v.f_frsize + f.bytes;
	twentieth = (uint64_t)v.f_blocks * v.f_frsize / 20;
	s->bytes = free_bytes > twentieth ? free_bytes - twentieth : 0;
	return 0;
}

int tsi_shard_store_open(const char *folder, uint64_t bytes,
			 struct tsi_shard_store **out)
{
	size_t len = strlen(folder) + 1;
	struct tsi_shard_store *s = malloc(sizeof(*s) + len);
	int err = 0;

	if (!s)
		return tsi_err(TSOCK_ENOMEM, "no memory for a cache of shards");
	s->bytes = bytes;
	memcpy(s->path, folder, len);
	s->chunk = malloc(CHUNK);
	if (mkdir(folder, 0777) && errno != EEXIST)
		err = tsi_err_sys("make the folder %s", folder);
	s->fd = err ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!err && s->fd < 0)
		err = tsi_err_sys("open the folder %s", folder);
	if (!err && faccessat(s->fd, ".", R_OK | W_OK | X_OK, AT_EACCESS))
		err = tsi_err_sys("write to the folder %s", folder);
	if (!err && !s->chunk)
		err = tsi_err(TSOCK_ENOMEM, "no memory for a cache of shards");
	if (!err && !bytes)
		err = use_disk(s);
	if (err) {
		tsi_shard_store_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void tsi_shard_store_close(struct tsi_shard_store *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->chunk);
	free(s);
}

int tsi_shard_store_fd(const struct tsi_shard_store *s)
{
	return s->fd;
}

void tsi_shard_store_touch(const struct tsi_shard_store *s, const char *name)
{
	/* If that fails, the copy seems older than it is. */
	(void)!utimensat(s->fd, name, NULL, 0);
}

/* ---- names ---- */

static int64_t mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && mtime_ns(a) == mtime_ns(b);
}

static uint64_t hash_of(const struct tsi_shard_source *of,
			const struct stat *st, uint64_t seed)
{
	const int64_t what[2] = { (int64_t)st->st_size, mtime_ns(st) };

	/* With their NULs: a/b in c isn't b in c/a. */
	seed = tsi_hash(of->root, strlen(of->root) + 1, seed);
	seed = tsi_hash(of->path, strlen(of->path) + 1, seed);
	return tsi_hash(what, sizeof(what), seed);
}

static void name_copy(const struct tsi_shard_source *of, const struct stat *st,
		      char to[TSI_SHARD_NAME])
{
	snprintf(to, TSI_SHARD_NAME, "%016" PRIx64 "%016" PRIx64 COPY,
		 hash_of(of, st, 1), hash_of(of, st, 2));
}

static bool ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

/* ---- room ---- */

/* One that nobody writes is left of a process that is dead. */
static void remove_dead(const struct tsi_shard_store *s, const char *name)
{
	int fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(s->fd, name, 0);
	close(fd);
}

static int add_copy(struct folder *f, const char *name, const struct stat *st)
{
	if (f->n == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 64;
		struct copy *more = realloc(f->copy, cap * sizeof(*more));

		if (!more)
			return tsi_err(TSOCK_ENOMEM,
				       "no memory for a cache of shards");
		f->copy = more;
		f->cap = cap;
	}
	snprintf(f->copy[f->n].name, TSI_SHARD_NAME, "%.47s", name);
	f->copy[f->n].bytes = (uint64_t)st->st_size;
	f->copy[f->n++].used_ns = mtime_ns(st);
	return 0;
}

/* Look at one entry; what isn't the store's own is left alone. */
static int take_entry(const struct tsi_shard_store *s, const char *name,
		      struct folder *f)
{
	const bool part = ends_in(name, COPY PART);
	struct stat st;

	if (!part && !ends_in(name, COPY))
		return 0;
	if (part)
		remove_dead(s, name);
	if (strlen(name) >= TSI_SHARD_NAME ||
	    fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return 0;
	f->bytes += (uint64_t)st.st_size;
	return part ? 0 : add_copy(f, name, &st);
}

static int read_folder(const struct tsi_shard_store *s, struct folder *f)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int err = 0;

	if (!d) {
		err = tsi_err_sys("read the folder %s", s->path);
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (e = readdir(d)))
		err = take_entry(s, e->d_name, f);
	closedir(d);
	return err;
}

static int by_use(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	return (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns);
}

/* Displace copies until there is room for so many bytes more. */
static enum tsi_shard_fetched displace(const struct tsi_shard_store *s,
				       struct folder *f, uint64_t bytes)
{
	const int64_t now = (int64_t)time(NULL);

	/* No array is there before the first copy. */
	if (f->n)
		qsort(f->copy, f->n, sizeof(*f->copy), by_use);
	for (size_t i = 0; f->bytes + bytes > s->bytes; i++) {
		if (i == f->n ||
		    f->copy[i].used_ns / 1000000000 > now - TSI_SHARD_KEEP_S)
			return TSI_SHARD_FULL;
		if (!unlinkat(s->fd, f->copy[i].name, 0))
			f->bytes -= f->copy[i].bytes;
	}
	return TSI_SHARD_THERE;
}

static enum tsi_shard_fetched make_room(const struct tsi_shard_store *s,
					uint64_t bytes)
{
	struct folder f = { .n = 0 };
	enum tsi_shard_fetched r = TSI_SHARD_BROKEN;

	if (!read_folder(s, &f))
		r = displace(s, &f, bytes);
	free(f.copy);
	return r;
}

/* ---- a copy ---- */

/* A file that is being copied. */
struct copying {
	int from, to;
	struct stat st; /* of the source, as it was opened */
	char *name;
	char part[TSI_SHARD_NAME + sizeof(PART)];
};

static enum tsi_shard_fetched broken(const struct tsi_shard_store *s)
{
	tsi_err_sys("write to the folder %s", s->path);
	return TSI_SHARD_BROKEN;
}

static bool is_there(const struct tsi_shard_store *s, const struct copying *c)
{
	struct stat st;

	return !fstatat(s->fd, c->name, &st, 0) && st.st_size == c->st.st_size;
}

/* Room on the disk too, where the file system can say so beforehand. */
static bool reserve(int fd, off_t bytes)
{
	if (!fallocate(fd, 0, 0, bytes))
		return true;
	return errno == EOPNOTSUPP && !ftruncate(fd, bytes);
}

/* With the folder locked: the file to write to, which is locked for it. */
static enum tsi_shard_fetched begin_part(const struct tsi_shard_store *s,
					 struct copying *c)
{
	struct stat mine, there;

	c->to = openat(s->fd, c->part, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (c->to < 0)
		return broken(s);
	if (flock(c->to, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? TSI_SHARD_LATER : broken(s);
	/* Its writer may have renamed it before it was locked here. */
	if (fstat(c->to, &mine) || fstatat(s->fd, c->part, &there, 0) ||
	    mine.st_ino != there.st_ino)
		return TSI_SHARD_LATER;
	if (reserve(c->to, c->st.st_size))
		return TSI_SHARD_THERE;
	broken(s);
	unlinkat(s->fd, c->part, 0);
	return TSI_SHARD_BROKEN;
}

static enum tsi_shard_fetched begin_copy(const struct tsi_shard_store *s,
					 struct copying *c)
{
	int lock = openat(s->fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	enum tsi_shard_fetched r;

	if (lock < 0 || flock(lock, LOCK_EX))
		r = broken(s);
	else
		r = make_room(s, (uint64_t)c->st.st_size);
	if (r == TSI_SHARD_THERE)
		r = begin_part(s, c);
	if (lock >= 0)
		close(lock);
	return r;
}

/* All bytes, from the source as it was opened. */
static enum tsi_shard_fetched write_all(const struct tsi_shard_store *s,
					const struct copying *c,
					const atomic_bool *stop)
{
	uint64_t size = (uint64_t)c->st.st_size, at = 0;
	struct stat now;

	while (at < size) {
		size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;

		if (atomic_load(stop))
			return TSI_SHARD_LATER;
		if (tsi_file_pread(c->from, s->chunk, n, at) != (ssize_t)n)
			return TSI_SHARD_NOT;
		if (!tsi_file_pwrite(c->to, s->chunk, n, at))
			return broken(s);
		at += n;
	}
	if (fstat(c->from, &now) || !same_file(&now, &c->st))
		return TSI_SHARD_NOT;
	return TSI_SHARD_THERE;
}

static enum tsi_shard_fetched copy_file(const struct tsi_shard_store *s,
					struct copying *c,
					const atomic_bool *stop)
{
	enum tsi_shard_fetched r = begin_copy(s, c);

	if (r == TSI_SHARD_THERE) {
		r = write_all(s, c, stop);
		/* Its name says that it is whole: after a power cut, too. */
		if (r == TSI_SHARD_THERE &&
		    (fdatasync(c->to) ||
		     renameat(s->fd, c->part, s->fd, c->name)))
			r = broken(s);
		if (r != TSI_SHARD_THERE)
			unlinkat(s->fd, c->part, 0);
	}
	if (c->to >= 0)
		close(c->to);
	return r;
}

enum tsi_shard_fetched tsi_shard_store_fetch(struct tsi_shard_store *s,
					     const struct tsi_shard_source *of,
					     const atomic_bool *stop,
					     char name[TSI_SHARD_NAME])
{
	struct copying c = { .to = -1, .name = name };
	enum tsi_shard_fetched r = TSI_SHARD_NOT;

	c.from = openat(of->dirfd, of->path,
			O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (c.from < 0)
		return TSI_SHARD_NOT;
	if (!fstat(c.from, &c.st) && S_ISREG(c.st.st_mode) && c.st.st_size) {
		name_copy(of, &c.st, name);
		snprintf(c.part, sizeof(c.part), "%s" PART, name);
		if (is_there(s, &c))
			r = TSI_SHARD_THERE;
		else if ((uint64_t)c.st.st_size <= s->bytes)
			r = copy_file(s, &c, stop);
	}
	close(c.from);
	if (r == TSI_SHARD_THERE)
		tsi_shard_store_touch(s, name);
	return r;
}
