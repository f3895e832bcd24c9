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
	uint64_t first; /* these, which a broadcast that failed has left ... */
	unsigned owed;  /* ... for the view's own thread to copy */
	bool sends;     /* the view's samples are broadcast */
	bool stuck;     /* one that was given up may still write its ring */
	struct tsi_broadcast *broadcast; /* that sends them */
};

/*
 * Called by the thread of a BROADCAST view, with the lock held: fill the view
 * until it ends, its source is lost, or NCCL has failed.
 */
void tsi_view_broadcast_serve(struct tsi_view *v);

/*
 * Without the lock: the view's ring is no source of broadcasts any more.  False:
 * one that is stuck may still read or write it, so it has to stay.
 */
bool tsi_view_broadcast_end(struct tsi_view *v);

#endif
