/* SPDX-License-Identifier: MIT */
/*
 * neighbours.c - the producers of this user here, and the CPUs that each takes.
 *
 * Locks are those of open files: unlike record locks, they don't end when
 * another descriptor of the file is closed, so that a producer may look at its
 * own file as well.
 */
#include "cli/neighbours.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/limits.h"
#include "run/share.h"
#include "wire/address.h"

#define MAGIC 0x75706374u /* and the first version of the record */
#define TRIES 3           /* at a record that is being written */

struct record {
	uint32_t magic;
	uint32_t working;
	struct tsi_share_stream stream;
	uint64_t hash; /* of all before it */
};

struct tsi_neighbours {
	char path[TSI_SOCKET_PATH + 1];
	int fd; /* -1: the file is gone, and can't be made again yet */
	struct record told;
	/* For tsi_neighbours_share(): this stream comes first. */
	struct tsi_share_stream list[TSI_SHARE_STREAMS];
	unsigned n;
};

static uint64_t hash_of(const struct record *r)
{
	return tsi_hash(r, offsetof(struct record, hash), 0);
}

/* ".cpus" is as long as ".door", so the path fits wherever sockets fit. */
static bool make_path(const char *folder, const char *name, char *out, size_t n)
{
	int len = snprintf(out, n, "%s/%s.cpus", folder, name);

	return len > 0 && (size_t)len < n;
}

/* ------------------------------------------------------------------------
 * This producer's file
 */

/* The cgroup, and the namespace in which it has that name. */
static uint64_t read_group(void)
{
	uint64_t group = 0;
	struct stat st;
	char text[4096];
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	if (!stat("/proc/self/ns/cgroup", &st))
		group = st.st_ino;
	return tsi_hash(text, len > 0 ? (size_t)len : 0, group);
}

static uint64_t make_key(const char *path)
{
	struct timespec now;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return tsi_hash(path, strlen(path), seed ^ (uint64_t)getpid() << 40);
}

static int make_file(struct tsi_neighbours *n)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(n->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return tsi_err_sys("open %s", n->path);
	if (fcntl(fd, F_OFD_SETLK, &lock)) {
		int err = tsi_err_sys("lock %s", n->path);

		close(fd);
		return err;
	}
	n->fd = fd;
	/* Nothing has been told in this file. */
	n->told.magic = 0;
	return 0;
}

static bool is_there(const struct tsi_neighbours *n)
{
	struct stat here, there;

	return n->fd >= 0 && !fstat(n->fd, &here) && !lstat(n->path, &there) &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

int tsi_neighbours_open(const char *name, struct tsi_neighbours **out)
{
	struct tsi_neighbours *n = calloc(1, sizeof(*n));
	struct tsi_address a;
	int err;

	if (!n)
		return tsi_err(TSOCK_ENOMEM, "no memory to share CPUs");
	err = tsi_address_choose(name, &a);
	if (!err && !make_path(tsi_address_folder(&a), tsi_address_name(&a),
			       n->path, sizeof(n->path)))
		err = tsi_err(TSOCK_EARG, "%s: too long a path",
			      tsi_address_folder(&a));
	if (!err)
		err = make_file(n);
	if (err) {
		free(n);
		return err;
	}
	n->told.stream.key = make_key(n->path);
	*out = n;
	return 0;
}

void tsi_neighbours_close(struct tsi_neighbours *n)
{
	if (!n)
		return;
	if (is_there(n))
		unlink(n->path);
	if (n->fd >= 0)
		close(n->fd);
	free(n);
}

void tsi_neighbours_tell(struct tsi_neighbours *n, unsigned readers,
			 unsigned threads, unsigned working)
{
	struct record r = {
		.magic = MAGIC,
		.working = working,
		.stream = { .key = n->told.stream.key,
			    .group = read_group(),
			    .quota = tsi_limits_quota(""),
			    .wants = threads,
			    .readers = readers,
			    .pid = (uint32_t)getpid() },
	};

	tsi_limits_affinity(r.stream.cpu, TSI_SHARE_WORDS);
	r.hash = hash_of(&r);
	if (!is_there(n)) {
		if (n->fd >= 0)
			close(n->fd);
		n->fd = -1;
		make_file(n);
	}
	if (n->fd >= 0 && memcmp(&r, &n->told, sizeof(r)) != 0 &&
	    pwrite(n->fd, &r, sizeof(r), 0) != (ssize_t)sizeof(r))
		r.hash = 0; /* what was not written is written next time */
	n->told = r;
}

/* ------------------------------------------------------------------------
 * The others'
 */

/* Does its producer live? */
static bool is_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static bool read_record(const char *folder, const char *name, struct record *r)
{
	char path[TSI_SOCKET_PATH + 64];
	bool good = false;
	int fd;

	if (!make_path(folder, name, path, sizeof(path)))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	for (int i = 0; i < TRIES && !good && is_locked(fd); i++)
		good = pread(fd, r, sizeof(*r), 0) == (ssize_t)sizeof(*r) &&
		       r->magic == MAGIC && r->hash == hash_of(r);
	close(fd);
	return good;
}

static void add_neighbour(void *arg, const struct tsi_address *a)
{
	struct tsi_neighbours *n = arg;
	struct record r;

	if (n->n < TSI_SHARE_STREAMS &&
	    read_record(tsi_address_folder(a), tsi_address_name(a), &r) &&
	    r.stream.key != n->told.stream.key)
		n->list[n->n++] = r.stream;
}

unsigned tsi_neighbours_share(struct tsi_neighbours *n, unsigned *rivals)
{
	n->list[0] = n->told.stream;
	n->n = 1;
	tsi_address_list(add_neighbour, n);
	*rivals = tsi_share_rivals(n->list, n->n, 0);
	return tsi_share_count(n->list, n->n, 0);
}

bool tsi_neighbours_ask(const char *folder, const char *name, unsigned *working,
			unsigned *threads)
{
	struct record r;

	if (!read_record(folder, name, &r))
		return false;
	*working = r.working;
	*threads = r.stream.wants;
	return true;
}
