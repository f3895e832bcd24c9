/*
 * gpu.c - the stages whose target is a GPU: upload, peer, convert.
 *
 * Each has a stream and two events of its own.  Work is queued without
 * waiting; finish sleeps until an event after it is seen done, so whoever
 * publishes a sample has seen its bytes arrive.  From page-locked memory the
 * copies overlap with decoding.
 */
#include "stage/stage.h"

#include "base/err.h"
#include "convert/gpu.h"
#include "mem/gpu.h"

static void gpu_fini(struct tsi_stage *st)
{
	/* Nothing may still read or write the rings. */
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
	if (!err && st->p.kind == TSI_STAGE_GPU_CONVERT)
		err = tsi_view_spec_check(&st->p.spec);
	if (err)
		gpu_fini(st);
	return err;
}

static const uint8_t *source(const struct tsi_stage *st, unsigned f,
			     uint64_t slot)
{
	const struct tsi_ring *r = st->p.from;
	const uint8_t *base = r->on_gpu ? r->gpu[f].base : r->data[f].base;

	return base + slot * r->shared->field[f].sample_bytes;
}

static int gpu_piece(struct tsi_stage *st, unsigned f, uint64_t dst,
		     uint64_t src, uint64_t count)
{
	const struct tsi_stage_parts *p = &st->p;
	const struct tsi_ring_field *in = &p->from->shared->field[f];
	const struct tsi_ring_field *out = &p->to->shared->field[f];
	uint8_t *to = (uint8_t *)p->to->gpu[f].base + dst * out->sample_bytes;
	const uint8_t *from = source(st, f, src);
	uint64_t bytes = count * in->sample_bytes;

	if (p->kind == TSI_STAGE_UPLOAD)
		return tsi_gpu_upload(p->to_device, st->stream, to, from,
				      bytes);
	if (p->kind == TSI_STAGE_PEER || p->kind == TSI_STAGE_BROADCAST)
		return tsi_gpu_copy_peer(st->stream, p->to_device, to,
					 p->from_device, from, bytes);
	if (!(in->desc.flags & TSOCK_FIELD_IMAGE))
		return tsi_gpu_copy(p->to_device, st->stream, to, from, bytes);
	return tsi_convert_gpu(p->to_device, st->stream, &p->spec, from, count,
			       in->desc.shape[0], in->desc.shape[1], to);
}

static int gpu_start(struct tsi_stage *st, unsigned lane, uint64_t first,
		     unsigned count)
{
	int err = tsi_stage_pieces(st, first, count, gpu_piece);

	return err ? err : tsi_gpu_event_record(st->event[lane], st->stream);
}

static int gpu_finish(struct tsi_stage *st, unsigned lane)
{
	return tsi_gpu_event_wait(st->event[lane]);
}

const struct tsi_stage_ops tsi_stage_on_gpu = {
	.lanes = TSI_STAGE_LANES,
	.chunk = 64,
	.init = gpu_init,
	.fini = gpu_fini,
	.start = gpu_start,
	.finish = gpu_finish,
};
