/* SPDX-License-Identifier: MIT */
/*
 * beside.c - further files of samples that lie in tar files.
 */
#include "data/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "data/labels/words.h"
#include "data/parallel.h"
#include "data/text.h"

struct shards {
	const struct tsi_beside *b;
	uint64_t *first; /* row of each tar file, and behind the last one */
	uint64_t n, cap;
};

/* What a tar file's samples are called, and the first of them. */
struct shard {
	struct tsi_words keys; /* in the order of the rows */
	uint64_t first;
	struct tsi_tar tar;
	struct tsi_tar_member m;
};

static int no_memory(const struct tsi_beside *b)
{
	return tsi_err(TSOCK_ENOMEM, "no memory for %s", b->what);
}

static int find_shards(struct shards *x)
{
	const struct tsi_beside *b = x->b;
	const char *before = NULL;
	int err = 0;

	for (uint64_t i = 0; i <= b->rows && !err; i++) {
		const char *path = i < b->rows ? b->path(b->arg, i) : "";

		if (before && !strcmp(before, path))
			continue;
		before = path;
		err = tsi_text_grow(&x->first, x->n, &x->cap,
				    sizeof(*x->first));
		if (!err)
			x->first[x->n++] = i;
	}
	return err;
}

static int find_keys(const struct shards *x, uint64_t k, struct shard *d)
{
	const struct tsi_beside *b = x->b;
	int err = 0;

	d->first = x->first[k];
	for (uint64_t i = d->first; i < x->first[k + 1] && !err; i++) {
		size_t len;
		const char *key = b->key(b->arg, i, &len);
		bool added;
		uint64_t id;

		err = tsi_words_add(&d->keys, key, len, &id, &added);
		if (!err && !added)
			return tsi_err(TSOCK_EDATA,
				       "%s has two samples %.*s, whose %s "
				       "can't be told apart",
				       b->path(b->arg, i), (int)len, key,
				       b->what);
	}
	return err;
}

static int take_member(const struct tsi_beside *b, struct shard *d)
{
	const struct tsi_beside_file f = {
		&d->tar,     d->tar.path, d->m.name,
		d->m.offset, d->m.size,   d->m.sparse
	};
	size_t len = strlen(d->m.name);
	int err = 0;

	for (unsigned k = 0; k < b->endings && d->m.regular && !err; k++) {
		size_t n = strlen(b->ending[k]);
		uint64_t id;

		if (len <= n || strcmp(d->m.name + len - n, b->ending[k]) != 0)
			continue;
		id = tsi_words_find(&d->keys, d->m.name, len - n);
		if (id != TSI_WORDS_NONE)
			err = b->take(b->arg, d->first + id, k, &f);
	}
	return err;
}

static int read_members(const struct tsi_beside *b, struct shard *d)
{
	int got = 0, err = 0;

	while (!err && (got = tsi_tar_next(&d->tar, &d->m)) > 0)
		err = take_member(b, d);
	return err || got == TSOCK_EDATA ? err : got;
}

static int read_shard(const struct shards *x, uint64_t k, struct shard *d)
{
	const struct tsi_beside *b = x->b;
	const char *path = b->path(b->arg, x->first[k]);
	int fd = openat(b->fd, path,
			O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int err;

	if (fd < 0)
		return tsi_err(TSOCK_EDATA,
			       "can't open %s in the folder of %s %s: %s", path,
			       b->what, b->folder, strerror(errno));
	err = fstat(fd, &st) ? tsi_err_sys("stat %s", path) : 0;
	if (!err)
		err = find_keys(x, k, d);
	if (!err) {
		tsi_tar_init(&d->tar, path, fd, (uint64_t)st.st_size);
		err = read_members(b, d);
	}
	close(fd);
	return err;
}

static int read_shards(void *arg, uint64_t first, uint64_t last)
{
	const struct shards *x = arg;
	int err = 0;

	for (uint64_t k = first; k < last && !err; k++) {
		struct shard *d = calloc(1, sizeof(*d));

		err = d ? read_shard(x, k, d) : no_memory(x->b);
		if (d)
			tsi_words_free(&d->keys);
		free(d);
	}
	return err;
}

int tsi_beside_read(const struct tsi_beside *b, unsigned threads)
{
	struct shards x = { .b = b };
	int err = find_shards(&x);

	if (!err)
		err = tsi_parallel(threads, x.n - 1, 1, read_shards, &x);
	free(x.first);
	return err;
}
