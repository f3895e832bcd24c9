/* SPDX-License-Identifier: MIT */
/*
 * stage.h - from one ring into another: each sample once, for all readers.
 *
 * Five kinds: images converted on the host, host to GPU, GPU to GPU, one GPU to
 * several (broadcast.h; for one target it copies like GPU to GPU), images
 * converted on a GPU.  A stage only copies and computes.  Its caller chooses
 * samples, starts them, and publishes them when tsi_stage_finish() has seen
 * their end.
 */
#ifndef TSI_STAGE_STAGE_H
#define TSI_STAGE_STAGE_H

#include "ring/ring.h"
#include "stage/resident.h"
#include "view/spec.h"

enum tsi_stage_kind {
	TSI_STAGE_CONVERT,     /* host to host */
	TSI_STAGE_UPLOAD,      /* host to GPU */
	TSI_STAGE_PEER,        /* GPU to another GPU */
	TSI_STAGE_BROADCAST,   /* GPU to several other GPUs at once */
	TSI_STAGE_GPU_CONVERT, /* on one GPU */
};

#define TSI_STAGE_LANES 2 /* runs under way at once, at most */

struct tsi_stage;

/* What a stage is made of. */
struct tsi_stage_parts {
	const struct tsi_ring *from;
	struct tsi_ring *to;
	struct tsi_view_spec spec; /* for the two that convert */
	unsigned from_device, to_device;
	/* For an upload: what of the source is on GPUs already; or NULL. */
	struct tsi_residents *residents;
};

int tsi_stage_create(enum tsi_stage_kind kind, const struct tsi_stage_parts *p,
		     struct tsi_stage **out);
void tsi_stage_destroy(struct tsi_stage *st);

/* Runs that may be under way at once, and samples that one should have. */
unsigned tsi_stage_lanes(const struct tsi_stage *st);
unsigned tsi_stage_chunk(const struct tsi_stage *st);

/* Begin the samples first .. first+count-1, on a lane that is free. */
int tsi_stage_start(struct tsi_stage *st, unsigned lane, uint64_t first,
		    unsigned count);

/* Wait, asleep, until the samples begun on that lane are there. */
int tsi_stage_finish(struct tsi_stage *st, unsigned lane);

/*
 * For the stages that settle: once samples that were finished without an error
 * are published, and before their lane begins others, give back what was held
 * for them.  That may wait for the owner of what is given back.
 */
bool tsi_stage_settles(const struct tsi_stage *st);
void tsi_stage_settle(struct tsi_stage *st, unsigned lane);

#endif
