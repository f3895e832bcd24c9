/* SPDX-License-Identifier: MIT */
/*
 * host.c - batches in host memory: a mapping of the ring as a backend.
 */
#include "consumer/host.h"

#include <stdlib.h>

#include "base/err.h"

static struct tsi_mapping *mapping_of(struct tsi_backend *k)
{
	return &((struct tsi_host_backend *)k)->mapping;
}

static int prepare(struct tsi_backend *k, struct tsi_placement *p)
{
	return tsi_mapping_prepare(mapping_of(k), p);
}

static void discard(struct tsi_backend *k, struct tsi_placement *p)
{
	(void)k;
	tsi_mapping_discard(p);
}

static int place(struct tsi_backend *k, uint64_t first, uint64_t count,
		 struct tsi_placement *p)
{
	return tsi_mapping_place(mapping_of(k), first, count, p);
}

static void turn(struct tsi_backend *k, unsigned half, uint64_t since)
{
	tsi_mapping_turn(mapping_of(k), half, since);
}

static void clear(struct tsi_backend *k, struct tsi_placement *p)
{
	tsi_mapping_clear(mapping_of(k), p);
}

static int make_private(struct tsi_backend *k, struct tsi_placement *p)
{
	return tsi_mapping_make_private(mapping_of(k), p);
}

static bool pages(struct tsi_backend *k, const struct tsi_placement *p,
		  unsigned i, void **addr, size_t *len, bool *writable)
{
	return tsi_mapping_pages(mapping_of(k), p, i, addr, len, writable);
}

static void retire(struct tsi_backend *k)
{
	tsi_mapping_seal(mapping_of(k));
}

static void destroy(struct tsi_backend *k)
{
	tsi_mapping_fini(mapping_of(k));
	free(k);
}

static const struct tsi_backend_ops ops = {
	.prepare = prepare,
	.discard = discard,
	.place = place,
	.turn = turn,
	.clear = clear,
	.make_private = make_private,
	.pages = pages,
	.retire = retire,
	.destroy = destroy,
};

int tsi_host_backend_create(enum tsi_mapping_mode mode,
			    const struct tsi_geometry *ring, uint64_t batch,
			    const int *fd, struct tsi_backend **out)
{
	struct tsi_host_backend *h = calloc(1, sizeof(*h));
	int err;

	if (!h) {
		tsi_mapping_close_fds(ring, fd);
		return tsi_err(TSOCK_ENOMEM, "no memory to read a stream");
	}
	err = tsi_mapping_init(&h->mapping, mode, ring, batch, fd);
	if (err) {
		free(h);
		return err;
	}
	h->base.ops = &ops;
	h->base.device = -1;
	h->base.writable = mode != TSI_MAP_SHARED;
	*out = &h->base;
	return 0;
}
