/* SPDX-License-Identifier: MIT */
/*
 * gpu.c - the stages whose target is a GPU: upload, peer, convert.
 *
 * Each stage has a stream and two events of its own.  start queues work without
 * waiting.  finish sleeps until the event behind the work is done, so that a
 * sample is published after its bytes have arrived.  Copies from page-locked
 * memory overlap with decoding.  An upload copies on the GPU what is there already.
 */
#include "stage/kind.h"

#include <stdlib.h>

#include "base/err.h"
#include "convert/gpu.h"
#include "mem/gpu.h"
#include "stage/resident.h"

#define CHUNK 64

/* Samples under way, and which of them lie in this GPU's memory. */
struct lane {
	uint64_t first;
	struct tsi_resident_held *held[CHUNK];
	struct tsi_gpu_event *event; /* behind their copies */
};

struct gpu_stage {
	struct tsi_stage base;
	struct tsi_stage_parts p;
	tsi_gpu_stream stream;
	struct lane lane[TSI_STAGE_LANES];
	const struct lane *begins; /* whose copies are being queued */
};

static struct gpu_stage *gpu_of(struct tsi_stage *st)
{
	return (struct gpu_stage *)st;
}

static void gpu_destroy(struct tsi_stage *st)
{
	struct gpu_stage *g = gpu_of(st);

	/* No queued work may read or write the rings any more. */
	for (unsigned i = 0; i < TSI_STAGE_LANES; i++) {
		struct tsi_gpu_event *e = g->lane[i].event;

		if (!e)
			continue;
		if (g->stream && !tsi_gpu_event_record(e, g->stream))
			tsi_gpu_event_wait(e);
		tsi_gpu_event_destroy(e);
	}
	if (g->stream)
		tsi_gpu_stream_destroy(g->p.to_device, g->stream);
	for (unsigned i = 0; i < TSI_STAGE_LANES; i++)
		tsi_residents_drop(g->p.residents, g->lane[i].held, CHUNK);
	free(g);
}

static int gpu_create(const struct tsi_stage_ops *ops,
		      const struct tsi_stage_parts *p, struct tsi_stage **out)
{
	struct gpu_stage *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return tsi_err(TSOCK_ENOMEM, "no memory for a stage");
	g->base.ops = ops;
	g->p = *p;
	err = tsi_gpu_stream_create(p->to_device, &g->stream);
	for (unsigned i = 0; i < TSI_STAGE_LANES && !err; i++)
		err = tsi_gpu_event_create(p->to_device, true,
					   &g->lane[i].event);
	if (err)
		gpu_destroy(&g->base);
	else
		*out = &g->base;
	return err;
}

static void upload_destroy(struct tsi_stage *st)
{
	struct gpu_stage *g = gpu_of(st);

	tsi_residents_detach(g->p.residents, g->p.to_device);
	gpu_destroy(st);
}

static int upload_create(const struct tsi_stage_ops *ops,
			 const struct tsi_stage_parts *p,
			 struct tsi_stage **out)
{
	int err = gpu_create(ops, p, out);

	if (!err)
		tsi_residents_attach(p->residents, p->to_device);
	return err;
}

static int convert_create(const struct tsi_stage_ops *ops,
			  const struct tsi_stage_parts *p,
			  struct tsi_stage **out)
{
	int err = tsi_view_spec_check(&p->spec);

	return err ? err : gpu_create(ops, p, out);
}

struct tsi_stage_target tsi_stage_gpu_target(const struct tsi_stage *st)
{
	const struct gpu_stage *g = (const struct gpu_stage *)st;

	return (struct tsi_stage_target){ .device = g->p.to_device,
					  .ring = g->p.to,
					  .stream = g->stream,
					  .event = g->lane[0].event };
}

/* ---- pieces ---- */

/* Samples of a field: where they are, and where they go. */
struct span {
	const uint8_t *from;
	uint8_t *to;
	uint64_t bytes; /* that they have in the source */
};

static struct span span_of(const struct gpu_stage *g, const struct tsi_piece *p)
{
	return (struct span){ .from = tsi_ring_at(g->p.from, p->field, p->src),
			      .to = tsi_ring_at(g->p.to, p->field, p->dst),
			      .bytes = tsi_ring_bytes(g->p.from, p->field,
						      p->count) };
}

