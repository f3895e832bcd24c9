/* SPDX-License-Identifier: MIT */
/*
 * broadcast.c - the same samples to the rings of several GPUs at once.
 *
 * A broadcast works in the streams of the stages that it fills, so that their
 * own copies before and after it stay in order.  If a rank's GPU fails, all
 * other ranks wait for ever: waiting here looks at every GPU's errors.
 *
 * Never chooses samples or GPUs; never used by two threads at once.
 */
#include "stage/broadcast.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "mem/gpu.h"
#include "stage/kind.h"
#include "stage/nccl.h"

#define HEALTH_NS 20000000 /* between two looks at NCCL's errors */

static _Atomic unsigned start_limit_ms = 30000, run_limit_ms = 10000;

static int64_t run_limit_ns(void)
{
	return run_limit_ms * INT64_C(1000000);
}

void tsi_broadcast_limits(unsigned start_ms, unsigned run_ms)
{
	start_limit_ms = start_ms;
	run_limit_ms = run_ms;
}

struct tsi_broadcast {
	const struct tsi_ring *from;
	tsi_gpu_stream stream; /* of the GPU that sends */
	struct tsi_gpu_event *event;
	struct tsi_nccl *comm;
	bool verified; /* what it delivered was compared */
	bool stuck;    /* a broadcast that was given up may still be made */
	/* The communicator's devices; device 0 is the sender's. */
	unsigned n, device[TSI_BROADCAST_MAX];
	struct tsi_stage_target to[TSI_BROADCAST_MAX]; /* n - 1, of a run */
};

int tsi_broadcast_create(const struct tsi_ring *from, unsigned device,
			 struct tsi_broadcast **out)
{
	struct tsi_broadcast *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return tsi_err(TSOCK_ENOMEM, "no memory for broadcasts");
	b->from = from;
	b->device[0] = device;
	err = tsi_gpu_stream_create(device, &b->stream);
	if (!err)
		err = tsi_gpu_event_create(device, true, &b->event);
	if (err) {
		tsi_broadcast_destroy(b);
		return err;
	}
	*out = b;
	return 0;
}

/* ---- the communicator ---- */

static int health(const struct tsi_broadcast *b)
{
	int err = tsi_nccl_healthy(b->comm);

	for (unsigned i = 0; i < b->n && !err; i++)
		err = tsi_gpu_healthy(b->device[i]);
	return err;
}

/* To close it waits for every rank, a rank whose GPU has failed, too. */
static void disband(struct tsi_broadcast *b)
{
	bool queues; /* nothing does: none is under way */

	if (b->comm && health(b))
		(void)tsi_nccl_abort(b->comm, run_limit_ns(), &queues);
	else
		(void)tsi_nccl_close(b->comm, run_limit_ns());
	b->comm = NULL;
	b->n = 0;
}

void tsi_broadcast_destroy(struct tsi_broadcast *b)
{
	if (!b)
		return;
	disband(b);
	if (!b->stuck) {
		tsi_gpu_event_destroy(b->event);
		if (b->stream)
			tsi_gpu_stream_destroy(b->device[0], b->stream);
	}
	free(b);
}

bool tsi_broadcast_is_stuck(const struct tsi_broadcast *b)
{
	return b && b->stuck;
}

void tsi_broadcast_forget(struct tsi_broadcast *b, unsigned device)
{
	for (unsigned i = 1; b && i < b->n; i++)
		if (b->device[i] == device) {
			disband(b);
			return;
		}
}

/* NCCL's kernels use them by ways of its own. */
static int grant_all_rings(const struct tsi_broadcast *b, unsigned n)
{
	int err = 0;

	for (unsigned i = 0; i <= n; i++)
		for (unsigned k = 0; k <= n && !err; k++)
			if (i != k)
				err = tsi_ring_grant(i ? b->to[i - 1].ring
						       : b->from,
						     b->device[k]);
	return err;
}

