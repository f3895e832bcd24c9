/* SPDX-License-Identifier: MIT */
/*
 * host.c - the stage from host memory to host memory, which converts images.
 */
#include "stage/kind.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "convert/convert.h"

struct host_stage {
	struct tsi_stage base;
	const struct tsi_ring *from;
	struct tsi_ring *to;
	struct tsi_convert *convert;
};

static struct host_stage *host_of(struct tsi_stage *st)
{
	return (struct host_stage *)st;
}

static int host_create(const struct tsi_stage_ops *ops,
		       const struct tsi_stage_parts *p, struct tsi_stage **out)
{
	struct host_stage *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return tsi_err(TSOCK_ENOMEM, "no memory for a stage");
	h->base.ops = ops;
	h->from = p->from;
	h->to = p->to;
	err = tsi_convert_create(&p->spec, &h->convert);
	if (err)
		free(h);
	else
		*out = &h->base;
	return err;
}

static void host_destroy(struct tsi_stage *st)
{
	tsi_convert_destroy(host_of(st)->convert);
	free(st);
}

static int host_piece(void *arg, const struct tsi_piece *p)
{
	const struct host_stage *h = arg;
	const struct tsi_ring *from = h->from, *to = h->to;
	const struct tsock_field *in = tsi_ring_field(from, p->field);

	if (!(in->flags & TSOCK_FIELD_IMAGE)) {
		memcpy(tsi_ring_at(to, p->field, p->dst),
		       tsi_ring_at(from, p->field, p->src),
		       tsi_ring_bytes(from, p->field, p->count));
		return 0;
	}
	for (uint64_t i = 0; i < p->count; i++)
		tsi_convert_image(h->convert, in->shape,
				  tsi_ring_at(from, p->field, p->src + i),
				  tsi_ring_at(to, p->field, p->dst + i));
	return 0;
}

static int host_start(struct tsi_stage *st, unsigned lane, uint64_t first,
		      unsigned count)
{
	struct host_stage *h = host_of(st);
	int err = tsi_stage_pieces(h->from, h->to, first, count, host_piece, h);

	(void)lane;
	/* Conversions may end in non-temporal stores: order them. */
	atomic_thread_fence(memory_order_seq_cst);
	return err;
}

static int host_finish(struct tsi_stage *st, unsigned lane)
{
	(void)st;
	(void)lane;
	return 0;
}

const struct tsi_stage_ops tsi_stage_host = {
	.lanes = 1,
	.chunk = 16,
	.create = host_create,
	.destroy = host_destroy,
	.start = host_start,
	.finish = host_finish,
};
