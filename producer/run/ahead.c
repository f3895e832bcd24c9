/* SPDX-License-Identifier: MIT */
/*
 * ahead.c - the files of the samples that come next are read ahead of the
 * workers.
 */
#include "run/ahead.h"

#include <stdlib.h>

#include "base/err.h"
#include "io/disk.h"
#include "io/readahead.h"
#include "run/image_cache.h"
#include "run/shard_cache.h"

struct tsi_ahead {
	struct tsi_sampler *sampler;
	const struct tsi_image_cache *cache; /* NULL: there is none */
	enum tsi_disk disk;
	struct tsi_readahead *readahead;
};

/* Where the bytes of a sequence number are, if its file is to be read. */
static bool locate(void *arg, uint64_t seq, struct tsi_read_request *out)
{
	struct tsi_ahead *a = arg;
	const struct tsi_index *x = tsi_sampler_index(a->sampler);
	struct tsi_sample_id id;
	struct tsi_location at;

	if (tsi_sampler_at(a->sampler, seq, &id) || tsi_index_bad(x, id.index))
		return false;
	if (a->cache && tsi_image_cache_has(a->cache, id.index))
		return false;
	tsi_index_locate_bytes(x, id.index, &at);
	*out = (struct tsi_read_request){
		.dirfd = tsi_index_dirfd(x),
		.folder = at.folder,
		.path = at.file,
		.offset = at.offset,
		.length = at.length,
		.tag = id.index,
	};
	/* A copy on a local disk needs no reading ahead. */
	return !tsi_shard_cache_use(tsi_sampler_shards(a->sampler), out);
}

int tsi_ahead_open(struct tsi_sampler *s, const struct tsi_image_cache *cache,
		   const struct tsi_ahead_opts *opts, struct tsi_ahead **out)
{
	enum tsi_disk disk = tsi_disk_of(tsi_index_dirfd(tsi_sampler_index(s)));
	bool network = disk == TSI_DISK_NETWORK;
	uint64_t len = tsi_sampler_epoch_len(s);
	struct tsi_readahead_opts ahead = {
		.budget = opts->bytes,
		/* Further on in the order the same files come again. */
		.samples = len,
		.threads = network ? TSI_READAHEAD_THREADS : 1,
		.sorted = !network,
		.end = opts->epochs ? opts->epochs * len : UINT64_MAX,
		.locate = locate,
		.ops = &tsi_readahead_by_kernel,
	};
	struct tsi_ahead *a;
	int err;

	*out = NULL;
	if (!opts->bytes || disk == TSI_DISK_OTHER)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return tsi_err(TSOCK_ENOMEM, "no memory to read ahead");
	a->sampler = s;
	a->cache = cache;
	a->disk = disk;
	ahead.arg = a;
	err = tsi_readahead_create(&ahead, &a->readahead);
	if (err)
		free(a);
	else
		*out = a;
	return err;
}

void tsi_ahead_tell(struct tsi_ahead *a, uint64_t seq)
{
	if (a)
		tsi_readahead_tell(a->readahead, seq);
}

const char *tsi_ahead_how(const struct tsi_ahead *a)
{
	if (!a)
		return NULL;
	if (a->disk == TSI_DISK_NETWORK)
		return "several at once, from a network file system";
	return "in the order in which they lie on a rotating disk";
}

void tsi_ahead_stop(struct tsi_ahead *a)
{
	if (a)
		tsi_readahead_stop(a->readahead);
}

void tsi_ahead_close(struct tsi_ahead *a)
{
	if (!a)
		return;
	tsi_readahead_destroy(a->readahead);
	free(a);
}
