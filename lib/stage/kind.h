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

	/* Make a stage of this kind, whose first member is struct tsi_stage. */
	int (*create)(const struct tsi_stage_ops *ops,
		      const struct tsi_stage_parts *p, struct tsi_stage **out);

	/* Wait for what is under way, whatever becomes of it; free the rest. */
	void (*destroy)(struct tsi_stage *st);

	/* Begin samples on a lane that is free. */
	int (*start)(struct tsi_stage *st, unsigned lane, uint64_t first,
		     unsigned count);

	/* Wait, asleep, until the samples begun on that lane are there. */
	int (*finish)(struct tsi_stage *st, unsigned lane);

	/* Those samples are published: give back what their copies read.  NULL:
	 * nothing. */
	void (*settle)(struct tsi_stage *st, unsigned lane);

	/* On a GPU, for start: copy or convert a piece.  arg is the stage. */
	tsi_piece_fn *piece;
};

struct tsi_stage {
	const struct tsi_stage_ops *ops;
};

/* Where a stage writes whose target is a GPU, and in what order. */
struct tsi_stage_target {
	unsigned device;
	struct tsi_ring *ring;
	tsi_gpu_stream stream;
	struct tsi_gpu_event *event; /* of its first lane */
};

/* For a broadcast to it, while nothing is under way. */
struct tsi_stage_target tsi_stage_gpu_target(const struct tsi_stage *st);

extern const struct tsi_stage_ops tsi_stage_host;
extern const struct tsi_stage_ops tsi_stage_upload;
extern const struct tsi_stage_ops tsi_stage_peer;
extern const struct tsi_stage_ops tsi_stage_gpu_convert;

#endif
