/* SPDX-License-Identifier: MIT */
/*
 * view_broadcast.h - views on several GPUs that are filled together.
 */
#ifndef TSI_SERVE_VIEW_BROADCAST_H
#define TSI_SERVE_VIEW_BROADCAST_H

struct tsi_view;

/*
 * Called by the thread of a BROADCAST view, with the lock held: fill the view
 * until it ends, its source is lost, or NCCL has failed.
 */
void tsi_view_broadcast_serve(struct tsi_view *v);

/* Without the lock: the view's ring is no source of broadcasts any more. */
void tsi_view_broadcast_end(struct tsi_view *v);

#endif
