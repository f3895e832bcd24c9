/* SPDX-License-Identifier: MIT */
/*
 * cache.c - a scan kept on disk, so that a start needs a look at each folder
 * and not at each file.
 *
 * One file per root and layout, LAYOUT.idx, as cache_file.h and table_file.h
 * have it.  It is good as long as every folder and file that the scan read has
 * the mtime and the inode that it had: in a tree of images, files that were
 * added, removed or renamed change those of their folder.  A file overwritten
 * in place does not, nor does a symbolic link that begins or ceases to lead
 * somewhere; that is accepted, since files are read anew in every epoch anyway.
 *
 * A cache file that is wrong in any way is treated as if there were none.  Bump
 * VERSION when a column changes, or what the probe calls good.  What a table may
 * have or lack is said in the file: ranges, names, folders that are stored once.
 */
#include "data/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/cache_file.h"
#include "data/parallel.h"
#include "data/table_file.h"

#define MAGIC "tsockidx"
#define VERSION 3

static bool file_path(const struct tsi_root *root,
		      const struct tsi_cache_opts *opts, char *out, size_t len)
{
	char suffix[64];
	struct tsi_cache_name name = { .dir = opts->dir,
				       .root = tsi_root_name(root),
				       .suffix = suffix };
	int n = snprintf(suffix, sizeof(suffix), "%s.idx", opts->layout);

	return n > 0 && (size_t)n < sizeof(suffix) &&
	       tsi_cache_file_path(&name, out, len);
}

struct stamps {
	const struct tsi_root *root;
	const struct tsi_table *t;
};

static int check_stamps(void *arg, uint64_t first, uint64_t last)
{
	const struct stamps *a = arg;

	for (uint64_t i = first; i < last; i++) {
		const struct tsi_stamp *s = &a->t->stamp[i];
		const char *path = a->t->names + s->path;
		struct stat st;

		if (tsi_root_stat(a->root, path, &st) ||
		    !tsi_stamp_holds(s, &st))
			return tsi_err(TSOCK_EAGAIN, "%s changed", path);
	}
	return 0;
}

bool tsi_cache_look(const struct tsi_root *root, const struct tsi_table *t,
		    uint64_t *now)
{
	bool same = true;

	*now = 0;
	for (uint64_t i = 0; i < t->n.stamps; i++) {
		const struct tsi_stamp *s = &t->stamp[i];
		int64_t seen[3] = { 0 };
		struct stat st;

		if (tsi_root_stat(root, t->names + s->path, &st)) {
			seen[0] = errno;
			same = false;
		} else {
			seen[0] = (int64_t)st.st_ino;
			seen[1] = (int64_t)st.st_mtim.tv_sec;
			seen[2] = (int64_t)st.st_mtim.tv_nsec;
			same = same && tsi_stamp_holds(s, &st);
		}
		*now = tsi_hash(seen, sizeof(seen), *now);
	}
	return same;
}

static struct tsi_table_kind kind_of(const struct tsi_cache_opts *opts)
{
	return (struct tsi_table_kind){
		.magic = MAGIC,
		.version = VERSION,
		.probe = opts->probe,
	};
}

static bool load_fd(const struct tsi_root *root,
		    const struct tsi_cache_opts *opts, int fd,
		    struct tsi_table *t, uint64_t **bad, uint64_t *nbad)
{
	struct tsi_table_kind kind = kind_of(opts);
	struct stamps stamps = { root, t };

	return tsi_table_file_read(fd, &kind, tsi_root_name(root), t, bad,
				   nbad) &&
	       !tsi_parallel(opts->threads, t->n.stamps, 256, check_stamps,
			     &stamps);
}

bool tsi_cache_load(const struct tsi_root *root,
		    const struct tsi_cache_opts *opts, struct tsi_table *t,
		    uint64_t **bad, uint64_t *nbad)
{
	char path[PATH_MAX];
	bool ok;
	int fd;

	if (!file_path(root, opts, path, sizeof(path)))
		return false;
	fd = tsi_cache_file_open(path);
	if (fd < 0)
		return false;
	ok = load_fd(root, opts, fd, t, bad, nbad);
	close(fd);
	if (ok)
		return true;
	tsi_table_clear(t);
	free(*bad);
	*bad = NULL;
	*nbad = 0;
	return false;
}

struct written {
	const struct tsi_table_kind *kind;
	const struct tsi_table *t;
};

static bool write_table(void *arg, int fd)
{
	const struct written *w = arg;

	return tsi_table_file_write(fd, w->kind, w->t);
}

void tsi_cache_save(const struct tsi_root *root,
		    const struct tsi_cache_opts *opts,
		    const struct tsi_table *t)
{
	struct tsi_table_kind kind = kind_of(opts);
	struct written w = { &kind, t };
	char path[PATH_MAX];

	if (!file_path(root, opts, path, sizeof(path)))
		return;
	if (!tsi_cache_file_replace(path, write_table, &w))
		tsi_log(TSOCK_LOG_INFO, "no scan cache written to %s: %s", path,
			strerror(errno));
}