static int assemble(struct tsi_broadcast *b, struct tsi_stage *const *to,
		    unsigned n)
{
	bool same = b->comm && b->n == n + 1;
	int err;

	if (n + 1 > TSI_BROADCAST_MAX)
		return tsi_err(TSOCK_ENOTSUP, "NCCL for %d GPUs at most",
			       TSI_BROADCAST_MAX);
	for (unsigned i = 0; i < n; i++)
		b->to[i] = tsi_stage_gpu_target(to[i]);
	for (unsigned i = 0; same && i < n; i++)
		same = b->device[i + 1] == b->to[i].device;
	if (same)
		return 0;
	disband(b);
	for (unsigned i = 0; i < n; i++)
		b->device[i + 1] = b->to[i].device;
	err = grant_all_rings(b, n);
	if (!err)
		err = tsi_nccl_open(b->device, n + 1,
				    start_limit_ms * INT64_C(1000000),
				    &b->comm);
	b->verified = false;
	if (!err)
		b->n = n + 1;
	return err;
}

/* ---- a run ---- */

/* Each GPU copies into its margin from its own ring. */
static bool in_margin(const struct tsi_ring *to, uint64_t dst)
{
	return dst >= tsi_ring_capacity(to);
}

static int send_piece(void *arg, const struct tsi_piece *p)
{
	const struct tsi_broadcast *b = arg;
	void *at[TSI_BROADCAST_MAX];

	if (in_margin(b->to[0].ring, p->dst))
		return 0;
	at[0] = tsi_ring_at(b->from, p->field, p->src);
	for (unsigned i = 1; i < b->n; i++)
		at[i] = tsi_ring_at(b->to[i - 1].ring, p->field, p->dst);
	return tsi_nccl_add(b->comm, at,
			    tsi_ring_bytes(b->from, p->field, p->count));
}

static int margin_piece(void *arg, const struct tsi_piece *p)
{
	const struct tsi_stage_target *t = arg;
	const struct tsi_ring *to = t->ring;
	uint64_t capacity = tsi_ring_capacity(to);

	if (!in_margin(to, p->dst))
		return 0;
	return tsi_gpu_copy(t->device, t->stream,
			    tsi_ring_at(to, p->field, p->dst),
			    tsi_ring_at(to, p->field, p->dst - capacity),
			    tsi_ring_bytes(to, p->field, p->count));
}

static int queue(struct tsi_broadcast *b, uint64_t first, unsigned count)
{
	tsi_gpu_stream stream[TSI_BROADCAST_MAX];
	int err = tsi_stage_pieces(b->from, b->to[0].ring, first, count,
				   send_piece, b);

	stream[0] = b->stream;
	for (unsigned i = 1; i < b->n; i++)
		stream[i] = b->to[i - 1].stream;
	if (!err)
		err = tsi_nccl_broadcast(b->comm, 0, stream, run_limit_ns());
	for (unsigned i = 0; i + 1 < b->n && !err; i++)
		err = tsi_stage_pieces(b->from, b->to[i].ring, first, count,
				       margin_piece, &b->to[i]);
	return err;
}

/* Record all events, also after an error.  Returns the first error. */
static int record_all(struct tsi_broadcast *b, unsigned n)
{
	int first = tsi_gpu_event_record(b->event, b->stream);

	for (unsigned i = 0; i < n; i++) {
		int err = tsi_gpu_event_record(b->to[i].event, b->to[i].stream);

		first = first ? first : err;
	}
	return first;
}

/* EAGAIN while any work is under way. */
static int all_done(const struct tsi_broadcast *b, unsigned n)
{
	int err = tsi_gpu_event_query(b->event);

	for (unsigned i = 0; i < n && !err; i++)
		err = tsi_gpu_event_query(b->to[i].event);
	return err;
}

static int wait_for_all(struct tsi_broadcast *b)
{
	int64_t begun = tsi_now_ns(), looked = begun, now;
	struct timespec ts = { 0, 20000 };
	int err;

	while ((err = all_done(b, b->n - 1)) == TSOCK_EAGAIN) {
		nanosleep(&ts, NULL);
		if (ts.tv_nsec < 500000)
			ts.tv_nsec += ts.tv_nsec / 4;
		now = tsi_now_ns();
		if (now - looked < HEALTH_NS)
			continue;
		looked = now;
		err = health(b);
		if (err)
			return err;
		if (now - begun > run_limit_ns())
			return tsi_err(TSOCK_ESYS,
				       "a broadcast by NCCL has not ended "
				       "within %.1f s, without an error",
				       run_limit_ms / 1e3);
	}
	return err ? err : tsi_nccl_healthy(b->comm);
}

