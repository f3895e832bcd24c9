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
	const struct tsi_ring_field *in = &st->p.from->shared->field[f];
	const struct tsi_ring_field *out = &st->p.to->shared->field[f];
	const uint8_t *from = (const uint8_t *)st->p.from->data[f].base +
			      src * in->sample_bytes;
	uint8_t *to =
		(uint8_t *)st->p.to->data[f].base + dst * out->sample_bytes;

	if (!(in->desc.flags & TSOCK_FIELD_IMAGE)) {
		memcpy(to, from, count * in->sample_bytes);
		return 0;
	}
	for (uint64_t i = 0; i < count; i++)
		tsi_convert_image(st->convert, from + i * in->sample_bytes,
				  in->desc.shape[0], in->desc.shape[1],
				  to + i * out->sample_bytes);
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
