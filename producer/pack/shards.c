/* SPDX-License-Identifier: MIT */
/*
 * shards.c - the files of a pack while it is written.
 *
 * The journal is a head and an entry for each record.  An entry is written when
 * the record is on disk, never before.
 */
#include "pack/shards.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/packed/pack.h"

#define JOURNAL "journal"
#define MAGIC "tsckjrn1"

struct head {
	char magic[8];
	uint64_t source;
	uint64_t size;
};

struct tsi_shards {
	const char *folder;
	uint64_t size;
	int dirfd;
	int journal;
	int fd;         /* of the last shard; -1: there is none */
	uint32_t shard; /* its number */
	uint64_t at;    /* where its next record goes */
	struct tsi_shards_entry *entry;
	uint64_t count;
	uint64_t cap;
	uint64_t synced; /* entries that are in the journal */
};

static uint64_t sum_of(const struct tsi_shards_entry *e)
{
	return tsi_hash(e, offsetof(struct tsi_shards_entry, sum), 1);
}

static int shard_failed(const struct tsi_shards *s, const char *what)
{
	return tsi_err_sys("%s in %.300s", what, s->folder);
}

static int grow_table(struct tsi_shards *s)
{
	uint64_t cap = s->cap * 2 + 1024;
	void *p;

	if (s->count < s->cap)
		return 0;
	p = realloc(s->entry, cap * sizeof(*s->entry));
	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for the pack's index");
	s->entry = p;
	s->cap = cap;
	return 0;
}

/* ------------------------------------------------------------------------
 * What there is already
 */

static int open_shard(struct tsi_shards *s, uint32_t k, int flags, int *fd)
{
	char name[32];

	snprintf(name, sizeof(name), TSI_PACK_SHARD, k);
	*fd = openat(s->dirfd, name, O_RDWR | O_CLOEXEC | flags, 0666);
	return *fd < 0 ? shard_failed(s, "open a shard") : 0;
}

/* The size of a shard, 0 if there is none. */
static int find_size(const struct tsi_shards *s, uint32_t k, uint64_t *out)
{
	struct stat st = { .st_size = 0 };
	char name[32];

	snprintf(name, sizeof(name), TSI_PACK_SHARD, k);
	if (fstatat(s->dirfd, name, &st, 0) && errno != ENOENT)
		return shard_failed(s, "look at a shard");
	*out = (uint64_t)st.st_size;
	return 0;
}

/* An entry may follow those that there are; size is its shard's. */
static bool follows(const struct tsi_shards *s,
		    const struct tsi_shards_entry *e, uint64_t size)
{
	uint32_t next = s->count ? s->entry[s->count - 1].shard + 1 : 0;

	return e->length > 0 &&
	       (e->shard == next || (s->count && e->shard + 1 == next)) &&
	       e->offset <= size && e->length <= size - e->offset;
}

/* The next entry of the journal; 1, or 0: none follows, or an error. */
static int read_entry(struct tsi_shards *s, uint64_t at, uint64_t *size)
{
	struct tsi_shards_entry e;
	ssize_t n = tsi_file_pread(s->journal, &e, sizeof(e), at);
	int err = 0;

	if (n < 0)
		return shard_failed(s, "read the journal");
	if (n < (ssize_t)sizeof(e) || e.sum != sum_of(&e))
		return 0;
	if (!s->count || e.shard != s->entry[s->count - 1].shard)
		err = find_size(s, e.shard, size);
	if (!err && !follows(s, &e, *size))
		return 0;
	if (!err)
		err = grow_table(s);
	if (err)
		return err;
	s->entry[s->count++] = e;
	return 1;
}

static int read_entries(struct tsi_shards *s)
{
	uint64_t at = sizeof(struct head), size = 0;
	int got;

	while ((got = read_entry(s, at, &size)) > 0)
		at += sizeof(struct tsi_shards_entry);
	if (got < 0)
		return got;
	s->synced = s->count;
	return ftruncate(s->journal, (off_t)at)
		       ? shard_failed(s, "cut the journal")
		       : 0;
}

/* Cut off what no entry names, and go on behind it. */
static int cut_shards(struct tsi_shards *s)
{
	const struct tsi_shards_entry *last;
	int err;

	if (!s->count)
		return 0;
	last = &s->entry[s->count - 1];
	s->shard = last->shard;
	s->at = last->offset + last->length;
	err = open_shard(s, s->shard, 0, &s->fd);
	if (!err && ftruncate(s->fd, (off_t)s->at))
		err = shard_failed(s, "cut a shard");
	return err;
}

