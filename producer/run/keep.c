/* SPDX-License-Identifier: MIT */
/*
 * keep.c - a worker's way to the cache of packed images.
 */
#include "run/keep.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "packed/record.h"
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

/* The file's packed form; NULL: it has none, or there is no memory for it. */
static const uint8_t *pack_file(struct tsi_keep *k, uint64_t file,
				const uint8_t *data, size_t len,
				size_t *record_len)
{
	const uint8_t *record;
	int err = tsi_record_pack(k->maker, data, len, &record, record_len);
	if (err == TSOCK_ENOTSUP)
		tsi_image_cache_refuse(k->cache, file);
	return err ? NULL : record;
}

/* Packed images take about twice the bytes of a JPEG. */
static size_t expected(size_t len)
{
	return 2 * len;
}

const uint8_t *tsi_keep_pack(struct tsi_keep *k, uint64_t file,
			     const uint8_t *data, size_t len,
			     size_t *record_len)
{
	int64_t start = tsi_now_ns();
	const uint8_t *record;
	size_t n;

	if (!tsi_image_cache_has_room(k->cache, file, expected(len)))
		return NULL;
	record = pack_file(k, file, data, len, &n);
	if (!record)
		return NULL;
	/* Packing takes as long as a sample made of the file would. */
	if (tsi_image_cache_wants(k->cache, file,
				  (uint64_t)(tsi_now_ns() - start), n))
		tsi_image_cache_put(k->cache, file, record, n);
	*record_len = n;
	return record;
}

void tsi_keep_offer(struct tsi_keep *k, uint64_t file, const uint8_t *data,
		    size_t len, uint64_t ns)
{
	const uint8_t *record;
	size_t n;

	if (!tsi_image_cache_wants(k->cache, file, ns, expected(len)))
		return;
	record = pack_file(k, file, data, len, &n);
	if (record)
		tsi_image_cache_put(k->cache, file, record, n);
}
