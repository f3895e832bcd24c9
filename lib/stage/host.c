/* SPDX-License-Identifier: MIT */
/*
 * host.c - the stage from host memory to host memory, which converts images.
 */
#include "stage/kind.h"

#include <stdatomic.h>
#include <string.h>

#include "convert/convert.h"

static int host_init(struct tsi_stage *st)
{
	return tsi_convert_create(&st->p.spec, &st->convert);
}

static void host_fini(struct tsi_stage *st)
{
	tsi_convert_destroy(st->convert);
}

static int host_piece(void *arg, unsigned f, uint64_t dst, uint64_t src,
		      uint64_t count)
{
	const struct tsi_stage *st = arg;
	const struct tsi_ring *from = st->p.from, *to = st->p.to;
	const struct tsock_field *in =
		tsi_geometry_field(tsi_ring_geometry(from), f);

	if (!(in->flags & TSOCK_FIELD_IMAGE)) {
		memcpy(tsi_ring_at(to, f, dst), tsi_ring_at(from, f, src),
		       tsi_ring_bytes(from, f, count));
		return 0;
	}
	for (uint64_t i = 0; i < count; i++)
		tsi_convert_image(st->convert, tsi_ring_at(from, f, src + i),
				  in->shape[0], in->shape[1],
				  tsi_ring_at(to, f, dst + i));
	return 0;
}

static int host_start(struct tsi_stage *st, unsigned lane, uint64_t first,
		      unsigned count)
{
	int err = tsi_stage_pieces(st->p.from, st->p.to, first, count,
				   st->ops->piece, st);

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
	.init = host_init,
	.fini = host_fini,
	.start = host_start,
	.finish = host_finish,
	.piece = host_piece,
};
