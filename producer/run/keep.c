/* SPDX-License-Identifier: MIT */
/*
 * keep.c - a worker's way to the cache of packed images.
 */
#include "run/keep.h"

#include <stdlib.h>

#include "base/err.h"
#include "image/record.h"
#include "run/image_cache.h"

/* Memory in which an image is decoded as a whole, to be kept: 5 megapixels. */
#define DECODE ((uint64_t)32 << 20)

struct tsi_keep {
	struct tsi_image_cache *cache;
	unsigned reader;
	struct tsi_record_maker *maker;
};

int tsi_keep_create(struct tsi_image_cache *c, unsigned reader,
		    struct tsi_keep **out)
{
	struct tsi_keep *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return tsi_err(TSOCK_ENOMEM, "no memory for a worker");
	k->cache = c;
	k->reader = reader;
	err = tsi_record_maker_create(DECODE, &k->maker);
	if (err) {
		free(k);
		return err;
	}
	*out = k;
	return 0;
}

void tsi_keep_destroy(struct tsi_keep *k)
{
	if (!k)
		return;
	tsi_record_maker_destroy(k->maker);
	free(k);
}

bool tsi_keep_has(const struct tsi_keep *k, uint64_t file)
{
	return k && tsi_image_cache_has(k->cache, file);
}

const uint8_t *tsi_keep_take(struct tsi_keep *k, uint64_t file, size_t *len)
{
	return tsi_image_cache_take(k->cache, k->reader, file, len);
}

void tsi_keep_give(struct tsi_keep *k)
{
	tsi_image_cache_give(k->cache, k->reader);
}

void tsi_keep_offer(struct tsi_keep *k, uint64_t file, const uint8_t *data,
		    size_t len, uint64_t ns)
{
	struct tsi_record r;

	/* Packed images take about twice the bytes of a JPEG. */
	if (!tsi_image_cache_wants(k->cache, file, ns, 2 * len))
		return;
	if (tsi_record_make(k->maker, data, len, &r))
		return;
	if (r.packed)
		tsi_image_cache_put(k->cache, file, r.data, r.len);
	else
		tsi_image_cache_refuse(k->cache, file);
	free(r.data);
}
