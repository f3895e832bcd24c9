/* SPDX-License-Identifier: MIT */
/*
 * view_broadcast.h - views on several GPUs that are filled together.
 */
#ifndef TSI_SERVE_VIEW_BROADCAST_H
#define TSI_SERVE_VIEW_BROADCAST_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_broadcast;
struct tsi_view;

/* What a view has to do with broadcasts.  The server's lock guards it. */
struct tsi_view_sending {
	bool busy;        /* samples are on their way to the view ... */
	uint32_t opening; /* ... which were claimed in this opening */
	bool sends;       /* the view's samples are broadcast */
	struct tsi_broadcast *broadcast; /* that sends them */
};

/*
 * Called by the thread of a BROADCAST view, with the lock held: fill the view
 * until it ends, its source is lost, or NCCL has failed.
 */
void tsi_view_broadcast_serve(struct tsi_view *v);

/* Without the lock: the view's ring is no source of broadcasts any more. */
void tsi_view_broadcast_end(struct tsi_view *v);

#endif
