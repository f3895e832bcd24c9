/* SPDX-License-Identifier: MIT */
/*
 * cache.c - a scan kept on disk, so that a start needs a look at each folder
 * and not at each file.
 *
 * One file per root and layout, XXH3(root's absolute path)LAYOUT.idx: a
 * header, the table's columns, the indices of bad rows.  It is good as long as
 * every folder and file that the scan read has the mtime and the inode that it
 * had: in a tree of images, files that were added, removed or renamed change
 * those of their folder.  A file overwritten in place does not, nor does a
 * symbolic link that begins or ceases to lead somewhere; that is accepted,
 * since files are read anew in every epoch anyway.
 *
 * A path that would lead out of the tree (absolute, or with "..") makes a
 * cache file wrong as any damage does: no scan writes one.
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

#define MAGIC "tsockidx"
#define VERSION 1
#define ENDIAN 0x01020304
#define RANGED 1u
#define NAMED 2u

struct head {
	char magic[8];
	uint32_t version;
	uint32_t endian;
	uint64_t checksum; /* of the header with 0 here, and all that follows */
	uint64_t count;
	uint64_t paths_len;
	uint64_t names_len;
	uint64_t nbad;
	uint32_t classes;
	uint32_t stamps;
	uint32_t probed;  /* bad means: the probe said so */
	uint32_t columns; /* RANGED, NAMED: those that the table has */
};

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

static uint64_t checksum(struct head h, const struct tsi_table *t,
			 const uint64_t *bad)
{
	uint64_t sum;

	h.checksum = 0;
	sum = tsi_hash(&h, sizeof(h), 0);
	sum = tsi_hash(t->block, tsi_table_block_len(&t->n), sum);
	return tsi_hash(bad, h.nbad * sizeof(*bad), sum);
}

