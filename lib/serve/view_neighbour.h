/*
 * view_neighbour.h - another GPU's ring as the source of a view.
 */
#ifndef TSI_SERVE_VIEW_NEIGHBOUR_H
#define TSI_SERVE_VIEW_NEIGHBOUR_H

struct tsi_view;

/*
 * For a view of the samples as stored, on a GPU, whose ring is made and still
 * unused: if another GPU's ring is a better source than the host's, make it
 * the view's source.  Waits for a ring that is being made, and for GPUs.
 * Called by the view's own thread, without the lock.
 */
void tsi_view_neighbour_find(struct tsi_view *v);

#endif
