/*
 * backend.c - what a reader has besides when its batches are for a GPU.
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

#define STAGED_MAX 4 /* copies of batches that are given back and in use */

bool tsi_gpu_backend_converts(const struct tsi_gpu_backend *g, unsigned i)
{
	return g->make.dtype && (g->stored[i].flags & TSOCK_FIELD_IMAGE);
}

int tsi_gpu_backend_create(const struct tsi_gpu_backend_parts *p,
			   unsigned nfields, uint64_t batch,
			   struct tsi_gpu_backend **out)
{
	struct tsi_gpu_backend *g = calloc(1, sizeof(*g));
	struct tsi_staging_parts u = { .device = p->device,
				       .as_stored = p->as_stored,
				       .nfields = nfields,
				       .batch = batch,
				       .make = &p->make,
				       .stored = p->stored,
				       .field = p->field };
	int err;

	if (!g)
		return tsi_err(TSOCK_ENOMEM, "no memory to read a stream");
	g->device = p->device;
	g->as_stored = p->as_stored;
	g->make = p->make;
	memcpy(g->stored, p->stored, sizeof(g->stored));
	memcpy(g->field, p->field, sizeof(g->field));
	err = tsi_completion_create(p->device, &g->completion);
	if (!err && p->staged)
		err = tsi_staging_create(&u, &g->staging);
	if (err) {
		tsi_gpu_backend_destroy(g);
		return err;
	}
	*out = g;
	return 0;
}

void tsi_gpu_backend_destroy(struct tsi_gpu_backend *g)
{
	if (!g)
		return;
	tsi_staging_destroy(g->staging);
	tsi_completion_destroy(g->completion);
	free(g);
}

/* 0: no; TSOCK_EAGAIN: by work on the GPU; TSOCK_EHELD: by the caller. */
static int blocked(struct tsi_reader *r, uint64_t n)
{
	const struct tsi_gpu_backend *g = r->gpu;
	const struct tsock_batch *b;

	if (g->staging)
		return tsi_completion_count(g->completion) < STAGED_MAX
			       ? 0
			       : TSOCK_EAGAIN;
	if (tsi_reader_pos(r) + n - tsi_reader_tail(r) <=
	    r->capacity - r->join_window)
		return 0;
	b = tsi_reader_oldest(r);
	/* It is being given back at this moment. */
	if (!b)
		return 0;
	return tsi_batch_pending(b) ? TSOCK_EAGAIN : tsi_err_held(r);
}

static int wait_room(struct tsi_reader *r, uint64_t n, int64_t deadline)
{
	for (;;) {
		/* Before looking: what comes back later ends the wait. */
		unsigned seen = tsi_completion_returned(r->gpu->completion);
		int err = blocked(r, n);

		if (err != TSOCK_EAGAIN)
			return err;
		err = tsi_completion_wait(r->gpu->completion, seen, deadline);
		if (err)
			return err;
	}
}

int tsi_reader_await_room(struct tsi_reader *r, uint64_t n, int *timeout_ms)
{
	int err = blocked(r, n);
	int64_t begin, left;

	if (err != TSOCK_EAGAIN)
		return err;
	begin = tsi_now_ms();
	err = wait_room(r, n,
			*timeout_ms < 0 ? INT64_MAX : begin + *timeout_ms);
	if (*timeout_ms > 0) {
		left = begin + *timeout_ms - tsi_now_ms();
		*timeout_ms = left > 0 ? (int)left : 0;
	}
	return err;
}
