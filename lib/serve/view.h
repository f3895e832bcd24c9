/* SPDX-License-Identifier: MIT */
/*
 * view.h - one view: a ring made of another ring, for all its readers.
 *
 * A view has one more dtype, layout or place (a GPU) than the base ring; its
 * own thread (view_thread.c) fills it from its source.  The server's lock
 * guards every field, and is held when these functions are called.
 */
#ifndef TSI_SERVE_VIEW_H
#define TSI_SERVE_VIEW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"
#include "stage/stage.h"
#include "view/spec.h"

struct tsock_server;
struct tsi_broadcast;

enum tsi_view_phase {
	TSI_VIEW_EMPTY,
	TSI_VIEW_MAKING,
	TSI_VIEW_READY,
	TSI_VIEW_BROKEN, /* error says why; its thread has ended */
	TSI_VIEW_ENDING, /* its thread is to end, or has */
};

/* View 0 is the base: no thread, no conversion, always READY. */
struct tsi_view {
	struct tsock_server *server;
	unsigned id;
	enum tsi_view_phase phase;
	struct tsi_view_spec spec;
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

	/* view_broadcast.c */
	bool busy;        /* samples are on their way to it ... */
	uint32_t opening; /* ... which were claimed in this opening */
	bool sending;     /* its samples are broadcast */
	struct tsi_broadcast *broadcast; /* that sends them */
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

/* Does the thread of another view still use this one's ring? */
bool tsi_view_has_dependents(const struct tsi_view *v);

#endif
