/*
 * stage_fan.c - the same samples to the rings of several GPUs at once.
 *
 * A broadcast works in the streams of the stages that it fills, so that what
 * they copy by themselves before or after stays in order.  A rank whose GPU
 * fails leaves all others waiting: nothing here sleeps without looking.
 *
 * Never chooses which samples, nor who takes part; never used by two threads
 * at once.
 */
#include "stage/stage_fan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "mem/gpu.h"
#include "stage/nccl.h"

#define HEALTH_NS 20000000         /* between two looks at NCCL's errors */
#define AFTER_ABORT_NS 10000000000 /* for what was given up to end */

struct tsi_fan {
	const struct tsi_ring *from;
	tsi_gpu_stream stream; /* of the GPU that sends */
	struct tsi_gpu_event *event;
	struct tsi_nccl *comm;
	bool proved;                 /* it has delivered what was sent */
	unsigned n, device[TSI_FAN]; /* the communicator's; 0: the sender */
	struct tsi_stage *const *to; /* of the run under way: n - 1 */
};

int tsi_fan_create(const struct tsi_ring *from, unsigned device,
		   struct tsi_fan **out)
{
	struct tsi_fan *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return tsi_err(TSOCK_ENOMEM, "no memory for broadcasts");
	f->from = from;
	f->device[0] = device;
	err = tsi_gpu_stream_create(device, &f->stream);
	if (!err)
		err = tsi_gpu_event_create(device, &f->event);
	if (err) {
		tsi_fan_destroy(f);
		return err;
	}
	*out = f;
	return 0;
}

/* ---- who takes part ---- */

static int health(const struct tsi_fan *f)
{
	int err = tsi_nccl_healthy(f->comm);

	for (unsigned i = 0; i < f->n && !err; i++)
		err = tsi_gpu_healthy(f->device[i]);
	return err;
}

/* A rank whose GPU has failed would be waited for when it is to end. */
static void disband(struct tsi_fan *f)
{
	if (f->comm && health(f))
		tsi_nccl_abort(f->comm);
	else
		tsi_nccl_close(f->comm);
	f->comm = NULL;
	f->n = 0;
}

void tsi_fan_destroy(struct tsi_fan *f)
{
	if (!f)
		return;
	disband(f);
	tsi_gpu_event_destroy(f->event);
	if (f->stream)
		tsi_gpu_stream_destroy(f->device[0], f->stream);
	free(f);
}

void tsi_fan_forget(struct tsi_fan *f, unsigned device)
{
	for (unsigned i = 1; f && i < f->n; i++)
		if (f->device[i] == device) {
			disband(f);
			return;
		}
}

static int assemble(struct tsi_fan *f, struct tsi_stage *const *to, unsigned n)
{
	bool same = f->comm && f->n == n + 1;
	int err;

	if (n + 1 > TSI_FAN)
		return tsi_err(TSOCK_ENOTSUP, "NCCL for %d GPUs at most",
			       TSI_FAN);
	for (unsigned i = 0; same && i < n; i++)
		same = f->device[i + 1] == to[i]->p.to_device;
	if (same)
		return 0;
	disband(f);
	for (unsigned i = 0; i < n; i++)
		f->device[i + 1] = to[i]->p.to_device;
	err = tsi_nccl_open(f->device, n + 1, &f->comm);
	f->proved = false;
	if (!err)
		f->n = n + 1;
	return err;
}

/* ---- a run ---- */

/* A piece that only the margin repeats is copied by each for itself. */
static bool in_margin(const struct tsi_stage *st, uint64_t dst)
{
	return dst >= st->p.to->shared->capacity;
}

static int send_piece(struct tsi_stage *st, unsigned field, uint64_t dst,
		      uint64_t src, uint64_t count)
{
	const struct tsi_fan *f = st->fan;
	uint64_t each = f->from->shared->field[field].sample_bytes;
	tsi_gpu_stream stream[TSI_FAN];
	void *buf[TSI_FAN];

	if (in_margin(st, dst))
		return 0;
	buf[0] = (uint8_t *)f->from->gpu[field].base + src * each;
	stream[0] = f->stream;
	for (unsigned i = 1; i < f->n; i++) {
		const struct tsi_stage *to = f->to[i - 1];

		buf[i] = (uint8_t *)to->p.to->gpu[field].base + dst * each;
		stream[i] = to->stream;
	}
	return tsi_nccl_broadcast(f->comm, 0, buf, count * each, stream);
}

static int margin_piece(struct tsi_stage *st, unsigned field, uint64_t dst,
			uint64_t src, uint64_t count)
{
	uint64_t each = st->p.to->shared->field[field].sample_bytes;
	uint8_t *base = st->p.to->gpu[field].base;

	(void)src;
	if (!in_margin(st, dst))
		return 0;
	return tsi_gpu_copy(st->p.to_device, st->stream, base + dst * each,
			    base + (dst - st->p.to->shared->capacity) * each,
			    count * each);
}