static int check_head(struct tsi_shards *s, uint64_t source)
{
	struct head h = { .source = source, .size = s->size }, old;
	ssize_t n = tsi_file_pread(s->journal, &old, sizeof(old), 0);

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	/* New, or broken off before anything was written. */
	if (n >= 0 && n < (ssize_t)sizeof(old))
		return tsi_file_pwrite(s->journal, &h, sizeof(h), 0)
			       ? 0
			       : shard_failed(s, "write the journal");
	if (n < 0)
		return shard_failed(s, "read the journal");
	if (memcmp(&h, &old, sizeof(h)))
		return tsi_err(
			TSOCK_EARG,
			"%s has a part of another data set's pack, or of "
			"shards of another size: remove that folder to "
			"begin anew",
			s->folder);
	return 0;
}

static int open_files(struct tsi_shards *s, uint64_t source)
{
	int err;

	if (mkdir(s->folder, 0777) && errno != EEXIST)
		return tsi_err_sys("make the folder %s", s->folder);
	s->dirfd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dirfd < 0)
		return tsi_err_sys("open the folder %s", s->folder);
	s->journal =
		openat(s->dirfd, JOURNAL, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (s->journal < 0)
		return shard_failed(s, "open the journal");
	if (flock(s->journal, LOCK_EX | LOCK_NB))
		return tsi_err(TSOCK_EEXIST,
			       "another process writes to %s just now",
			       s->folder);
	err = check_head(s, source);
	if (!err)
		err = read_entries(s);
	return err ? err : cut_shards(s);
}

int tsi_shards_open(const char *folder, uint64_t source, uint64_t size,
		    struct tsi_shards **out)
{
	struct tsi_shards *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return tsi_err(TSOCK_ENOMEM, "no memory for a pack");
	s->folder = folder;
	s->size = size;
	s->dirfd = s->journal = s->fd = -1;
	err = open_files(s, source);
	if (err) {
		tsi_shards_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void tsi_shards_close(struct tsi_shards *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	if (s->journal >= 0)
		close(s->journal);
	if (s->dirfd >= 0)
		close(s->dirfd);
	free(s->entry);
	free(s);
}

uint64_t tsi_shards_count(const struct tsi_shards *s)
{
	return s->count;
}

const struct tsi_shards_entry *tsi_shards_at(const struct tsi_shards *s,
					     uint64_t i)
{
	return &s->entry[i];
}

const char *tsi_shards_folder(const struct tsi_shards *s)
{
	return s->folder;
}

int tsi_shards_dirfd(const struct tsi_shards *s)
{
	return s->dirfd;
}

uint32_t tsi_shards_files(const struct tsi_shards *s)
{
	return s->fd < 0 ? 0 : s->shard + 1;
}

/* ------------------------------------------------------------------------
 * More of them
 */

int tsi_shards_sync(struct tsi_shards *s)
{
	uint64_t n = s->count - s->synced;

	if (s->fd >= 0 && fdatasync(s->fd))
		return shard_failed(s, "write a shard to disk");
	if (!tsi_file_pwrite(
		    s->journal, s->entry + s->synced, n * sizeof(*s->entry),
		    sizeof(struct head) + s->synced * sizeof(*s->entry)))
		return shard_failed(s, "write the journal");
	s->synced = s->count;
	return 0;
}

/* Begin the next shard. */
static int next_shard(struct tsi_shards *s)
{
	uint8_t head[TSI_PACK_ALIGN] = { 0 };
	uint32_t k = s->fd < 0 ? 0 : s->shard + 1;
	int fd, err = tsi_shards_sync(s);

	if (!err)
		err = open_shard(s, k, O_CREAT | O_TRUNC, &fd);
	if (err)
		return err;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	s->shard = k;
	s->at = sizeof(head);
	memcpy(head, TSI_PACK_MAGIC, 8);
	memcpy(head + 8, &k, sizeof(k));
	return tsi_file_pwrite(fd, head, sizeof(head), 0)
		       ? 0
		       : shard_failed(s, "write a shard");
}

int tsi_shards_add(struct tsi_shards *s, const uint8_t *data, size_t len,
		   bool bad)
{
	struct tsi_shards_entry *e;
	int err = grow_table(s);

	s->at = (s->at + TSI_PACK_ALIGN - 1) / TSI_PACK_ALIGN * TSI_PACK_ALIGN;
	if (!err &&
	    (s->fd < 0 || (s->at > TSI_PACK_ALIGN && s->at + len > s->size)))
		err = next_shard(s);
	if (err)
		return err;
	if (!tsi_file_pwrite(s->fd, data, len, s->at))
		return shard_failed(s, "write a shard");
	e = &s->entry[s->count++];
	memset(e, 0, sizeof(*e));
	e->shard = s->shard;
	e->bad = bad;
	e->offset = s->at;
	e->length = len;
	e->sum = sum_of(e);
	s->at += len;
	return 0;
}
