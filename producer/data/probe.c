/* SPDX-License-Identifier: MIT */
/*
 * probe.c - look at the first bytes of every sample: are they there, and are
 * they what they should be?
 *
 * A fault of a file makes its samples bad and nothing more; a fault of the
 * machine (EIO unless it is to be survived, no descriptors, no memory) ends the
 * scan.
 */
#include "data/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "data/format.h"
#include "data/parallel.h"

#define HEAD 4096
#define LARGEST ((uint64_t)1 << 30) /* bytes of a sample */
#define TRIES 3
#define CHUNK 64

struct probing {
	const struct tsi_root *root;
	const struct tsi_probe_opts *opts;
	struct tsi_table *t;
	const uint64_t *which;
	pthread_mutex_t lock; /* of the table's list of bad rows */
};

/* The sample that a thread looks at, and the thread's buffer. */
struct head {
	uint64_t i;
	struct tsi_location at;
	const char *path; /* perhaps in text */
	char text[TSI_PATH];
	uint8_t *data;
	size_t cap;
	size_t len;
	struct tsi_fs_seen seen;
};

static int add_bad(struct probing *p, const struct head *h, const char *reason)
{
	int err;

	pthread_mutex_lock(&p->lock);
	err = tsi_table_add_bad(p->t, h->i, reason);
	pthread_mutex_unlock(&p->lock);
	return err;
}

/* A system call on the file failed: is the file bad, or the machine? */
static int probe_failed(struct probing *p, const struct head *h,
			const char *verb)
{
	int err = errno;
	char reason[160];
	char text[96];

	if ((err == EIO && !p->opts->survive_eio) || err == EMFILE ||
	    err == ENFILE || err == ENOMEM)
		return tsi_err_sys("%s %.200s/%.200s", verb,
				   tsi_root_path(p->root), h->path);
	/* This may be the first sign of a dying disk. */
	if (err == EIO)
		tsi_log(TSOCK_LOG_WARN,
			"%s/%s can't be %s: I/O error, %d times in a row",
			tsi_root_path(p->root), h->path,
			*verb == 'o' ? "opened" : "read", TRIES);
	snprintf(reason, sizeof(reason), "can't be %s: %s",
		 *verb == 'o' ? "opened" : "read",
		 strerror_r(err, text, sizeof(text)));
	return add_bad(p, h, reason);
}

/*
 * A call on the file failed: is it worth another try?  An I/O error may be one
 * of the moment, and O_NONBLOCK, which only kept the open from blocking, has
 * some file systems answer reads with EAGAIN.
 */
static bool again(int fd, int *tries)
{
	int err = errno;
	bool yes = (err == EIO || (err == EAGAIN && !fcntl(fd, F_SETFL, 0))) &&
		   --*tries > 0;

	errno = err;
	return yes;
}

/* Have want bytes of the sample, or all that there are. */
static int fill_head(struct head *h, int fd, size_t want)
{
	int tries = TRIES;

	if (want > h->cap) {
		uint8_t *p = realloc(h->data, want);

		if (!p) {
			errno = ENOMEM;
			return -1;
		}
		h->data = p;
		h->cap = want;
	}
	while (h->len < want) {
		ssize_t n = pread(fd, h->data + h->len, want - h->len,
				  (off_t)(h->at.offset + h->len));

		if (n == 0)
			break;
		if (n > 0)
			h->len += (size_t)n;
		else if (errno != EINTR && !again(fd, &tries))
			return -1;
	}
	return 0;
}

/* The file or range has size bytes. */
static int probe_open(struct probing *p, struct head *h, int fd, uint64_t size)
{
	const struct tsi_probe_opts *opts = p->opts;
	uint64_t end = h->at.length ? h->at.length : UINT64_MAX;
	size_t want = HEAD;
	bool whole;
	int err;

	h->len = 0;
	do {
		if (fill_head(h, fd, want < end ? want : end))
			return probe_failed(p, h, "read");
		/* The size may be out of date; it saves a read of nothing. */
		whole = h->len < want || h->len == size;
		err = opts->sniff(opts->arg, h->data, h->len, whole);
		want *= 4;
	} while (err == TSOCK_EAGAIN && !whole);
	if (err == TSOCK_EAGAIN)
		return add_bad(p, h, "ends too early");
	if (err == TSOCK_EDATA)
		return add_bad(p, h, tsock_errmsg());
	return err;
}

