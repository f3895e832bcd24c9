/* SPDX-License-Identifier: MIT */
/*
 * view_table.h - the views that there are: found, made, freed.
 *
 * The server's lock is held when these functions are called.
 */
#ifndef TSI_SERVE_VIEW_TABLE_H
#define TSI_SERVE_VIEW_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/pin.h"
#include "serve/gpu_table.h"
#include "serve/membership.h"
#include "serve/sync.h"
#include "serve/view.h"
#include "serve/view_neighbour.h"

struct tsi_readers;
struct tsock_gpu_samples;
struct tsock_serve_opts;

struct tsi_view_table {
	struct tsi_sync *sync;
	struct tsi_membership *membership;
	struct tsi_readers *readers;
	struct tsi_view view[TSI_VIEWS]; /* the base ring's is the first */
	uint64_t memory, gpu_memory;     /* limits, in bytes; 0: none */
	uint32_t transport;              /* that alone is offered; or AUTO */
	bool commit_views;               /* workers write views, too */
	bool closing;                    /* no thread commits any more */
	uint64_t made;                   /* views, so far */
	struct tsi_gpu_table gpus;
	struct tsi_gpu_copies copies;
	struct tsi_ring_pin pin; /* of the base ring */
	/* The samples of the base ring that lie in a GPU's memory, too. */
	struct tsi_residents *residents;
	struct tsi_downloads *downloads;
};

void tsi_view_table_init(struct tsi_view_table *t,
			 const struct tsock_serve_opts *o,
			 struct tsi_sync *sync, struct tsi_membership *m,
			 struct tsi_readers *readers);

/* View 0, the base ring.  It is destroyed last, by a function of its own. */
int tsi_view_table_make_base(struct tsi_view_table *t,
			     const struct tsi_geometry *g,
			     const struct tsi_ring_ident *id);
void tsi_view_table_destroy_base(struct tsi_view_table *t);

/*
 * Samples that lie in a GPU's memory: copied into the base ring, and noted for
 * the view there.  Without the lock.  After an error nothing was noted.  When
 * they are published, *unneeded is for tsi_residents_give_back().
 */
int tsi_view_table_commit(struct tsi_view_table *t,
			  const struct tsock_gpu_samples *from, uint64_t first,
			  unsigned count, struct tsi_resident_held **unneeded);

/* These were written into the base ring.  Without the lock. */
struct tsi_resident_held *tsi_view_table_written(struct tsi_view_table *t,
						 uint64_t first,
						 unsigned count);

/*
 * Write a sample, which is in its slot of the base ring, into these views, a bit
 * for each.  Without the lock; the sample is claimed.
 */
void tsi_view_table_convert(struct tsi_view_table *t, uint32_t views,
			    uint64_t s);

/* What all rings take together. */
uint64_t tsi_view_table_bytes(const struct tsi_view_table *t);

/*
 * The view of this spec; on a GPU, where the part is a rank's and no view has
 * all samples, one may have the rank's alone.  TSOCK_EAGAIN while it, or what it is made of, is
 * being made: ask again.  Another error if it can't be made.
 */
int tsi_view_table_find(struct tsi_view_table *t,
			const struct tsi_view_spec *spec,
			const struct tsi_ranks *part, unsigned *view);

/*
 * Reserve the second half of a view's ring, so that a reader can be detached,
 * or a part of it: this takes 50 ms or so.  Gives up the lock now and then;
 * whether all of it is there, the ring knows.  TSOCK_EREFUSED, TSOCK_ENOMEM.
 */
int tsi_view_table_reserve(struct tsi_view_table *t, unsigned view);

/* Free the views that have had no reader for a while. */
void tsi_view_table_sweep(struct tsi_view_table *t, int64_t now_ms);

/*
 * Free all views, and wait for their threads.  False: some threads are in a
 * call to a GPU that doesn't return, and still use the server.
 */
bool tsi_view_table_close(struct tsi_view_table *t);

#endif
