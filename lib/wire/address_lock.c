/* SPDX-License-Identifier: MIT */
/*
 * address_lock.c - one process at a time serves a stream's name.
 *
 * A socket is removed only while the name is locked.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "wire/address.h"

/*
 * The names that this process has locked.  A record lock doesn't exclude the
 * process that holds it, and closing any descriptor of the file unlocks it; so
 * this list is searched before the file is opened.  In a forked child the
 * parent's entries don't count.
 */
struct entry {
	struct entry *next;
	pid_t pid;
	dev_t dev; /* of the folder */
	ino_t ino;
	int fd;
	bool reserved; /* it is to be taken over */
	bool kept;     /* it will be reserved again: tsi_address_keep() */
	char name[64];
};
static struct entry *entries;
static pthread_mutex_t entries_mutex = PTHREAD_MUTEX_INITIALIZER;

/* What was reserved last, for a signal handler; of is 0 where that was given
 * up. */
static struct {
	_Atomic pid_t of;
	struct tsi_address address;
	int fd;
} reserved;

/* With the mutex held: has this process locked name in that folder, in an entry
 * other than but? */
static bool is_locked(const struct stat *folder, const char *name,
		      const struct entry *but)
{
	for (struct entry *e = entries; e; e = e->next) {
		if (e != but && e->pid == getpid() &&
		    e->dev == folder->st_dev && e->ino == folder->st_ino &&
		    !strcmp(e->name, name))
			return true;
	}
	return false;
}

static int err_served(const char *name, long pid)
{
	return tsi_err(TSOCK_EEXIST,
		       "stream %s is already served by process %ld", name, pid);
}

/* Another process holds the lock: name it, or return 0 if the lock is free. */
static int err_locked(const struct tsi_address *a, int fd)
{
	struct flock who = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (errno != EACCES && errno != EAGAIN)
		return tsi_err_sys("lock %s", a->lock);
	if (fcntl(fd, F_GETLK, &who))
		return tsi_err_sys("look who locks %s", a->lock);
	return who.l_type == F_UNLCK ? 0 : err_served(a->name, who.l_pid);
}

/* Does another process lock the file at that path?  See address.h for pid. */
static bool is_locked_elsewhere(const char *path, long *pid)
{
	struct flock who = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd;
	bool locked;

	do
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return false;
	locked = !fcntl(fd, F_GETLK, &who) && who.l_type != F_UNLCK;
	close(fd);
	if (locked)
		*pid = who.l_pid;
	return locked;
}

/* People read it; no program of ours does.  A short write is a full disk. */
static int write_pid(int fd)
{
	char pid[16];
	ssize_t n, len;

	len = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	do
		n = ftruncate(fd, 0) ? -1 : pwrite(fd, pid, (size_t)len, 0);
	while (n < 0 && errno == EINTR);
	if (n >= 0 && n < len)
		errno = ENOSPC;
	return n == len ? 0 : -1;
}

/*
 * Lock the file that is at the path now.  A producer that ends unlinks the file
 * while it holds the lock, so a lock on a file that isn't at the path any more
 * is worthless: try again with the new file.
 */
