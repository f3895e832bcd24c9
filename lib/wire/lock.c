/*
 * lock.c - who has a stream's name.
 *
 * Never removes a socket without holding the stream's lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "wire/place.h"

/*
 * Names taken by this process.  A record lock doesn't exclude the process that
 * holds it, and closing any descriptor of the file gives it back: so look here
 * before opening the file.  Entries of a forked child's parent don't count.
 */
struct taken {
	struct taken *next;
	pid_t pid;
	dev_t dev; /* of the folder */
	ino_t ino;
	int fd;
	char name[64];
};
static struct taken *taken;
static pthread_mutex_t taken_mutex = PTHREAD_MUTEX_INITIALIZER;

/* With the mutex held: is name of that folder taken by this process, in another
 * entry? */
static bool is_taken(const struct stat *folder, const char *name,
		     const struct taken *but)
{
	for (struct taken *t = taken; t; t = t->next) {
		if (t != but && t->pid == getpid() &&
		    t->dev == folder->st_dev && t->ino == folder->st_ino &&
		    !strcmp(t->name, name))
			return true;
	}
	return false;
}

static int err_served(const char *name, long pid)
{
	return tsi_err(TSOCK_EEXIST,
		       "stream %s is already served by process %ld", name, pid);
}

/* The lock is busy: say who has it, or 0 if it is free again. */
static int err_locked(const struct tsi_place *p, int fd)
{
	struct flock who = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (errno != EACCES && errno != EAGAIN)
		return tsi_err_sys("lock %s", p->lock);
	if (fcntl(fd, F_GETLK, &who))
		return tsi_err_sys("look who locks %s", p->lock);
	return who.l_type == F_UNLCK ? 0 : err_served(p->name, who.l_pid);
}

/*
 * Lock the file that is at the path now.  A leaving producer unlinks it while
 * it holds the lock, so a lock on a file that is there no more is worthless:
 * try again with the new one.
 */
static int lock_file(const struct tsi_place *p, int *out)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat here, there;
	char pid[16];
	int fd, err;

	for (;;) {
		fd = open(p->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			  0600);
		if (fd < 0)
			return tsi_err_sys("open %s", p->lock);
		if (fcntl(fd, F_SETLK, &lock)) {
			err = err_locked(p, fd);
			close(fd);
			if (err)
				return err;
			continue;
		}
		if (!fstat(fd, &here) && !stat(p->lock, &there) &&
		    here.st_dev == there.st_dev && here.st_ino == there.st_ino)
			break;
		close(fd);
	}
	/* For people; nobody of ours reads it. */
	snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) ||
	    pwrite(fd, pid, strlen(pid), 0) != (ssize_t)strlen(pid)) {
		err = tsi_err_sys("write %s", p->lock);
		close(fd);
		return err;
	}
	*out = fd;
	return 0;
}

/* With the mutex held: the lock in a folder, for an entry that is not in it. */
static int lock_for(struct taken *t, const struct tsi_place *p,
		    const struct stat *folder)
{
	int fd, err;

	if (is_taken(folder, p->name, t))
		return err_served(p->name, (long)getpid());
	err = lock_file(p, &fd);
	if (err)
		return err;
	if (t->fd >= 0)
		close(t->fd);
	t->pid = getpid();
	t->dev = folder->st_dev;
	t->ino = folder->st_ino;
	t->fd = fd;
	strcpy(t->name, p->name);
	return 0;
}

/* With the mutex held: where the pointer to our own entry is. */
static struct taken **entry_of(int lock_fd)
{
	struct taken **at;

	for (at = &taken; *at; at = &(*at)->next) {
		if ((*at)->fd == lock_fd && (*at)->pid == getpid())
			break;
	}
	return at;
}

int tsi_place_take(const char *name, struct tsi_place *out, int *lock_fd)
{
	struct tsi_place p;
	struct taken *t;
	struct stat st;
	int err = tsi_place_choose(name, &p);

	if (!err)
		err = tsi_place_make(&p, &st);
	if (err)
		return err;
	t = calloc(1, sizeof(*t));
	if (!t)
		return tsi_err_sys("take the name %s", p.name);
	t->fd = -1;
	pthread_mutex_lock(&taken_mutex);
	err = lock_for(t, &p, &st);
	if (!err) {
		t->next = taken;
		taken = t;
		*lock_fd = t->fd;
		*out = p;
	}
	pthread_mutex_unlock(&taken_mutex);
	if (err)
		free(t);
	return err;
}

bool tsi_place_kept(const struct tsi_place *p, int lock_fd)
{
	struct stat here, there;

	return !fstat(lock_fd, &here) && !lstat(p->lock, &there) &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

int tsi_place_retake(struct tsi_place *p, int *lock_fd)
{
	struct tsi_place q;
	struct taken *t;
	struct stat st;
	int err = tsi_place_move(p, &q);

	if (!err)
		err = tsi_place_make(&q, &st);
	if (err)
		return err;
	pthread_mutex_lock(&taken_mutex);
	t = *entry_of(*lock_fd);
	/* Opened and closed again, the lock that we have would be lost. */
	if (t && !tsi_place_kept(&q, *lock_fd))
		err = lock_for(t, &q, &st);
	if (t && !err) {
		*lock_fd = t->fd;
		*p = q;
	}
	pthread_mutex_unlock(&taken_mutex);
	return err;
}

void tsi_place_leave(const struct tsi_place *p, int lock_fd)
{
	struct taken **at, *t;

	pthread_mutex_lock(&taken_mutex);
	at = entry_of(lock_fd);
	t = *at;
	if (t) {
		if (tsi_place_kept(p, lock_fd)) {
			/* The lock last: who finds it unlinked may have the
			 * rest. */
			unlink(p->channel);
			unlink(p->fdpass);
			unlink(p->lock);
		}
		*at = t->next;
		close(t->fd);
		free(t);
	}
	pthread_mutex_unlock(&taken_mutex);
}
