/*
 * batch_gpu.c - the calls for batches on a GPU: naming a stream whose work
 * reads a batch, and writing a field into the caller's own memory.
 *
 * Never waits for a stream, and never synchronises one.
 */
#include "base/err.h"
#include "base/fork.h"
#include "consumer/gpu/backend.h"
#include "consumer/reader.h"
#include "convert/gpu.h"

#define PER_THREAD ((tsi_gpu_stream)2) /* another stream in each thread */

static int check_batch(const struct tsock_batch *b, const char *call)
{
	if (!b)
		return TSOCK_EARG; /* by tsi_batch_of() */
	if (tsi_fork_since(b->reader->generation))
		return tsi_fork_err();
	if (!b->placement.gpu)
		return tsi_err(TSOCK_EARG,
			       "%s: the batch is in host memory: open with a "
			       "device",
			       call);
	return 0;
}

int tsock_batch_use(tsock_batch *name, void *stream)
{
	struct tsi_gpu_batch *g;
	struct tsi_stream_event *use;
	struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_use");
	int err = check_batch(b, "tsock_batch_use");

	if (err)
		return err;
	g = b->placement.gpu;
	if (stream == PER_THREAD)
		return tsi_err(TSOCK_EARG,
			       "tsock_batch_use: the per-thread default stream "
			       "is another one in each thread, and a batch may "
			       "be given back by any: name a stream that was "
			       "created");
	err = tsi_completion_start(g->backend->completion);
	if (!err)
		err = tsi_stream_events_find(&g->events, g->backend->device,
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
				       p->count, f->shape[0], f->shape[1], dst);
	if (!k->as_stored)
		bytes = p->count * tsi_geometry_field_bytes(&k->field[i]);
	return tsi_gpu_copy(k->device, stream, dst, p->data[i], bytes);
}

int tsock_batch_convert(tsock_batch *name, unsigned i, void *dst, void *stream)
{
	struct tsi_gpu_batch *g;
	struct tsi_stream_event *use;
	bool named;
	struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_convert");
	int err = check_batch(b, "tsock_batch_convert");

	if (err)
		return err;
	g = b->placement.gpu;
	if (i >= b->reader->nfields)
		return tsi_err(TSOCK_EARG,
			       "there is no field %u: a batch has %u", i,
			       b->reader->nfields);
	if (!dst)
		return tsi_err(TSOCK_EARG, "tsock_batch_convert: dst is NULL");
	err = tsi_completion_start(g->backend->completion);
	if (!err)
		err = tsi_stream_events_find(&g->events, g->backend->device,
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