/*
 * Ask what the file is before it is opened: opening a device or a FIFO may
 * have an effect already.  Returns an errno.
 */
static int stat_file(const struct probing *p, const struct head *h,
		     struct stat *st)
{
	int tries = TRIES;
	int err;

	do
		err = tsi_root_stat(p->root, h->path, st) ? errno : 0;
	while (err == EIO && --tries > 0);
	return err;
}

static int open_file(const struct probing *p, const struct head *h, int flags)
{
	int tries = TRIES;
	int fd;

	do
		fd = tsi_root_openat(p->root, h->path,
				     flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	while (fd < 0 && errno == EIO && --tries > 0);
	return fd;
}

/* Files of /proc, /sys and the like aren't to be opened. */
static bool made_up(const struct probing *p, struct head *h,
		    const struct stat *st)
{
	bool yes;
	int fd;

	if (tsi_file_seen(&h->seen, st->st_dev))
		return false;
	fd = open_file(p, h, O_PATH);
	if (fd < 0)
		return false;
	yes = tsi_file_made_up(&h->seen, st->st_dev, fd);
	close(fd);
	return yes;
}

/* Mark the sample bad if its file is of no kind to be read; 1 if it is. */
static int check_kind(struct probing *p, struct head *h, const struct stat *st)
{
	const char *kind = tsi_file_kind(st->st_mode);
	uint64_t size = (uint64_t)st->st_size;
	char reason[64];

	if (kind) {
		snprintf(reason, sizeof(reason), "is not a regular file but %s",
			 kind);
		return add_bad(p, h, reason);
	}
	if (h->at.offset > size || h->at.length > size - h->at.offset)
		return add_bad(p, h, "ends before the sample does");
	if ((h->at.length ? h->at.length : size) > LARGEST)
		return add_bad(p, h, "is larger than 1 GiB");
	if (made_up(p, h, st))
		return add_bad(p, h, TSI_FILE_MADE_UP);
	return 1;
}

static int look_at_open(int fd, struct stat *st)
{
	int tries = TRIES;

	while (fstat(fd, st))
		if (!again(fd, &tries))
			return -1;
	return 0;
}

static int probe_one(struct probing *p, uint64_t i, struct head *h)
{
	struct stat st;
	uint64_t size;
	int err;
	int fd;

	h->i = i;
	tsi_format_locate_bytes(p->opts->format, p->t, i, &h->at);
	h->path = tsi_location_path(&h->at, h->text);
	tsi_table_set_size(p->t, i, 0);
	errno = stat_file(p, h, &st);
	if (errno)
		return probe_failed(p, h, "open");
	size = h->at.length ? h->at.length : (uint64_t)st.st_size;
	tsi_table_set_size(p->t, i, size);
	err = check_kind(p, h, &st);
	if (err <= 0)
		return err;
	fd = open_file(p, h, O_RDONLY);
	if (fd < 0)
		return probe_failed(p, h, "open");
	/* The file may have been replaced in between. */
	if (look_at_open(fd, &st))
		err = probe_failed(p, h, "read");
	else if (!S_ISREG(st.st_mode))
		err = add_bad(p, h, "is not a regular file");
	else if (p->opts->sniff)
		err = probe_open(p, h, fd,
				 h->at.length ? h->at.length
					      : (uint64_t)st.st_size);
	else
		err = 0;
	close(fd);
	return err;
}

static int probe_some(void *arg, uint64_t first, uint64_t last)
{
	struct probing *p = arg;
	struct head h = { .data = NULL };
	int err = 0;

	for (uint64_t k = first; k < last && !err; k++)
		err = probe_one(p, p->which ? p->which[k] : k, &h);
	free(h.data);
	return err;
}

int tsi_probe(const struct tsi_root *root, const struct tsi_probe_opts *opts,
	      struct tsi_table *t, const uint64_t *which, uint64_t n)
{
	struct probing p = {
		.root = root, .opts = opts, .t = t, .which = which
	};
	int err;

	pthread_mutex_init(&p.lock, NULL);
	err = tsi_parallel(opts->threads, n, CHUNK, probe_some, &p);
	pthread_mutex_destroy(&p.lock);
	if (!err)
		tsi_table_sort_bad(t);
	return err;
}