static int lock_file(const struct tsi_address *a, int *out)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat here, there;
	int fd, err;

	for (;;) {
		fd = open(a->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			  0600);
		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0)
			return tsi_err_sys("open %s", a->lock);
		if (fcntl(fd, F_SETLK, &lock)) {
			err = err_locked(a, fd);
			close(fd);
			if (err)
				return err;
			continue;
		}
		there.st_ino = 0;
		if (fstat(fd, &here) ||
		    (stat(a->lock, &there) && errno != ENOENT)) {
			err = tsi_err_sys("look at %s", a->lock);
			close(fd);
			return err;
		}
		/* Its last holder may have removed it meanwhile. */
		if (there.st_ino && here.st_dev == there.st_dev &&
		    here.st_ino == there.st_ino)
			break;
		close(fd);
	}
	if (write_pid(fd)) {
		err = tsi_err_sys("write %s", a->lock);
		close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

/* With the mutex held: lock the file of p, and note that in e. */
static int lock_for(struct entry *e, const struct tsi_address *a,
		    const struct stat *folder)
{
	int fd, err;

	if (is_locked(folder, a->name, e))
		return err_served(a->name, (long)getpid());
	err = lock_file(a, &fd);
	if (err)
		return err;
	if (e->fd >= 0)
		close(e->fd);
	e->pid = getpid();
	e->dev = folder->st_dev;
	e->ino = folder->st_ino;
	e->fd = fd;
	strcpy(e->name, a->name);
	return 0;
}

/* With the mutex held: the pointer to this process's entry, in the list. */
static struct entry **entry_of(int lock_fd)
{
	struct entry **at;

	for (at = &entries; *at; at = &(*at)->next) {
		if ((*at)->fd == lock_fd && (*at)->pid == getpid())
			break;
	}
	return at;
}

/* With the mutex held: this process's reservation of a name, or NULL. */
static struct entry *reservation(const char *name)
{
	for (struct entry *e = entries; e; e = e->next)
		if (e->reserved && e->pid == getpid() && !strcmp(e->name, name))
			return e;
	return NULL;
}

/* With the mutex held: the entry of a reservation, or a new one. */
static int find_or_lock(const struct tsi_address *a, const struct stat *folder,
			struct entry **out)
{
	struct entry *e = reservation(a->name);
	int err;

	*out = e;
	/* Its file may have been removed since. */
	if (e)
		return tsi_address_holds_lock(a, e->fd)
			       ? 0
			       : lock_for(e, a, folder);
	e = calloc(1, sizeof(*e));
	if (!e)
		return tsi_err_sys("lock the name %s", a->name);
	e->fd = -1;
	err = lock_for(e, a, folder);
	if (err) {
		free(e);
		return err;
	}
	e->next = entries;
	entries = *out = e;
	return 0;
}

static int lock_name(const char *name, bool reserve, struct tsi_address *out,
		     int *lock_fd)
{
	struct entry *e;
	struct stat st;
	int err = tsi_address_choose(name, out);

	if (!err)
		err = tsi_address_make_folder(out, &st);
	if (err)
		return err;
	pthread_mutex_lock(&entries_mutex);
	err = find_or_lock(out, &st, &e);
	if (!err) {
		e->reserved = reserve;
		*lock_fd = e->fd;
	}
	pthread_mutex_unlock(&entries_mutex);
	return err;
}

int tsi_address_lock(const char *name, struct tsi_address *out, int *lock_fd)
{
	struct tsi_address a;
	int err = lock_name(name, false, &a, lock_fd);

	if (!err)
		*out = a;
	return err;
}

int tsi_address_reserve(const char *name)
{
	struct tsi_address a;
	int fd, err = lock_name(name, true, &a, &fd);

	if (err)
		return err;
	atomic_store(&reserved.of, 0);
	reserved.address = a;
	reserved.fd = fd;
	atomic_store(&reserved.of, getpid());
	return 0;
}

void tsi_address_unreserve(const char *name)
{
	struct tsi_address a;
	struct entry *e;
	int fd = -1;

	if (tsi_address_choose(name, &a))
		return;
	pthread_mutex_lock(&entries_mutex);
	e = reservation(a.name);
	if (e)
		fd = e->fd;
	pthread_mutex_unlock(&entries_mutex);
	if (e)
		tsi_address_unlock(&a, fd);
}

void tsi_address_keep(const char *name)
{
	pthread_mutex_lock(&entries_mutex);
	for (struct entry *e = entries; e; e = e->next)
		if (e->pid == getpid() && !strcmp(e->name, name))
			e->kept = true;
	pthread_mutex_unlock(&entries_mutex);
}

bool tsi_address_is_locked(const struct tsi_address *a, long *pid)
{
	struct stat folder;
	bool locked;

	if (stat(a->folder, &folder))
		return false;
	pthread_mutex_lock(&entries_mutex);
	locked = is_locked(&folder, a->name, NULL);
	if (locked)
		*pid = (long)getpid();
	else
		locked = is_locked_elsewhere(a->lock, pid);
	pthread_mutex_unlock(&entries_mutex);
	return locked;
}

bool tsi_address_holds_lock(const struct tsi_address *a, int lock_fd)
{
	struct stat here, there;

	return !fstat(lock_fd, &here) && !lstat(a->lock, &there) &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

int tsi_address_relock(struct tsi_address *a, int *lock_fd)
{
	struct tsi_address q;
	struct entry *e;
	struct stat st;
	int err = tsi_address_move(a, &q);

	if (!err)
		err = tsi_address_make_folder(&q, &st);
	if (err)
		return err;
	pthread_mutex_lock(&entries_mutex);
	e = *entry_of(*lock_fd);
	/* If the lock is held, opening and closing its file would lose it. */
	if (e && !tsi_address_holds_lock(&q, *lock_fd))
		err = lock_for(e, &q, &st);
	if (e && !err) {
		*lock_fd = e->fd;
		*a = q;
	}
	pthread_mutex_unlock(&entries_mutex);
	return err;
}

/* No other process can have them while this one holds the lock. */
static void remove_files(const struct tsi_address *a, int lock_fd)
{
	if (!tsi_address_holds_lock(a, lock_fd))
		return;
	/* The lock last: a process that finds it unlinked may make the
	 * others. */
	unlink(a->channel);
	unlink(a->fdpass);
	unlink(a->lock);
}

void tsi_address_abandon(void)
{
	if (atomic_load(&reserved.of) == getpid())
		remove_files(&reserved.address, reserved.fd);
}

void tsi_address_unlock(const struct tsi_address *a, int lock_fd)
{
	struct entry **at, *e;

	pthread_mutex_lock(&entries_mutex);
	at = entry_of(lock_fd);
	e = *at;
	if (e && e->kept && tsi_address_holds_lock(a, lock_fd)) {
		unlink(a->channel);
		unlink(a->fdpass);
		e->kept = false;
		e->reserved = true;
	} else if (e) {
		remove_files(a, lock_fd);
		if (e->fd == reserved.fd)
			atomic_store(&reserved.of, 0);
		*at = e->next;
		close(e->fd);
		free(e);
	}
	pthread_mutex_unlock(&entries_mutex);
}