static bool read_all(int fd, void *to, size_t len)
{
	char *p = to;

	while (len > 0) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const void *from, size_t len)
{
	const char *p = from;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static struct tsi_table_lengths lengths_of(const struct head *h)
{
	return (struct tsi_table_lengths){
		.count = h->count,
		.paths_len = h->paths_len,
		.names_len = h->names_len,
		.classes = h->classes,
		.stamps = h->stamps,
		.ranged = (h->columns & RANGED) != 0,
		.named = (h->columns & NAMED) != 0,
	};
}

/* The file is a cache of this version, as long as its header says. */
static bool check_head(const struct head *h, uint64_t len)
{
	struct tsi_table_lengths n = lengths_of(h);

	if (memcmp(h->magic, MAGIC, sizeof(h->magic)) ||
	    h->version != VERSION || h->endian != ENDIAN)
		return false;
	if (h->count == 0 || h->classes == 0 || h->stamps == 0 ||
	    h->paths_len == 0 || h->names_len == 0)
		return false;
	/* No length is beyond the file's, so no sum of them overflows. */
	if (len > UINT64_MAX / 64 || h->count > len || h->paths_len > len ||
	    h->names_len > len || h->nbad > h->count ||
	    h->columns & ~(RANGED | NAMED))
		return false;
	return len == sizeof(*h) + tsi_table_block_len(&n) +
			      h->nbad * sizeof(uint64_t);
}

/* The path is relative, and no ".." leads out of the tree. */
static bool stays_inside(const char *path)
{
	if (*path == '/')
		return false;
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return false;
	return true;
}

/* Every offset leads into its column, every string ends in it. */
static bool check_columns(const struct tsi_root *root,
			  const struct tsi_table *t, const uint64_t *bad,
			  uint64_t nbad)
{
	const char *path = tsi_root_name(root);
	size_t path_len = strlen(path) + 1;
	const struct tsi_table_lengths *n = &t->n;

	if (t->paths[n->paths_len - 1] || t->names[n->names_len - 1] ||
	    n->names_len < path_len || memcmp(t->names, path, path_len))
		return false;
	for (uint64_t i = 0; i < n->count; i++)
		if (t->path[i] >= n->paths_len || t->label[i] >= n->classes ||
		    !stays_inside(t->paths + t->path[i]))
			return false;
	for (uint32_t i = 0; i < n->classes; i++)
		if (t->class_name[i] >= n->names_len)
			return false;
	for (uint32_t i = 0; i < n->stamps; i++)
		if (t->stamp[i].path >= n->names_len ||
		    !stays_inside(t->names + t->stamp[i].path))
			return false;
	for (uint64_t i = 0; n->ranged && i < n->count; i++)
		if (t->offset[i] > 0 && t->length[i] == 0)
			return false;
	for (uint64_t i = 0; n->named && i < n->count; i++)
		if (t->member[i] >= n->paths_len)
			return false;
	for (uint64_t k = 0; k < nbad; k++)
		if (bad[k] >= n->count || (k > 0 && bad[k] <= bad[k - 1]))
			return false;
	return true;
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

static bool load_body(const struct tsi_root *root, const struct head *h, int fd,
		      struct tsi_table *t, uint64_t **bad)
{
	struct tsi_table_lengths n = lengths_of(h);
	uint64_t block_len = tsi_table_block_len(&n);
	void *block = malloc(block_len);

	*bad = malloc(h->nbad * sizeof(**bad) + 1);
	if (!block || !*bad) {
		free(block);
		return false;
	}
	tsi_table_set_block(t, &n, block);
	return read_all(fd, block, block_len) &&
	       read_all(fd, *bad, h->nbad * sizeof(**bad)) &&
	       checksum(*h, t, *bad) == h->checksum &&
	       check_columns(root, t, *bad, h->nbad);
}

static bool load_fd(const struct tsi_root *root,
		    const struct tsi_cache_opts *opts, int fd,
		    struct tsi_table *t, uint64_t **bad, uint64_t *nbad)
{
	struct stamps stamps = { root, t };
	struct head h;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    !read_all(fd, &h, sizeof(h)) ||
	    !check_head(&h, (uint64_t)st.st_size))
		return false;
	if ((h.probed != 0) != opts->probed)
		return false;
	*nbad = h.nbad;
	return load_body(root, &h, fd, t, bad) &&
	       !tsi_parallel(opts->threads, h.stamps, 256, check_stamps,
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

static bool write_cache(const struct tsi_table *t, const struct head *h,
			const uint64_t *bad, const char *path)
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
	ok = write_all(fd, h, sizeof(*h)) &&
	     write_all(fd, t->block, tsi_table_block_len(&t->n)) &&
	     write_all(fd, bad, h->nbad * sizeof(*bad));
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
	struct head h = { .magic = "", .version = VERSION, .endian = ENDIAN };
	char path[PATH_MAX];
	uint64_t *bad;

	if (!folder(opts, path, sizeof(path)))
		return;
	make_folders(path);
	h.nbad = tsi_table_bad_count(t);
	bad = malloc(h.nbad * sizeof(*bad) + 1);
	if (!bad || !file_path(root, opts, path, sizeof(path))) {
		free(bad);
		return;
	}
	for (uint64_t k = 0; k < h.nbad; k++)
		bad[k] = tsi_table_bad_at(t, k);
	memcpy(h.magic, MAGIC, sizeof(h.magic));
	h.count = t->n.count;
	h.paths_len = t->n.paths_len;
	h.names_len = t->n.names_len;
	h.classes = t->n.classes;
	h.stamps = t->n.stamps;
	h.columns = (t->n.ranged ? RANGED : 0) | (t->n.named ? NAMED : 0);
	h.probed = opts->probed;
	h.checksum = checksum(h, t, bad);
	if (!write_cache(t, &h, bad, path))
		tsi_log(TSOCK_LOG_INFO, "no scan cache written to %s: %s", path,
			strerror(errno));
	free(bad);
}
