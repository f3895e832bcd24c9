/*
 * index.c - which files an ImageFolder tree holds: opening and asking.
 */
#include "data/index.h"
#include "data/index_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "data/hash.h"

unsigned tsi_index_threads(const struct tsi_index_opts *opts)
{
	return opts->threads ? opts->threads : 4;
}

uint64_t tsi_index_block_len(const struct tsi_index *x)
{
	return x->count * sizeof(*x->path) +
	       x->classes * sizeof(*x->class_name) + x->dirs * sizeof(*x->dir) +
	       x->count * sizeof(*x->size) + x->count * sizeof(*x->label) +
	       x->paths_len + x->names_len;
}

void tsi_index_set_tables(struct tsi_index *x)
{
	x->path = x->block;
	x->class_name = x->path + x->count;
	x->dir = (struct tsi_index_dir *)(x->class_name + x->classes);
	x->size = (uint32_t *)(x->dir + x->dirs);
	x->label = x->size + x->count;
	x->paths = (char *)(x->label + x->count);
	x->names = x->paths + x->paths_len;
}

static uint64_t fingerprint(const struct tsi_index *x)
{
	uint64_t h = tsi_hash(x->paths, x->paths_len, x->count);

	h = tsi_hash(x->label, x->count * sizeof(*x->label), h);
	return tsi_hash(x->size, x->count * sizeof(*x->size), h);
}

static int open_root(struct tsi_index *x, const char *root)
{
	x->root = realpath(root, NULL);
	if (x->root)
		x->dirfd = open(x->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (x->root && x->dirfd >= 0)
		return 0;
	if (errno == ENOENT)
		return tsi_err(TSOCK_EARG,
			       "there is no folder %s: the data set's root "
			       "should hold one folder per class",
			       root);
	if (errno == ENOTDIR)
		return tsi_err(TSOCK_EARG,
			       "%s is not a folder: the data set's root should "
			       "hold one folder per class",
			       root);
	return tsi_err_sys("open the data set's root %s", root);
}

/* What was bad may have been mended since; the rest is taken as it was. */
static int look_again(struct tsi_index *x, const struct tsi_index_opts *opts,
		      const uint64_t *bad, uint64_t nbad)
{
	int err = tsi_index_probe(x, opts, bad, nbad);

	if (!err && x->nbad != nbad)
		tsi_index_save(x, opts);
	return err;
}

static int scan(struct tsi_index *x, const struct tsi_index_opts *opts)
{
	int64_t begun = tsi_now_ms();
	int err;

	tsi_log(TSOCK_LOG_INFO, "scanning %s", x->root);
	err = tsi_index_scan(x, tsi_index_threads(opts));
	if (!err)
		err = tsi_index_probe(x, opts, NULL, x->count);
	if (err)
		return err;
	tsi_log(TSOCK_LOG_INFO, "scanned: %llu files, classes: %u, in %.1f s",
		(unsigned long long)x->count, x->classes,
		(double)(tsi_now_ms() - begun) / 1000);
	tsi_index_save(x, opts);
	return 0;
}

int tsi_index_open(const struct tsi_index_opts *opts, struct tsi_index **out)
{
	struct tsi_index *x = calloc(1, sizeof(*x));
	uint64_t *bad = NULL;
	uint64_t nbad = 0;
	int err;

	if (!x)
		return tsi_err(TSOCK_ENOMEM, "no memory for an index");
	x->dirfd = -1;
	pthread_mutex_init(&x->lock, NULL);
	err = open_root(x, opts->root);
	if (err)
		goto err_close;
	x->cached = !opts->rescan && tsi_index_load(x, opts, &bad, &nbad);
	if (x->cached)
		err = look_again(x, opts, bad, nbad);
	else
		err = scan(x, opts);
	free(bad);
	if (err)
		goto err_close;
	x->fingerprint = fingerprint(x);
	*out = x;
	return 0;

err_close:
	tsi_index_close(x);
	return err;
}

void tsi_index_close(struct tsi_index *x)
{
	if (!x)
		return;
	for (uint64_t i = 0; i < x->nbad; i++)
		free(x->bad[i].reason);
	free(x->bad);
	if (x->dirfd >= 0)
		close(x->dirfd);
	pthread_mutex_destroy(&x->lock);
	free(x->block);
	free(x->root);
	free(x);
}

uint64_t tsi_index_count(const struct tsi_index *x)
{
	return x->count;
}

uint32_t tsi_index_classes(const struct tsi_index *x)
{
	return x->classes;
}

const char *tsi_index_class(const struct tsi_index *x, uint32_t i)
{
	return x->names + x->class_name[i];
}

int64_t tsi_index_label(const struct tsi_index *x, uint64_t i)
{
	return x->label[i];
}

const char *tsi_index_path(const struct tsi_index *x, uint64_t i)
{
	return x->paths + x->path[i];
}

int tsi_index_dirfd(const struct tsi_index *x)
{
	return x->dirfd;
}

const char *tsi_index_root(const struct tsi_index *x)
{
	return x->root;
}

uint64_t tsi_index_size(const struct tsi_index *x, uint64_t i)
{
	return x->size[i];
}

static const struct tsi_index_bad *find_bad(const struct tsi_index *x,
					    uint64_t i)
{
	uint64_t low = 0;
	uint64_t high = x->nbad;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (x->bad[mid].index < i)
			low = mid + 1;
		else
			high = mid;
	}
	return low < x->nbad && x->bad[low].index == i ? &x->bad[low] : NULL;
}

bool tsi_index_bad(const struct tsi_index *x, uint64_t i)
{
	return find_bad(x, i) != NULL;
}

const char *tsi_index_bad_reason(const struct tsi_index *x, uint64_t i)
{
	const struct tsi_index_bad *bad = find_bad(x, i);

	return bad ? bad->reason : NULL;
}

uint64_t tsi_index_bad_count(const struct tsi_index *x)
{
	return x->nbad;
}

uint64_t tsi_index_bad_at(const struct tsi_index *x, uint64_t k)
{
	return x->bad[k].index;
}

uint64_t tsi_index_fingerprint(const struct tsi_index *x)
{
	return x->fingerprint;
}

bool tsi_index_cached(const struct tsi_index *x)
{
	return x->cached;
}
