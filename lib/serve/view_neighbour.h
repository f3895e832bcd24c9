/* SPDX-License-Identifier: MIT */
/*
 * view_neighbour.h - another GPU's ring as the source of a view.
 */
#ifndef TSI_SERVE_VIEW_NEIGHBOUR_H
#define TSI_SERVE_VIEW_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_view;

/* What is known of copies from GPU to GPU.  The server's lock guards it. */
struct tsi_gpu_copies {
	uint32_t fanout;     /* enum tsock_fanout: what is wanted */
	bool no_nccl;        /* NCCL was tried in vain */
	uint64_t spoilt[64]; /* by GPU: GPUs from which it gets wrong bytes */
};

/*
 * For a view of the samples as stored, on a GPU, whose ring is made and still
 * unused: if another GPU's ring is a better source than the host's, make it
 * the view's source.  Waits for a ring that is being made, and for GPUs.
 * Called by the view's own thread, without the lock.
 */
void tsi_view_neighbour_find(struct tsi_view *v);

/* For tests: how long it waits for a ring that is being made. */
void tsi_view_neighbour_limit(unsigned ms);

#endif
