/*
 * stage.c - from one ring into another: what all stages share, and the one
 * that converts on the host.
 */
#include "stage/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "convert/convert.h"

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int tsi_stage_pieces(const struct tsi_stage *st, uint64_t first, unsigned count,
		     int (*fn)(struct tsi_stage *st, unsigned f, uint64_t dst,
			       uint64_t src, uint64_t count))
{
	struct tsi_stage *s = (struct tsi_stage *)(uintptr_t)st;
	const struct tsi_ring_shared *from = st->p.from->shared;
	const struct tsi_ring_shared *to = st->p.to->shared;
	uint64_t n;
	int err = 0;

	for (uint64_t q = first; q < first + count && !err; q += n) {
		uint64_t src = q % from->capacity, dst = q % to->capacity;

		n = min64(first + count - q,
			  min64(from->capacity - src, to->capacity - dst));
		for (unsigned f = 0; f < to->nfields && !err; f++) {
			uint64_t margin = to->field[f].margin;

			err = fn(s, f, dst, src, n);
			if (!err && dst < margin)
				err = fn(s, f, to->capacity + dst, src,
					 min64(n, margin - dst));
		}
	}
	return err;
}

/* ---- on the host ---- */

static int host_init(struct tsi_stage *st)
{
	return tsi_convert_create(&st->p.spec, &st->convert);
}

static void host_fini(struct tsi_stage *st)
{
	tsi_convert_destroy(st->convert);
}

static int host_piece(struct tsi_stage *st, unsigned f, uint64_t dst,
		      uint64_t src, uint64_t count)
{
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
	int err = tsi_stage_pieces(st, first, count, host_piece);

	(void)lane;
	/* Conversions may end in non-temporal stores. */
	atomic_thread_fence(memory_order_seq_cst);
	return err;
}

static int host_finish(struct tsi_stage *st, unsigned lane)
{
	(void)st;
	(void)lane;
	return 0;
}

const struct tsi_stage_ops tsi_stage_on_host = {
	.lanes = 1,
	.chunk = 16,
	.init = host_init,
	.fini = host_fini,
	.start = host_start,
	.finish = host_finish,
};

/* ---- all ---- */

int tsi_stage_create(const struct tsi_stage_parts *p, struct tsi_stage **out)
{
	struct tsi_stage *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return tsi_err(TSOCK_ENOMEM, "no memory for a stage");
	st->p = *p;
	st->ops = p->kind == TSI_STAGE_CONVERT ? &tsi_stage_on_host
					       : &tsi_stage_on_gpu;
	err = st->ops->init(st);
	if (err) {
		free(st);
		return err;
	}
	*out = st;
	return 0;
}

void tsi_stage_destroy(struct tsi_stage *st)
{
	if (!st)
		return;
	st->ops->fini(st);
	free(st);
}

unsigned tsi_stage_lanes(const struct tsi_stage *st)
{
	return st->ops->lanes;
}

unsigned tsi_stage_chunk(const struct tsi_stage *st)
{
	return st->ops->chunk;
}

int tsi_stage_start(struct tsi_stage *st, unsigned lane, uint64_t first,
		    unsigned count)
{
	return st->ops->start(st, lane, first, count);
}

int tsi_stage_finish(struct tsi_stage *st, unsigned lane)
{
	return st->ops->finish(st, lane);
}
