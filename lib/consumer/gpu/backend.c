/* SPDX-License-Identifier: MIT */
/*
 * backend.c - batches on a GPU, as a backend of a reader.
 *
 * Never names a CUDA function, and never waits for a stream: only for events
 * that a thread of ours looks at.
 */
#include "consumer/gpu/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "consumer/reader.h"

static struct tsi_gpu_backend *gpu_of(struct tsi_backend *k)
{
	return (struct tsi_gpu_backend *)k;
}

/* ---- batches ---- */

static int poll_deferred(struct tsi_deferred *d)
{
	struct tsi_gpu_batch *b = d->owner;

	return tsi_stream_events_poll(&b->events);
}

static void deferred_done(struct tsi_deferred *d)
{
	struct tsi_gpu_batch *b = d->owner;

	tsi_reader_batch_done(b->placement);
}

static int prepare(struct tsi_backend *k, struct tsi_placement *p)
{
	struct tsi_gpu_batch *b = calloc(1, sizeof(*b));

	if (!b)
		return tsi_err(TSOCK_ENOMEM, "no memory for batches");
	b->backend = gpu_of(k);
	b->placement = p;
	b->deferred = (struct tsi_deferred){ .owner = b,
					     .poll = poll_deferred,
					     .done = deferred_done };
	p->gpu = b;
	return 0;
}

static void discard(struct tsi_backend *k, struct tsi_placement *p)
{
	if (!p->gpu)
		return;
	tsi_stream_events_free(&p->gpu->events);
	if (gpu_of(k)->staging)
		tsi_staging_free_memory(gpu_of(k)->staging, &p->gpu->staged);
	free(p->gpu);
	p->gpu = NULL;
}

static int place(struct tsi_backend *k, uint64_t first, uint64_t count,
		 struct tsi_placement *p)
{
	struct tsi_gpu_backend *g = gpu_of(k);
	int err;

	/* Streams that read the batch which had this entry before. */
	tsi_stream_events_reset(&p->gpu->events);
	if (g->import) {
		p->count = count;
		p->own = false;
		tsi_import_place(g->import, first, p->data);
		return 0;
	}
	err = tsi_mapping_place(&g->mapping, first, count, p);
	if (!err)
		err = tsi_staging_copy(g->staging, &p->gpu->staged, count,
				       p->data);
	p->own = !err;
	return err;
}

/* Batches are copied from a ring on the host, if that has halves. */
static void turn(struct tsi_backend *k, unsigned half, uint64_t since)
{
	tsi_mapping_turn(&gpu_of(k)->mapping, half, since);
}

static bool in_use(struct tsi_backend *k, struct tsi_placement *p)
{
	struct tsi_stream_events *events = &p->gpu->events;

	(void)k;
	return events->count && tsi_stream_events_poll(events);
}

static void defer(struct tsi_backend *k, struct tsi_placement *p)
{
	tsi_completion_defer(gpu_of(k)->completion, &p->gpu->deferred);
}

/* ---- room ---- */

/* 0: no; TSOCK_EAGAIN: by work on the GPU; TSOCK_EHELD: by the caller. */
static int blocked(struct tsi_gpu_backend *g, struct tsi_reader *r, uint64_t n)
{
	const struct tsock_batch *b;

	if (g->staging)
		return tsi_completion_count(g->completion) < TSI_STAGING_IN_USE
			       ? 0
			       : TSOCK_EAGAIN;
	if (tsi_reader_has_room(r, n))
		return 0;
	b = tsi_reader_blocker(r, tsi_reader_pos(r) + n);
	/* It is being given back at this moment. */
	if (!b)
		return 0;
	return tsi_reader_batch_pending(b) ? TSOCK_EAGAIN
					   : tsi_reader_err_held(r);
}

