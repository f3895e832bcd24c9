/*
 * stream_events.c - the streams that were named as users of a batch, and
 * writing a batch's fields into the caller's own memory in their order.
 *
 * Never waits for a stream, and never synchronises one.
 */
#include "consumer/gpu/stream_events.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/fork.h"
#include "consumer/reader.h"
#include "consumer/gpu/backend.h"
#include "convert/gpu.h"

#define PER_THREAD ((tsi_gpu_stream)2) /* another stream in each thread */

/* ---- the streams of a batch ---- */

/* CUDA has two names for its default stream. */
static tsi_gpu_stream same_name(tsi_gpu_stream s)
{
	return s == (tsi_gpu_stream)1 ? NULL : s;
}

static int grow(struct tsi_stream_events *u)
{
	unsigned room = u->room ? 2 * u->room : 2;
	struct tsi_stream_event *use = realloc(u->use, room * sizeof(*use));

	if (!use)
		return tsi_err(TSOCK_ENOMEM, "no memory to note a stream");
	u->use = use;
	u->room = room;
	return 0;
}

/* The entry of a stream, a new one if it has none. */
static int find(struct tsi_stream_events *u, unsigned device, tsi_gpu_stream s,
		struct tsi_stream_event **out)
{
	int err = 0;

	s = same_name(s);
	for (unsigned i = 0; i < u->count; i++) {
		if (u->use[i].stream == s) {
			*out = &u->use[i];
			return 0;
		}
	}
	if (u->count == u->room)
		err = grow(u);
	if (!err && u->count == u->made) {
		err = tsi_gpu_event_create(device, &u->use[u->made].event);
		u->made += !err;
	}
	if (err)
		return err;
	*out = &u->use[u->count];
	(*out)->stream = s;
	(*out)->covered = (*out)->done = false;
	return 0;
}

/* It is one of the batch's from now on. */
static void keep(struct tsi_stream_events *u,
		 const struct tsi_stream_event *use)
{
	if (use == &u->use[u->count])
		u->count++;
}

static int poll_one(struct tsi_stream_event *use)
{
	int err = 0;

	if (!use->covered) {
		err = tsi_gpu_event_record(use->event, use->stream);
		/* Being captured: nothing of ours goes into that. */
		if (err == TSOCK_ENOTSUP)
			return TSOCK_EAGAIN;
		if (err)
			return err;
		use->covered = true;
	}
	err = tsi_gpu_event_query(use->event);
	/* A capture began while it was recorded: again, when that is over. */
	if (err == TSOCK_ENOTSUP) {
		use->covered = false;
		return TSOCK_EAGAIN;
	}
	use->done = !err;
	return err;
}

int tsi_stream_events_poll(struct tsi_stream_events *u)
{
	int result = 0;

	/* All are recorded before the first is waited for. */
	for (unsigned i = 0; i < u->count; i++) {
		int err = u->use[i].done ? 0 : poll_one(&u->use[i]);

		if (err && (!result || result == TSOCK_EAGAIN))
			result = err;
	}
	return result;
}

void tsi_stream_events_free(struct tsi_stream_events *u)
{
	for (unsigned i = 0; i < u->made; i++)
		tsi_gpu_event_destroy(u->use[i].event);
	free(u->use);
	*u = (struct tsi_stream_events){ .count = 0 };
}

/* ---- public ---- */

static int check(const struct tsock_batch *b, const char *what)
{
	if (!b)
		return TSOCK_EARG; /* by tsi_batch_of() */
	if (tsi_fork_since(b->reader->generation))
		return tsi_fork_err();
	if (!b->reader->gpu)
		return tsi_err(TSOCK_EARG,
			       "%s: the batch is in host memory: open with a "
			       "device",
			       what);
	return 0;
}

int tsock_batch_use(tsock_batch *name, void *stream)
{
	struct tsi_gpu_backend *g;
	struct tsi_stream_event *use;
	struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_use");
	int err = check(b, "tsock_batch_use");

	if (err)
		return err;
	g = b->reader->gpu;
	if (stream == PER_THREAD)
		return tsi_err(TSOCK_EARG,
			       "tsock_batch_use: the per-thread default stream "
			       "is another one in each thread, and a batch may "
			       "be given back by any: name a stream that was "
			       "created");
	err = tsi_completion_start(g->completion);
	if (!err)
		err = find(&b->events, g->device, stream, &use);
	/* Whether it can be: what counts is recorded at the release. */
	if (!err)
		err = tsi_gpu_event_record(use->event, use->stream);
	if (err)
		return err;
	use->covered = false;
	keep(&b->events, use);
	return 0;
}

static int write_field(struct tsi_gpu_backend *g, const struct tsock_batch *b,
		       unsigned i, void *dst, void *stream)
{
	const struct tsock_field *f = &g->stored[i];
	uint64_t bytes = b->count * tsi_field_bytes(f);

	if (g->staging && g->as_stored)
		return tsi_staging_write(g->staging, &b->staged, b->count, i,
					 dst, stream);
	if (g->as_stored && tsi_gpu_backend_converts(g, i))
		return tsi_convert_gpu(g->device, stream, &g->make,
				       b->placement.data[i], b->count,
				       f->shape[0], f->shape[1], dst);
	if (!g->as_stored)
		bytes = b->count * tsi_field_bytes(&g->field[i]);
	return tsi_gpu_copy(g->device, stream, dst, b->placement.data[i],
			    bytes);
}

int tsock_batch_convert(tsock_batch *name, unsigned i, void *dst, void *stream)
{
	struct tsi_gpu_backend *g;
	struct tsi_stream_event *use;
	bool named;
	struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_convert");
	int err = check(b, "tsock_batch_convert");

	if (err)
		return err;
	g = b->reader->gpu;
	if (i >= b->reader->nfields)
		return tsi_err(TSOCK_EARG,
			       "there is no field %u: a batch has %u", i,
			       b->reader->nfields);
	if (!dst)
		return tsi_err(TSOCK_EARG, "tsock_batch_convert: dst is NULL");
	err = tsi_completion_start(g->completion);
	if (!err)
		err = find(&b->events, g->device, stream, &use);
	if (err)
		return err;
	named = use != &b->events.use[b->events.count] && !use->covered;
	err = write_field(g, b, i, dst, stream);
	/* Being captured: nothing was queued. */
	if (err == TSOCK_ENOTSUP)
		return err;
	/* From here on something may be. */
	keep(&b->events, use);
	use->covered = false;
	if (err || named)
		return err;
	err = tsi_gpu_event_record(use->event, use->stream);
	use->covered = !err;
	return err;
}
