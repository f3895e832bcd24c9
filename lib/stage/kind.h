/* SPDX-License-Identifier: MIT */
/*
 * kind.h - what a stage is inside, and what each kind of stage implements.
 *
 * For the files of this folder alone.
 */
#ifndef TSI_STAGE_KIND_H
#define TSI_STAGE_KIND_H

#include "mem/gpu.h"
#include "stage/pieces.h"
#include "stage/stage.h"

struct tsi_stage_ops {
	/* Runs under way at once, LANES at most; samples of a good one. */
	unsigned lanes, chunk;

	/* Make what the kind needs.  After an error nothing of it is left. */
	int (*init)(struct tsi_stage *st);

	/* Wait for what is under way, whatever becomes of it; free the rest. */
	void (*fini)(struct tsi_stage *st);

	/* Begin samples on a lane that is free. */
	int (*start)(struct tsi_stage *st, unsigned lane, uint64_t first,
		     unsigned count);

	/* Wait, asleep, until the samples begun on that lane are there. */
	int (*finish)(struct tsi_stage *st, unsigned lane);

	/* For start: copy or convert one piece.  arg is the stage. */
	tsi_piece_fn *piece;
};

struct tsi_convert;

struct tsi_stage {
	struct tsi_stage_parts p;
	const struct tsi_stage_ops *ops;
	struct tsi_convert *convert; /* on the host */
	tsi_gpu_stream stream;       /* on a GPU, and an event for each lane */
	struct tsi_gpu_event *event[TSI_STAGE_LANES];
};

extern const struct tsi_stage_ops tsi_stage_host;
extern const struct tsi_stage_ops tsi_stage_upload;
extern const struct tsi_stage_ops tsi_stage_peer;
extern const struct tsi_stage_ops tsi_stage_gpu_convert;

#endif