/* ---- what was delivered ---- */

static int compare(const struct tsi_broadcast *b,
		   const struct tsi_stage_target *t, const uint8_t *dst,
		   const uint8_t *src, uint64_t bytes)
{
	uint8_t *host = malloc(2 * bytes);
	int err;

	if (!host)
		return tsi_err(TSOCK_ENOMEM, "no memory to compare with");
	err = tsi_gpu_download(b->device[0], b->stream, host, src, bytes);
	if (!err)
		err = tsi_gpu_event_record(b->event, b->stream);
	if (!err)
		err = tsi_gpu_event_wait(b->event);
	if (!err)
		err = tsi_gpu_download(t->device, t->stream, host + bytes, dst,
				       bytes);
	if (!err)
		err = tsi_gpu_event_record(t->event, t->stream);
	if (!err)
		err = tsi_gpu_event_wait(t->event);
	if (!err && memcmp(host, host + bytes, bytes))
		err = tsi_err(TSOCK_ESYS,
			      "what NCCL broadcast from GPU %u arrived on GPU "
			      "%u with other bytes, without an error",
			      b->device[0], t->device);
	free(host);
	return err;
}

struct delivery {
	const struct tsi_broadcast *b;
	const struct tsi_stage_target *to;
};

/* The source's slots are not reused while the view reads them. */
static int verify_piece(void *arg, const struct tsi_piece *p)
{
	const struct delivery *d = arg;
	const struct tsi_ring *from = d->b->from;

	return compare(d->b, d->to, tsi_ring_at(d->to->ring, p->field, p->dst),
		       tsi_ring_at(from, p->field, p->src),
		       tsi_ring_bytes(from, p->field, p->count));
}

static int verify_delivery(struct tsi_broadcast *b, uint64_t first,
			   unsigned count)
{
	int err = 0;

	for (unsigned i = 0; i + 1 < b->n && !err && !b->verified; i++) {
		struct delivery d = { b, &b->to[i] };

		err = tsi_stage_pieces(b->from, d.to->ring, first, count,
				       verify_piece, &d);
	}
	b->verified = !err;
	return err;
}

/*
 * Wait until no work of the broadcast can write any more.  It is stuck if that
 * takes too long.
 */
static void give_up(struct tsi_broadcast *b, unsigned n)
{
	struct timespec ts = { 0, 1000000 };
	int64_t until;

	(void)tsi_nccl_abort(b->comm, run_limit_ns(), &b->stuck);
	b->comm = NULL;
	b->n = 0;
	/* A driver that hangs in one call may hang in the next. */
	if (b->stuck)
		return;
	(void)record_all(b, n);
	until = tsi_now_ns() + run_limit_ns();
	for (unsigned i = 0; i <= n; i++) {
		struct tsi_gpu_event *e = i ? b->to[i - 1].event : b->event;

		while (tsi_gpu_event_query(e) == TSOCK_EAGAIN) {
			b->stuck = tsi_now_ns() >= until;
			if (b->stuck)
				return;
			nanosleep(&ts, NULL);
		}
	}
}

int tsi_broadcast_run(struct tsi_broadcast *b, struct tsi_stage *const *to,
		      unsigned n, uint64_t first, unsigned count)
{
	struct tsi_err_saved saved;
	int err = assemble(b, to, n);

	if (err)
		return err;
	err = queue(b, first, count);
	if (!err)
		err = record_all(b, n);
	if (!err)
		err = wait_for_all(b);
	if (!err)
		err = verify_delivery(b, first, count);
	if (err) {
		saved = tsi_err_save(err);
		give_up(b, n);
		err = tsi_err_restore(&saved);
	}
	return err;
}
