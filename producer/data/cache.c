/* SPDX-License-Identifier: MIT */
/*
 * cache.c - a scan kept on disk, so that a start needs a look at each folder
 * and not at each file.
 *
 * One file per root and layout, XXH3(root's absolute path)LAYOUT.idx, as
 * table_file.h has it.  It is good as long as every folder and file that the
 * scan read has the mtime and the inode that it had: in a tree of images, files that were added, removed or renamed change
 * those of their folder.  A file overwritten in place does not, nor does a
 * symbolic link that begins or ceases to lead somewhere; that is accepted,
 * since files are read anew in every epoch anyway.
 *
 * A cache file that is wrong in any way is treated as if there were none.  Bump
 * VERSION when a column changes, or what the probe calls good.
 */
#include "data/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/parallel.h"
#include "data/table_file.h"

#define MAGIC "tsockidx"
#define VERSION 1

/* The folder of caches; false when there is to be none. */
static bool folder(const struct tsi_cache_opts *opts, char *out, size_t len)
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int n;

	if (opts->dir)
		n = snprintf(out, len, "%s", opts->dir);
	else if (xdg && *xdg == '/')
		n = snprintf(out, len, "%s/tsock", xdg);
	else if (home && *home == '/')
		n = snprintf(out, len, "%s/.cache/tsock", home);
	else
		return false;
	return n > 0 && (size_t)n < len;
}

static bool file_path(const struct tsi_root *root,
		      const struct tsi_cache_opts *opts, char *out, size_t len)
{
	const char *path = tsi_root_name(root);
	char dir[PATH_MAX];
	uint64_t key = tsi_hash(path, strlen(path), 0);
	int n;

	if (!folder(opts, dir, sizeof(dir)))
		return false;
	n = snprintf(out, len, "%s/%016" PRIx64 "%s.idx", dir, key,
		     opts->layout);
	return n > 0 && (size_t)n < len;
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

static struct tsi_table_kind kind_of(const struct tsi_cache_opts *opts)
{
	return (struct tsi_table_kind){
		.magic = MAGIC,
		.version = VERSION,
		.probed = opts->probed,
	};
}

static bool load_fd(const struct tsi_root *root,
		    const struct tsi_cache_opts *opts, int fd,
		    struct tsi_table *t, uint64_t **bad, uint64_t *nbad)
{
	struct tsi_table_kind kind = kind_of(opts);
	struct stamps stamps = { root, t };
	struct stat st;

	if (fstat(fd, &st) || st.st_uid != geteuid())
		return false;
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
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
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

/* mkdir -p */
static void make_folders(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	mkdir(path, 0700);
}

static bool write_cache(const struct tsi_table *t,
			const struct tsi_table_kind *kind, const char *path)
{
	char tmp[PATH_MAX];
	int n = snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path);
	bool ok;
	int fd;

	if (n < 0 || (size_t)n >= sizeof(tmp))
		return false;
	fd = mkostemp(tmp, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		return false;
	ok = tsi_table_file_write(fd, kind, t);
	ok = !close(fd) && ok;
	/* No fsync: the checksum finds what a crash has damaged. */
	if (ok && !rename(tmp, path))
		return true;
	unlink(tmp);
	return false;
}

void tsi_cache_save(const struct tsi_root *root,
		    const struct tsi_cache_opts *opts,
		    const struct tsi_table *t)
{
	struct tsi_table_kind kind = kind_of(opts);
	char path[PATH_MAX];

	if (!folder(opts, path, sizeof(path)))
		return;
	make_folders(path);
	if (!file_path(root, opts, path, sizeof(path)))
		return;
	if (!write_cache(t, &kind, path))
		tsi_log(TSOCK_LOG_INFO, "no scan cache written to %s: %s", path,
			strerror(errno));
}
