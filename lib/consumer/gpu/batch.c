/* SPDX-License-Identifier: MIT */
/*
 * batch.c - what is done with a batch on a GPU: naming a stream whose work
 * reads it, and writing a field into the caller's own memory.
 *
 * Never waits for a stream, and never synchronises one.
 */
#include "base/err.h"
#include "consumer/gpu/backend.h"
#include "convert/gpu.h"

#define PER_THREAD ((tsi_gpu_stream)2) /* another stream in each thread */

int tsi_gpu_batch_use(struct tsi_backend *k, struct tsi_placement *p,
		      void *stream)
{
	struct tsi_gpu_backend *backend = (struct tsi_gpu_backend *)k;
	struct tsi_gpu_batch *g = p->gpu;
	struct tsi_stream_event *use;
	int err;

	if (stream == PER_THREAD)
		return tsi_err(TSOCK_EARG,
			       "tsock_batch_use: the per-thread default stream "
			       "is another one in each thread, and a batch may "
			       "be given back by any: name a stream that was "
			       "created");
	err = tsi_completion_start(backend->completion);
	if (!err)
		err = tsi_stream_events_find(&g->events, backend->device,
					     stream, &use);
	/* Whether it can be: what counts is recorded at the release. */
	if (!err)
		err = tsi_gpu_event_record(use->event, use->stream);
	if (err)
		return err;
	use->covered = false;
	tsi_stream_events_keep(&g->events, use);
	return 0;
}

/* Is field i stored in another way than it is wanted? */
static bool converts(const struct tsi_gpu_backend *k, unsigned i)
{
	return k->make.dtype && (k->stored[i].flags & TSOCK_FIELD_IMAGE);
}

static int write_field(const struct tsi_gpu_batch *g, unsigned i, void *dst,
		       void *stream)
{
	const struct tsi_gpu_backend *k = g->backend;
	const struct tsi_placement *p = g->placement;
	const struct tsock_field *f = &k->stored[i];
	uint64_t bytes = p->count * tsi_geometry_field_bytes(f);

	if (k->staging && k->as_stored)
		return tsi_staging_write(k->staging, &g->staged, p->count, i,
					 dst, stream);
	if (k->as_stored && converts(k, i))
		return tsi_convert_gpu(k->device, stream, &k->make, p->data[i],
				       p->count, f->shape, dst);
	if (!k->as_stored)
		bytes = p->count * tsi_geometry_field_bytes(&k->field[i]);
	return tsi_gpu_copy(k->device, stream, dst, p->data[i], bytes);
}

int tsi_gpu_batch_convert(struct tsi_backend *k, struct tsi_placement *p,
			  unsigned i, void *dst, void *stream)
{
	struct tsi_gpu_backend *backend = (struct tsi_gpu_backend *)k;
	struct tsi_gpu_batch *g = p->gpu;
	struct tsi_stream_event *use;
	bool named;
	int err = tsi_completion_start(backend->completion);

	if (!err)
		err = tsi_stream_events_find(&g->events, backend->device,
					     stream, &use);
	if (err)
		return err;
	named = tsi_stream_events_named(&g->events, use);
	err = write_field(g, i, dst, stream);
	/* Being captured: nothing was queued. */
	if (err == TSOCK_ENOTSUP)
		return err;
	/* From here on something may be. */
	tsi_stream_events_keep(&g->events, use);
	use->covered = false;
	if (err || named)
		return err;
	err = tsi_gpu_event_record(use->event, use->stream);
	use->covered = !err;
	return err;
}