static int queue(struct tsi_fan *f, uint64_t first, unsigned count)
{
	int err;

	f->to[0]->fan = f;
	err = tsi_stage_pieces(f->to[0], first, count, send_piece);
	f->to[0]->fan = NULL;
	for (unsigned i = 0; i + 1 < f->n && !err; i++)
		err = tsi_stage_pieces(f->to[i], first, count, margin_piece);
	return err;
}

/* Marks in all streams, whatever becomes of one: the first error. */
static int mark(struct tsi_fan *f, unsigned n)
{
	int first = tsi_gpu_event_record(f->event, f->stream);

	for (unsigned i = 0; i < n; i++) {
		int err = tsi_gpu_event_record(f->to[i]->event[0],
					       f->to[i]->stream);

		first = first ? first : err;
	}
	return first;
}

/* EAGAIN while anything is under way. */
static int look(const struct tsi_fan *f, unsigned n)
{
	int err = tsi_gpu_event_query(f->event);

	for (unsigned i = 0; i < n && !err; i++)
		err = tsi_gpu_event_query(f->to[i]->event[0]);
	return err;
}

static int wait_for_all(struct tsi_fan *f)
{
	int64_t looked = tsi_now_ns(), now;
	struct timespec ts = { 0, 20000 };
	int err;

	while ((err = look(f, f->n - 1)) == TSOCK_EAGAIN) {
		nanosleep(&ts, NULL);
		if (ts.tv_nsec < 500000)
			ts.tv_nsec += ts.tv_nsec / 4;
		now = tsi_now_ns();
		if (now - looked < HEALTH_NS)
			continue;
		looked = now;
		err = health(f);
		if (err)
			return err;
	}
	return err ? err : tsi_nccl_healthy(f->comm);
}

/* ---- what was delivered ---- */

static int differs(const struct tsi_fan *f, const struct tsi_stage *st,
		   const uint8_t *dst, const uint8_t *src, uint64_t bytes)
{
	uint8_t *host = malloc(2 * bytes);
	int err;

	if (!host)
		return tsi_err(TSOCK_ENOMEM, "no memory to compare with");
	err = tsi_gpu_download(f->device[0], f->stream, host, src, bytes);
	if (!err)
		err = tsi_gpu_event_record(f->event, f->stream);
	if (!err)
		err = tsi_gpu_event_wait(f->event);
	if (!err)
		err = tsi_gpu_download(st->p.to_device, st->stream,
				       host + bytes, dst, bytes);
	if (!err)
		err = tsi_gpu_event_record(st->event[0], st->stream);
	if (!err)
		err = tsi_gpu_event_wait(st->event[0]);
	if (!err && memcmp(host, host + bytes, bytes))
		err = tsi_err(TSOCK_ESYS,
			      "what NCCL broadcast from GPU %u arrived on GPU "
			      "%u with other bytes, without an error",
			      f->device[0], st->p.to_device);
	free(host);
	return err;
}

/* The source's samples stay while they are read. */
static int prove_piece(struct tsi_stage *st, unsigned field, uint64_t dst,
		       uint64_t src, uint64_t count)
{
	const struct tsi_fan *f = st->fan;
	uint64_t each = f->from->shared->field[field].sample_bytes;
	const uint8_t *from = f->from->gpu[field].base;
	const uint8_t *to = st->p.to->gpu[field].base;

	return differs(f, st, to + dst * each, from + src * each, count * each);
}

static int prove(struct tsi_fan *f, uint64_t first, unsigned count)
{
	int err = 0;

	for (unsigned i = 0; i + 1 < f->n && !err && !f->proved; i++) {
		f->to[i]->fan = f;
		err = tsi_stage_pieces(f->to[i], first, count, prove_piece);
		f->to[i]->fan = NULL;
	}
	f->proved = !err;
	return err;
}

/* Nothing of it may still write when others begin to. */
static void give_up(struct tsi_fan *f, unsigned n)
{
	struct timespec ts = { 0, 1000000 };
	int64_t until;

	tsi_nccl_abort(f->comm);
	f->comm = NULL;
	f->n = 0;
	(void)mark(f, n);
	until = tsi_now_ns() + AFTER_ABORT_NS;
	for (unsigned i = 0; i <= n; i++) {
		struct tsi_gpu_event *e = i ? f->to[i - 1]->event[0] : f->event;

		while (tsi_gpu_event_query(e) == TSOCK_EAGAIN &&
		       tsi_now_ns() < until)
			nanosleep(&ts, NULL);
	}
}

int tsi_fan_run(struct tsi_fan *f, struct tsi_stage *const *to, unsigned n,
		uint64_t first, unsigned count)
{
	char why[256];
	int err = assemble(f, to, n);

	if (err)
		return err;
	f->to = to;
	err = queue(f, first, count);
	if (!err)
		err = mark(f, n);
	if (!err)
		err = wait_for_all(f);
	if (!err)
		err = prove(f, first, count);
	if (err) {
		snprintf(why, sizeof(why), "%s", tsock_errmsg());
		give_up(f, n);
		err = tsi_err(err, "%s", why);
	}
	f->to = NULL;
	return err;
}
