/* SPDX-License-Identifier: MIT */
/*
 * membership_world.h - a model of a stream, for random schedules: the
 * producer's side.  It knows what is in every slot of every ring.
 *
 * A base ring, views, some of which workers write, too, and views made of views;
 * stages with one lane or two;
 * readers that join in every way, leave between epochs or hold, break off, skip
 * short batches, and die; tails that the producer sees late; streams that end;
 * readers that are stopped between any two steps, detached, and go on, also when
 * their producer has died meanwhile, in the ring that it has left them.
 */
#ifndef TEST_LIB_MEMBERSHIP_WORLD_H
#define TEST_LIB_MEMBERSHIP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "serve/membership.h"

#define PEOPLE 6
#define RINGS 6 /* the base and five views */
#define MOST_C 64
#define MOST_CAP (MOST_C + 8)
#define SPOILT UINT64_MAX
#define PRODUCERS 4 /* the last ones: their rings outlive them */

struct person {
	bool in;    /* a member */
	bool lost;  /* it was one when its producer died, and will return */
	bool again; /* left between two epochs, or broke off: will come back */
	unsigned id, view;
	uint32_t join;
	bool leaves, drop_last;
	bool liar;     /* its tail is far beyond what it has read */
	uint64_t p;    /* first sample not yet taken */
	uint64_t tail; /* as its tail page says */
	uint64_t seen; /* as the producer has last seen it */
	uint64_t end, after, b;
	/* Its process: where the epoch ends that it has read to its end, and the
	 * producer of then.  The next person may be the same process. */
	uint64_t read, read_of;
	bool continues;
	unsigned epochs_done;
	bool detached;     /* no member any more, and hasn't seen it yet */
	uint64_t producer; /* whose ring it has */
	uint64_t n;        /* samples from p on that it is about to look at */
	uint64_t held; /* it may look at samples from tail on and below this */
	/* What it knows of its ring: the generation that it has entered. */
	uint32_t generation;
	uint64_t since;
};

struct run {
	uint64_t first;
	unsigned n;
	uint32_t opening;
};

struct world {
	uint64_t seed;           /* of this world */
	struct tsi_membership m; /* what is tested */
	uint64_t rng;
	uint64_t n, w, c, end;
	uint64_t cap[RINGS];
	uint64_t producer; /* how many there were before it */
	/* The slots of either half of a ring. */
	uint64_t slot[PRODUCERS][RINGS][2][MOST_CAP];
	uint64_t pending[MOST_C * 2]; /* claimed, unpublished, by order */
	bool written[MOST_C * 2];
	unsigned views[MOST_C * 2]; /* that are written with it, a bit each */
	unsigned with_base;         /* the views that may be among these */
	unsigned npending;
	struct run run[RINGS][2]; /* under way in a stage, the oldest first */
	unsigned nruns[RINGS], lanes[RINGS];
	struct person who[PEOPLE];
	unsigned people;
	struct person *alone; /* the only reader, if nobody has joined since */
	uint64_t bounds[5];
	unsigned segments;
	bool detaches; /* readers may be detached: the front may go back */
	bool spare;    /* the base ring holds what view 4 needs next */
};

extern struct world world;

#define check(what) \
	do { \
		if (!(what)) { \
			print_error("%s (line %d, seed %llu)\n", #what, \
				    __LINE__, (unsigned long long)world.seed); \
			fail(); \
		} \
	} while (0)

/*
 * Another world, of this seed alone; in some, readers may be detached.  with_base
 * has a bit for each view, of 1 and 2, that workers write, too.
 */
void world_make(uint64_t seed, bool detaches, unsigned with_base);

/*
 * The producer dies, and is started again: nothing is in the rings, and all
 * from this sample on will be kept until the hold is given up.
 */
void world_restart(uint64_t from);

/* A number below this one, by the world's own dice. */
uint64_t world_random(uint64_t below);

/* Which sample is in the slot of sample s; SPOILT: none. */
uint64_t *world_slot(unsigned view, uint64_t s);

/* The slot where a reader that may be detached looks for it; in the ring of its
 * own producer, which may have died. */
uint64_t *world_slot_of(const struct person *q, uint64_t s);

/* Is its producer dead?  And will the next death end what is kept of its ring? */
bool world_outlives(const struct person *q);
bool world_forgets(const struct person *q);

/* ---- what workers and stages do, each a step ---- */

/* Nothing is made for nobody, nor over what somebody needs. */
void world_claim(void);
void world_publish(void);
void world_stage_begin(unsigned v);
/* The oldest run ends.  Only now is it certain what it has read. */
void world_stage_end(unsigned v);

/* What a view's stage reads is the least of the runs under way. */
void world_state_reading(unsigned v);

#endif
