/* SPDX-License-Identifier: MIT */
/*
 * gpu.c - the stages whose target is a GPU: upload, peer, convert.
 *
 * Each stage has a stream and two events of its own.  start queues work without
 * waiting.  finish sleeps until the event behind the work is done, so that a
 * sample is published after its bytes have arrived.  Copies from page-locked
 * memory overlap with decoding.
 */
#include "stage/kind.h"

#include "base/err.h"
#include "convert/gpu.h"
#include "mem/gpu.h"

static void gpu_fini(struct tsi_stage *st)
{
	/* No queued work may read or write the rings any more. */
	for (unsigned i = 0; i < TSI_STAGE_LANES; i++) {
		if (!st->event[i])
			continue;
		if (st->stream &&
		    !tsi_gpu_event_record(st->event[i], st->stream))
			tsi_gpu_event_wait(st->event[i]);
		tsi_gpu_event_destroy(st->event[i]);
	}
	if (st->stream)
		tsi_gpu_stream_destroy(st->p.to_device, st->stream);
}

static int gpu_init(struct tsi_stage *st)
{
	int err = tsi_gpu_stream_create(st->p.to_device, &st->stream);

	for (unsigned i = 0; i < TSI_STAGE_LANES && !err; i++)
		err = tsi_gpu_event_create(st->p.to_device, &st->event[i]);
	if (err)
		gpu_fini(st);
	return err;
}

static int convert_init(struct tsi_stage *st)
{
	int err = tsi_view_spec_check(&st->p.spec);

	return err ? err : gpu_init(st);
}

/* ---- pieces ---- */

/* Samples of a field: where they are, and where they go. */
struct span {
	const uint8_t *from;
	uint8_t *to;
	uint64_t bytes; /* that they have in the source */
};

static struct span span_of(const struct tsi_stage *st, unsigned f, uint64_t dst,
			   uint64_t src, uint64_t count)
{
	return (struct span){ .from = tsi_ring_at(st->p.from, f, src),
			      .to = tsi_ring_at(st->p.to, f, dst),
			      .bytes = tsi_ring_bytes(st->p.from, f, count) };
}

static int upload_piece(void *arg, unsigned f, uint64_t dst, uint64_t src,
			uint64_t count)
{
	const struct tsi_stage *st = arg;
	struct span s = span_of(st, f, dst, src, count);

	return tsi_gpu_upload(st->p.to_device, st->stream, s.to, s.from,
			      s.bytes);
}

static int peer_piece(void *arg, unsigned f, uint64_t dst, uint64_t src,
		      uint64_t count)
{
	const struct tsi_stage *st = arg;
	struct span s = span_of(st, f, dst, src, count);

	return tsi_gpu_copy_peer(st->stream, st->p.to_device, s.to,
				 st->p.from_device, s.from, s.bytes);
}

static int convert_piece(void *arg, unsigned f, uint64_t dst, uint64_t src,
			 uint64_t count)
{
	const struct tsi_stage *st = arg;
	const struct tsock_field *in =
		tsi_geometry_field(tsi_ring_geometry(st->p.from), f);
	struct span s = span_of(st, f, dst, src, count);

	if (!(in->flags & TSOCK_FIELD_IMAGE))
		return tsi_gpu_copy(st->p.to_device, st->stream, s.to, s.from,
				    s.bytes);
	return tsi_convert_gpu(st->p.to_device, st->stream, &st->p.spec, s.from,
			       count, in->shape[0], in->shape[1], s.to);
}

/* ---- runs ---- */

static int gpu_start(struct tsi_stage *st, unsigned lane, uint64_t first,
		     unsigned count)
{
	int err = tsi_stage_pieces(st->p.from, st->p.to, first, count,
				   st->ops->piece, st);

	return err ? err : tsi_gpu_event_record(st->event[lane], st->stream);
}

static int gpu_finish(struct tsi_stage *st, unsigned lane)
{
	return tsi_gpu_event_wait(st->event[lane]);
}

const struct tsi_stage_ops tsi_stage_upload = {
	.lanes = TSI_STAGE_LANES,
	.chunk = 64,
	.init = gpu_init,
	.fini = gpu_fini,
	.start = gpu_start,
	.finish = gpu_finish,
	.piece = upload_piece,
};

const struct tsi_stage_ops tsi_stage_peer = {
	.lanes = TSI_STAGE_LANES,
	.chunk = 64,
	.init = gpu_init,
	.fini = gpu_fini,
	.start = gpu_start,
	.finish = gpu_finish,
	.piece = peer_piece,
};

const struct tsi_stage_ops tsi_stage_gpu_convert = {
	.lanes = TSI_STAGE_LANES,
	.chunk = 64,
	.init = convert_init,
	.fini = gpu_fini,
	.start = gpu_start,
	.finish = gpu_finish,
	.piece = convert_piece,
};