static int await_room(struct tsi_gpu_backend *g, struct tsi_reader *r,
		      uint64_t n, int64_t deadline)
{
	for (;;) {
		/* Before looking: what comes back later ends the wait. */
		unsigned seen = tsi_completion_returned(g->completion);
		int err = blocked(g, r, n);

		if (err != TSOCK_EAGAIN)
			return err;
		err = tsi_completion_wait(g->completion, seen, deadline);
		if (err)
			return err;
	}
}

static int make_room(struct tsi_backend *k, struct tsi_reader *r, uint64_t n,
		     int *timeout_ms)
{
	struct tsi_gpu_backend *g = gpu_of(k);
	int err = tsi_completion_error(g->completion);
	int64_t begin, left;

	if (!err)
		err = blocked(g, r, n);
	if (err != TSOCK_EAGAIN)
		return err;
	begin = tsi_now_ms();
	err = await_room(g, r, n,
			 *timeout_ms < 0 ? INT64_MAX : begin + *timeout_ms);
	if (*timeout_ms > 0) {
		left = begin + *timeout_ms - tsi_now_ms();
		*timeout_ms = left > 0 ? (int)left : 0;
	}
	return err;
}

static int trouble(struct tsi_backend *k)
{
	int err = tsi_completion_error(gpu_of(k)->completion);

	return err ? err : tsi_gpu_healthy(gpu_of(k)->device);
}

/* ---- life ---- */

static void retire(struct tsi_backend *k)
{
	tsi_mapping_seal(&gpu_of(k)->mapping);
	tsi_completion_retire(gpu_of(k)->completion);
}

static void destroy(struct tsi_backend *k)
{
	struct tsi_gpu_backend *g = gpu_of(k);

	tsi_mapping_fini(&g->mapping);
	tsi_import_close(g->import);
	tsi_staging_destroy(g->staging);
	tsi_completion_destroy(g->completion);
	free(g);
}

static const struct tsi_backend_ops ops = {
	.prepare = prepare,
	.discard = discard,
	.place = place,
	.turn = turn,
	.make_room = make_room,
	.in_use = in_use,
	.defer = defer,
	.use = tsi_gpu_batch_use,
	.convert = tsi_gpu_batch_convert,
	.trouble = trouble,
	.retire = retire,
	.destroy = destroy,
};

static int open_staged(struct tsi_gpu_backend *g,
		       const struct tsi_geometry *ring, uint64_t batch,
		       const int *fd)
{
	struct tsi_staging_parts u = { .device = g->device,
				       .as_stored = g->as_stored,
				       .nfields = ring->nfields,
				       .batch = batch,
				       .make = &g->make,
				       .stored = g->stored,
				       .field = g->field };
	int err =
		tsi_mapping_init(&g->mapping, TSI_MAP_SHARED, ring, batch, fd);

	/* What was copied is as it is wanted. */
	g->base.field = g->field;
	return err ? err : tsi_staging_create(&u, &g->staging);
}

int tsi_gpu_backend_create(const struct tsi_gpu_backend_parts *parts,
			   const struct tsi_geometry *ring, uint64_t batch,
			   const int *fd, struct tsi_backend **out)
{
	struct tsi_gpu_backend *g = calloc(1, sizeof(*g));
	int err;

	if (!g) {
		tsi_mapping_close_fds(ring, fd);
		return tsi_err(TSOCK_ENOMEM, "no memory to read a stream");
	}
	g->base.ops = &ops;
	g->base.device = (int)parts->device;
	g->device = parts->device;
	g->as_stored = parts->as_stored;
	g->make = parts->make;
	memcpy(g->stored, parts->stored, sizeof(g->stored));
	memcpy(g->field, parts->field, sizeof(g->field));
	tsi_mapping_init_none(&g->mapping);
	err = parts->staged
		      ? open_staged(g, ring, batch, fd)
		      : tsi_import_open(&parts->ring, ring, fd, &g->import);
	if (!err)
		err = tsi_completion_create(g->device, &g->completion);
	if (err)
		destroy(&g->base);
	else
		*out = &g->base;
	return err;
}
