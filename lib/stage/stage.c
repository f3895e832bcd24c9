/* SPDX-License-Identifier: MIT */
/*
 * stage.c - from one ring into another: the table of kinds.
 */
#include "stage/stage.h"

#include <stdlib.h>

#include "base/err.h"
#include "stage/kind.h"

static const struct tsi_stage_ops *const kinds[] = {
	[TSI_STAGE_CONVERT] = &tsi_stage_host,
	[TSI_STAGE_UPLOAD] = &tsi_stage_upload,
	[TSI_STAGE_PEER] = &tsi_stage_peer,
	[TSI_STAGE_BROADCAST] = &tsi_stage_peer,
	[TSI_STAGE_GPU_CONVERT] = &tsi_stage_gpu_convert,
};

int tsi_stage_create(const struct tsi_stage_parts *p, struct tsi_stage **out)
{
	struct tsi_stage *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return tsi_err(TSOCK_ENOMEM, "no memory for a stage");
	st->p = *p;
	st->ops = kinds[p->kind];
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
