/* SPDX-License-Identifier: MIT */
/*
 * stage.c - from one ring into another: the table of kinds.
 */
#include "stage/stage.h"

#include "stage/kind.h"

static const struct tsi_stage_ops *const kinds[] = {
	[TSI_STAGE_CONVERT] = &tsi_stage_host,
	[TSI_STAGE_UPLOAD] = &tsi_stage_upload,
	[TSI_STAGE_PEER] = &tsi_stage_peer,
	[TSI_STAGE_BROADCAST] = &tsi_stage_peer,
	[TSI_STAGE_GPU_CONVERT] = &tsi_stage_gpu_convert,
};

int tsi_stage_create(enum tsi_stage_kind kind, const struct tsi_stage_parts *p,
		     struct tsi_stage **out)
{
	return kinds[kind]->create(kinds[kind], p, out);
}

void tsi_stage_destroy(struct tsi_stage *st)
{
	if (st)
		st->ops->destroy(st);
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

bool tsi_stage_settles(const struct tsi_stage *st)
{
	return st->ops->settle != NULL;
}

void tsi_stage_settle(struct tsi_stage *st, unsigned lane)
{
	st->ops->settle(st, lane);
}
