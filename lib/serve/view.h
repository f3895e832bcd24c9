/* SPDX-License-Identifier: MIT */
/*
 * view.h - one view: a ring made of another ring, for all its readers.
 *
 * A view has one more dtype, layout or place (a GPU) than the base ring; its
 * own thread (view_thread.c) fills it from its source.  If workers write a view
 * in host memory, its thread makes only the samples that were claimed before the
 * view began (membership_start.c).  The server's lock guards every field, and is
 * held when these functions are called.
 */
#ifndef TSI_SERVE_VIEW_H
#define TSI_SERVE_VIEW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "order/ranks.h"
#include "ring/ring.h"
#include "serve/view_broadcast.h"
#include "stage/stage.h"
#include "view/spec.h"

struct tsi_gpu_copies;
struct tsi_membership;
struct tsi_sync;
struct tsi_view_table;

enum tsi_view_phase {
	TSI_VIEW_EMPTY,
	TSI_VIEW_MAKING,
	TSI_VIEW_READY,
	TSI_VIEW_BROKEN, /* error says why; its thread has ended */
	TSI_VIEW_ENDING, /* its thread is to end, or has */
};

/* View 0 is the base: no thread, no conversion, always READY. */
struct tsi_view {
	struct tsi_view_table *table; /* that has it */
	unsigned id;
	enum tsi_view_phase phase;
	struct tsi_view_spec spec;
	struct tsi_ranks part; /* whose samples it has; world 1: all */
	struct tsi_geometry geometry;
	unsigned source; /* the view that it is made of */
	unsigned device; /* as this process numbers GPUs */
	enum tsi_stage_kind kind;
	struct tsi_stage *stage;
	struct tsi_ring ring;
	pthread_t thread;
	bool has_thread, thread_done;
	uint64_t age;     /* views made before it */
	bool source_lost; /* error says why */
	int64_t idle_ms;  /* since when it has had no reader */
	int code;
	char error[256];
	struct tsi_view_sending sending;
};

/* Its ring is made: consumers may join. */
void tsi_view_ready(struct tsi_view *v);

/* Its thread is to end; no consumer can join any more. */
void tsi_view_end(struct tsi_view *v);

/* From now on the view is made of source, by a stage of this kind. */
void tsi_view_set_source(struct tsi_view *v, unsigned source,
			 enum tsi_stage_kind kind);

/* Can it go on from the base ring when its source is lost? */
bool tsi_view_can_fall_back(const struct tsi_view *v);

/*
 * Samples first .. head-1 are in the view's ring; they were claimed in that
 * opening (tsi_membership_done()).  Readers may have them if they come next.
 */
void tsi_view_publish(struct tsi_view *v, uint32_t opening, uint64_t first,
		      uint64_t head);

/* Its source is lost, or it can't be filled: its thread will see. */
void tsi_view_source_lost(struct tsi_view *v, const char *why);

/*
 * The view is given up.  Its readers are told why; views made of it fail too,
 * or go on from the base ring.
 */
void tsi_view_fail(struct tsi_view *v, const char *why);

/* ---- for the view's own thread ---- */

/* Does it have the samples of one rank alone?  Then only views of the same rank
 * are made from it. */
bool tsi_view_is_part(const struct tsi_view *v);

/* The view of that number in the same table; and what the view is made of. */
struct tsi_view *tsi_view_nth(const struct tsi_view *v, unsigned i);
struct tsi_view *tsi_view_source(const struct tsi_view *v);

/*
 * What the view has, and what it shares with all views.  The view's own thread,
 * for which these do not change, may ask without the lock.
 */
unsigned tsi_view_id(const struct tsi_view *v);
unsigned tsi_view_device(const struct tsi_view *v);
struct tsi_ring *tsi_view_ring(struct tsi_view *v);
struct tsi_stage *tsi_view_stage(const struct tsi_view *v);
struct tsi_view_sending *tsi_view_sending(struct tsi_view *v);
struct tsi_membership *tsi_view_membership(const struct tsi_view *v);
struct tsi_gpu_copies *tsi_view_copies(const struct tsi_view *v);
struct tsi_sync *tsi_view_sync(const struct tsi_view *v);

/* Is its ring filled: can it be read, and its source too? */
bool tsi_view_is_filled(const struct tsi_view *v);

/* Is there such a view, made of this source by a stage of this kind? */
bool tsi_view_is_made_of(const struct tsi_view *v,
			 const struct tsi_view *source,
			 enum tsi_stage_kind kind);

/*
 * Is it on another GPU, with the samples as stored, filled from the host, and
 * ready or being made?  Of two views that are made at once only the older may
 * feed the younger.
 */
bool tsi_view_may_feed(const struct tsi_view *v, const struct tsi_view *to);

/* Wait until the other view is ready; false if it is no source after all. */
bool tsi_view_await(const struct tsi_view *v, const struct tsi_view *o,
		    int64_t until_ns);

/* Wait until more samples can go to the view, or something has changed. */
void tsi_view_wait(const struct tsi_view *v);

/*
 * Wait likewise for a view that had samples just now.  Waking this thread costs
 * the worker that publishes a sample more than converting the sample does, so
 * the thread sleeps until there are several, or the one that a reader waits
 * for; but for two milliseconds at the most, since a reader that begins to wait
 * meanwhile is not noticed.
 */
void tsi_view_wait_for_several(const struct tsi_view *v);

/*
 * Page-lock the base ring by way of the view's GPU, without the lock; true if
 * it is page-locked.
 */
bool tsi_view_pin_base(const struct tsi_view *v);

/*
 * Wait until no worker writes into the ring of a view that has ended: until the
 * samples are published that workers had claimed by then.
 */
void tsi_view_drain(const struct tsi_view *v);

/* Does the thread of another view still use this one's ring? */
bool tsi_view_has_dependents(const struct tsi_view *v);

#endif