/* Where sample i of a piece is on this GPU; NULL: in the ring alone. */
static const uint8_t *resident(const struct gpu_stage *g,
			       const struct tsi_piece *p, uint64_t i)
{
	uint64_t sample = p->sample + i;

	return tsi_resident_at(g->begins->held[sample - g->begins->first],
			       p->field, sample);
}

static int upload_piece(void *arg, const struct tsi_piece *p)
{
	const struct gpu_stage *g = arg;
	struct span s = span_of(g, p);
	uint64_t sample = s.bytes / p->count, n;
	int err = 0;

	/* Runs of samples that come from one piece of memory. */
	for (uint64_t i = 0; i < p->count && !err; i += n) {
		const uint8_t *from = resident(g, p, i);
		uint8_t *to = s.to + i * sample;

		n = 1;
		while (i + n < p->count &&
		       resident(g, p, i + n) ==
			       (from ? from + n * sample : NULL))
			n++;
		err = from ? tsi_gpu_copy(g->p.to_device, g->stream, to, from,
					  n * sample)
			   : tsi_gpu_upload(g->p.to_device, g->stream, to,
					    s.from + i * sample, n * sample);
	}
	return err;
}

static int peer_piece(void *arg, const struct tsi_piece *p)
{
	const struct gpu_stage *g = arg;
	struct span s = span_of(g, p);

	return tsi_gpu_copy_peer(g->stream, g->p.to_device, s.to,
				 g->p.from_device, s.from, s.bytes);
}

static int convert_piece(void *arg, const struct tsi_piece *p)
{
	const struct gpu_stage *g = arg;
	const struct tsock_field *in = tsi_ring_field(g->p.from, p->field);
	struct span s = span_of(g, p);

	if (!(in->flags & TSOCK_FIELD_IMAGE))
		return tsi_gpu_copy(g->p.to_device, g->stream, s.to, s.from,
				    s.bytes);
	return tsi_convert_gpu(g->p.to_device, g->stream, &g->p.spec, s.from,
			       p->count, in->shape, s.to);
}

/* ---- runs ---- */

static int gpu_start(struct tsi_stage *st, unsigned lane, uint64_t first,
		     unsigned count)
{
	struct gpu_stage *g = gpu_of(st);
	int err = tsi_stage_pieces(g->p.from, g->p.to, first, count,
				   st->ops->piece, g);

	return err ? err : tsi_gpu_event_record(g->lane[lane].event, g->stream);
}

static int gpu_finish(struct tsi_stage *st, unsigned lane)
{
	return tsi_gpu_event_wait(gpu_of(st)->lane[lane].event);
}

static int upload_start(struct tsi_stage *st, unsigned lane, uint64_t first,
			unsigned count)
{
	struct gpu_stage *g = gpu_of(st);
	struct lane *l = &g->lane[lane];

	if (count > CHUNK)
		return tsi_err(TSOCK_EARG, "%u samples at once", count);
	l->first = first;
	g->begins = l;
	tsi_residents_take(g->p.residents, g->p.to_device, first, count,
			   l->held);
	return gpu_start(st, lane, first, count);
}

static void upload_settle(struct tsi_stage *st, unsigned lane)
{
	struct gpu_stage *g = gpu_of(st);

	tsi_residents_drop(g->p.residents, g->lane[lane].held, CHUNK);
}

const struct tsi_stage_ops tsi_stage_upload = {
	.lanes = TSI_STAGE_LANES,
	.chunk = CHUNK,
	.create = upload_create,
	.destroy = upload_destroy,
	.start = upload_start,
	.finish = gpu_finish,
	.settle = upload_settle,
	.piece = upload_piece,
};

const struct tsi_stage_ops tsi_stage_peer = {
	.lanes = TSI_STAGE_LANES,
	.chunk = CHUNK,
	.create = gpu_create,
	.destroy = gpu_destroy,
	.start = gpu_start,
	.finish = gpu_finish,
	.piece = peer_piece,
};

const struct tsi_stage_ops tsi_stage_gpu_convert = {
	.lanes = TSI_STAGE_LANES,
	.chunk = CHUNK,
	.create = convert_create,
	.destroy = gpu_destroy,
	.start = gpu_start,
	.finish = gpu_finish,
	.piece = convert_piece,
};
