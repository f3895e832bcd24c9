/* SPDX-License-Identifier: MIT */
/*
 * membership.h - the readers of a stream: where each one starts, and how far
 * the writers may go.
 *
 * The rules of joining, leaving, epochs, pins and jumps as a pure state
 * machine: no clock, no I/O, no memory, no lock.  The server reports events to
 * it and carries out its answers; tests drive it with made-up schedules.
 *
 * View 0 is the base ring, which workers fill.  Any other view is filled by
 * its stage, which reads the view's source (the base ring or another view) up
 * to the source's head.  A view is active while it has a reader, or while a
 * view made of it is active.  A view whose source may be lost, because the
 * source is on another GPU, can fall back to the base ring, which therefore
 * keeps the samples that this view needs next.
 *
 * Workers may write a view of the base ring together with that ring: from the
 * first sample on that isn't claimed yet when the view begins.  The view's stage
 * makes the samples before that one, and then has nothing to do: the view's head
 * moves with the base ring's.  No worker can claim a sample that has no room in
 * such a view.
 */
#ifndef TSI_SERVE_MEMBERSHIP_H
#define TSI_SERVE_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sequence.h"
#include "tsock/tsock.h"

#define TSI_MAX_MEMBERS 256
#define TSI_VIEWS 25
#define TSI_LAST (UINT64_C(1) << 62) /* no stream gets that far */

struct tsi_view_state {
	bool active;
	bool needs_base; /* it can fall back to the base ring */
	bool with_base;  /* workers write it, too, while it is active */
	unsigned source; /* the view that it is made of */
	uint64_t capacity;
	uint64_t base;    /* first sequence number since it began or jumped */
	uint64_t head;    /* first not yet published */
	uint64_t claimed; /* first not yet handed out to be filled ... */
	uint64_t taken;   /* ... and to its stage: the same, unless workers
			   * write the view, too ... */
	uint64_t joint;   /* ... from here on; TSI_NEVER: they don't */
	uint64_t drained; /* when it ended last, workers had samples below this
			   * one, and may write them until these are published */
	uint64_t reading; /* first that its stage is reading; or TSI_NEVER */
	uint32_t opening; /* changes when it begins anew: see done() */
	/* Samples from since on are in half (generation - 1) & 1 of the ring,
	 * those before it in the other half, or, in the first, nowhere. */
	uint32_t generation;
	uint64_t since;
	unsigned abandoned[2]; /* detached readers that have that half */
};

struct tsi_member {
	bool used;
	bool by_segment; /* its next epoch may begin at any segment */
	unsigned view;
	uint64_t start;
	uint64_t tail;
	uint64_t want;     /* the head that it waits for; 0: it doesn't wait */
	int64_t moved_ms;  /* when the tail last moved */
	int64_t blocks_ms; /* since when other members wait for it; or -1 */
	unsigned freed;    /* looks in a row at which no member waited for it */
	int waiter;        /* at the last look, a member that waits; or -1 */
	uint32_t generation; /* whose samples it may look at; 0: of none yet */
	bool detached;       /* no member, but the number is still its own */
	int half;            /* if detached: what it has of the ring; or -1 */
};

struct tsi_membership_config {
	uint64_t epoch_len;   /* N */
	uint64_t join_window; /* W */
	uint64_t capacity;    /* of the base ring */
	uint64_t first;       /* that it begins with: an epoch's first one, */
	uint64_t begins;      /* ... or this, before which nothing is read */
	uint64_t end;         /* TSI_NEVER: endless */
	unsigned segments;
	const uint64_t *bounds; /* segments + 1 offsets within an epoch */
	unsigned min_members;
};

struct tsi_membership {
	struct tsi_membership_config c;
	uint64_t first_end; /* what c.end was: no reader knows of more */
	struct tsi_view_state view[TSI_VIEWS];
	struct tsi_member member[TSI_MAX_MEMBERS];
	unsigned count;
	unsigned rows;     /* no member has this number or a higher one */
	bool started;      /* there were min_members at some time, or one that
			    * returned, or that joined during a hold, or
			    * tsi_membership_start() */
	uint64_t hold;     /* all from there on are kept; or TSI_NEVER */
	uint64_t kept;     /* the same, for ranks of jobs that have begun */
	bool jumping;      /* until the head reaches the last claim */
	uint64_t target;   /* of the jump */
	uint64_t greatest; /* greatest min(tail, head) ever seen */
	uint64_t furthest; /* greatest start given, or claim before a jump */
	uint64_t common;   /* the same, without far starts of one job alone */
	uint64_t last;     /* min(tail, head) of the last member that left, or
			    * that needs no more samples */
	int64_t looked_ms; /* by tsi_membership_look() */
};

struct tsi_join {
	unsigned view;  /* that the member will read */
	uint32_t join;  /* enum tsock_join */
	bool leaves;    /* between two epochs */
	uint64_t after; /* no start lies before it; 0: its first join */
	uint64_t from;  /* likewise, and the stream may be far from it */
	unsigned ours;  /* with from: the members that are ranks of its job, */
	bool others;    /* and is a start kept for ranks of another job? */
	uint64_t read;  /* with after 0: the end of what its process has read
			 * before, of this stream or of one that was begun
			 * before it */
	bool read_here; /* it was this one */
	bool continues; /* alone, it takes the stream there */
	bool together;  /* a rank: others of its job begin there by any view */
	bool exact;     /* the start is after, and nowhere else */
	bool moves;     /* it was a reader before: a sole one takes the
			 * stream there, however far */
	bool returns;   /* it has begun an epoch with a producer before this */
	bool detached;  /* it was detached, at after: it goes on there or at
			 * the newest sample, whichever is later */
	uint64_t end;   /* exact, detached: where the epoch ends; 0: an epoch
			 * later */
};

/* What a reader got when it joined. */
struct tsi_joined {
	unsigned id;        /* of the member, and of its row */
	uint64_t start;     /* first sequence number */
	uint64_t epoch_end; /* where its first epoch ends */
	unsigned opened;    /* views that began by it, a bit for each */
};

void tsi_membership_init(struct tsi_membership *m,
			 const struct tsi_membership_config *c);

/*
 * Are there members, but too few for the first sample to be made?  start: from
 * now on the members that are there are enough.
 */
bool tsi_membership_lacks_members(const struct tsi_membership *m);
unsigned tsi_membership_lacks(const struct tsi_membership *m); /* how many */
void tsi_membership_start(struct tsi_membership *m);

/*
 * The stream ends after that epoch, or after a later one, which a reader has
 * begun or was promised, or of which a sample was handed out while there are
 * readers; never later than was said before.  EAGAIN: during a hold nobody
 * knows where readers are.  EARG: no stream comes that far.
 */
int tsi_membership_end_after(struct tsi_membership *m, uint64_t epoch);

/* The first sample that the stream will never have, and the number of the epoch
 * that has it; TSI_NEVER and 0: it goes on. */
uint64_t tsi_membership_end(const struct tsi_membership *m);
uint64_t tsi_membership_epochs(const struct tsi_membership *m);

/*
 * Before the first join of a view: the view is made of source, which exists.
 * needs_base: the view may fall back to the base ring later.
 */
void tsi_membership_source(struct tsi_membership *m, unsigned view,
			   unsigned source, uint64_t capacity, bool needs_base);

/*
 * After tsi_membership_source(), for a view of the base ring that is no smaller
 * than that: workers write it, too.
 */
void tsi_membership_with_base(struct tsi_membership *m, unsigned view);

/*
 * The first sample of a view that workers write as they write the base ring's;
 * TSI_NEVER: none.
 */
uint64_t tsi_membership_joint(const struct tsi_membership *m, unsigned view);

/* Is the view one where the writer of the base ring waits for room? */
bool tsi_membership_holds_base(const struct tsi_membership *m, unsigned view);

/* Does no worker write into the ring of a view that has ended any more? */
bool tsi_membership_drained(const struct tsi_membership *m, unsigned view);

/*
 * The view's source is lost, and no samples are on their way from there: from
 * now on the view is made of the base ring.  False, and nothing is changed, if
 * the view began so late that the base ring no longer holds its next sample.
 */
bool tsi_membership_fall_back_to_base(struct tsi_membership *m, unsigned view);

/*
 * Before the first join, or while there is no member and nothing is being made:
 * the stream goes on from this sample, and all from there on are kept until the
 * hold is given up, for members that have still to come.  As long as there is a
 * hold the stream doesn't jump, and doesn't end.
 */
void tsi_membership_hold(struct tsi_membership *m, uint64_t from);
/* May a reader have been at this sample?  No hold is asked for elsewhere. */
bool tsi_membership_can_hold(const struct tsi_membership *m, uint64_t from);
/* No more is kept than from there on, where that is further than before. */
void tsi_membership_follow_hold(struct tsi_membership *m, uint64_t from);
void tsi_membership_give_up_hold(struct tsi_membership *m);
/*
 * All samples from there on are kept for ranks whose job has begun there, and
 * whose others have left; TSI_NEVER: none are.  A member has that start now, or
 * it was kept before.
 */
void tsi_membership_keep(struct tsi_membership *m, uint64_t from);
uint64_t tsi_membership_kept(const struct tsi_membership *m);
/* The first sample that is held or kept; TSI_NEVER: none is. */
uint64_t tsi_membership_held_from(const struct tsi_membership *m);

/*
 * Where a join would start; TSOCK_EENDED when the stream ends before the epoch
 * from there does.  Only the first epoch of TSOCK_JOIN_NOW is a short one.
 * TSOCK_EAGAIN: the stream has to go back for it, and will when the samples
 * that are being made are published.  TSOCK_EREFUSED for an exact start that
 * isn't held, and that the stream can't be moved to; also where the view holds
 * that start, but the rings that it is made of no longer hold the next one.
 */
int tsi_membership_forecast(const struct tsi_membership *m,
			    const struct tsi_join *j, uint64_t *start);

/*
 * A reader joins.  Fails as the forecast does, or with EREFUSED when there are
 * too many.  Where the stream went back, a jump is due at once, and has to be
 * carried out before the reader sees a head.
 */
int tsi_membership_join(struct tsi_membership *m, const struct tsi_join *j,
			int64_t now_ms, struct tsi_joined *out);

/*
 * A member's tail was read.  TSOCK_EPROTO for a tail that goes back, or beyond
 * all bounds: the server then drops this member.  A tail beyond the head is
 * fine: the member skips samples.  A tail below the member's start counts as
 * the start, since no tail is written before the rings are mapped.
 */
int tsi_membership_tail(struct tsi_membership *m, unsigned id, uint64_t tail,
			int64_t now_ms);

/* A member left, died, or was dropped.  A view ends with its last member. */
void tsi_membership_leave(struct tsi_membership *m, unsigned id);

/* First sequence number of a view that may not be filled yet. */
uint64_t tsi_membership_limit(const struct tsi_membership *m, unsigned view);

/* Hand out up to want samples of a view to be filled; returns how many. */
unsigned tsi_membership_claim(struct tsi_membership *m, unsigned view,
			      unsigned want, uint64_t *first);

/* Samples of the base ring below this one, which is no limit's, were handed out
 * without asking. */
void tsi_membership_claimed_to(struct tsi_membership *m, uint64_t claimed);

/*
 * A view's stage reads samples of its source from first on, or (TSI_NEVER) has
 * finished.
 */
void tsi_membership_reading(struct tsi_membership *m, unsigned view,
			    uint64_t first);

/* All samples below head are published. */
void tsi_membership_published(struct tsi_membership *m, unsigned view,
			      uint64_t head);

/*
 * Samples first .. head-1 of a view are in its ring; they were claimed when the
 * view's opening was the given one.  True if they come next: then they are
 * published.  A view may have ended and begun again meanwhile; samples claimed
 * before that are no part of the new opening, even where the numbers would fit.
 */
bool tsi_membership_done(struct tsi_membership *m, unsigned view,
			 uint32_t opening, uint64_t first, uint64_t head);

/*
 * The stream is over: no member needs another sample, and a reader that joins
 * could not get an epoch any more.
 */
bool tsi_membership_ended(const struct tsi_membership *m);

/* Carry out a jump that is due: true when heads of active views moved. */
bool tsi_membership_apply_jump(struct tsi_membership *m);

/*
 * What a view's writer waits for when it is at its limit: a tail beyond *gate,
 * or a tail at *front or beyond.  TSI_NEVER where no tail would help.  If other
 * views are made of this one, it also waits for a tail in one of these views
 * to pass tsi_membership_next_start() of that view.
 */
void tsi_membership_waits(const struct tsi_membership *m, unsigned view,
			  uint64_t *gate, uint64_t *front);

/*
 * The first start of an epoch (of a segment, for members that join by segment
 * and leave) that none of a view's own readers has passed; TSI_NEVER without
 * readers.
 */
uint64_t tsi_membership_next_start(const struct tsi_membership *m,
				   unsigned view);

/* ---- questions ---- */

/*
 * The first member from number *id on: true, and *id is its number.  For a walk
 * over all members, during which members may leave.
 */
bool tsi_membership_next(const struct tsi_membership *m, unsigned *id);

/* Does the view have a reader, or a view that is made from it? */
bool tsi_membership_active(const struct tsi_membership *m, unsigned view);

/* The first sample of a view that isn't published; or isn't handed out yet, to
 * the view's stage or for the base ring. */
uint64_t tsi_membership_head(const struct tsi_membership *m, unsigned view);
uint64_t tsi_membership_claimed(const struct tsi_membership *m, unsigned view);

/* What tsi_membership_done() has to be told of samples that are claimed now. */
uint32_t tsi_membership_opening(const struct tsi_membership *m, unsigned view);

/* Is there a sample of the view that may be handed out now? */
bool tsi_membership_may_claim(const struct tsi_membership *m, unsigned view);

/* Does the view's source have samples that the view could be filled with? */
bool tsi_membership_has_input(const struct tsi_membership *m, unsigned view);

/* Is the last sample of the stream handed out; is it published in a view? */
bool tsi_membership_all_claimed(const struct tsi_membership *m);
bool tsi_membership_complete(const struct tsi_membership *m, unsigned view);

/* Is there a jump to come, of which tsi_membership_apply_jump() asks? */
bool tsi_membership_jumping(const struct tsi_membership *m);

/* What it knows of the statistics: of the stream, and of a member. */
void tsi_membership_stats(const struct tsi_membership *m,
			  struct tsock_stats *st);
void tsi_membership_stats_row(const struct tsi_membership *m, unsigned id,
			      struct tsock_stats_row *row);

/* Is a view made of this ring, directly or by way of other views? */
bool tsi_membership_made_of(const struct tsi_membership *m, unsigned view,
			    unsigned ring);

/* ---- slow readers: membership_slow.c ---- */

/* A member waits for that head of its view; 0: it doesn't wait. */
void tsi_membership_want(struct tsi_membership *m, unsigned id, uint64_t want);

/* A member that others have had to wait for. */
struct tsi_slow {
	unsigned id;
	unsigned waiter; /* a member that waits for it now */
	int64_t held_ms; /* how long other members have waited, so far */
};

/*
 * Look which readers wait for which; false when the last look was a moment
 * ago.  Call this often: what happened between two looks is taken to be what
 * both saw.
 */
bool tsi_membership_look(struct tsi_membership *m, int64_t now_ms);

/*
 * The first member from number *id on that others, at the last look, had waited
 * for during at least slow_ms; false when there is none.
 */
bool tsi_membership_slow(const struct tsi_membership *m, unsigned *id,
			 int64_t slow_ms, struct tsi_slow *out);

/* What a member that waits, waits for. */
enum tsi_awaits {
	TSI_AWAITS_NOTHING, /* it doesn't wait */
	TSI_AWAITS_MEMBER,  /* another member, which has samples to read */
	TSI_AWAITS_START,   /* members that the first sample waits for */
	TSI_AWAITS_HOLD,    /* members that have still to come */
	TSI_AWAITS_VIEW,    /* its view, which lacks what its source has */
	TSI_AWAITS_SAMPLES, /* samples that are being made */
};

/* *member: if so, which.  What members want has to be known. */
enum tsi_awaits tsi_membership_awaits(const struct tsi_membership *m,
				      unsigned id, unsigned *member);

/* Its tail; and when that was last seen to move, or it joined. */
uint64_t tsi_membership_tail_of(const struct tsi_membership *m, unsigned id);
int64_t tsi_membership_moved_ms(const struct tsi_membership *m, unsigned id);

/* ---- detached readers: membership_slow.c ---- */

/*
 * A ring that has memory for two, its halves, can leave one of them to readers
 * that are detached, and go on in the other one.  So it has generations: the
 * samples of each are in one half, and the next generation is in the other.
 */

/* The generation of a view's ring, and the first sample of it. */
uint32_t tsi_membership_generation(const struct tsi_membership *m,
				   unsigned view, uint64_t *since);

/* A member says that it may look at samples of that generation. */
void tsi_membership_entered(struct tsi_membership *m, unsigned id,
			    uint32_t generation);

enum tsi_detach {
	/* What it may look at is abandoned already, or it is nothing. */
	TSI_DETACH_FREE,
	/* The ring has to go on in its other half, which is free. */
	TSI_DETACH_TURN,
	/* It may look at samples in both halves, or the other half is still
	 * needed: detached readers have it, or members, or stages. */
	TSI_DETACH_NEVER,
};

/* Can that member be detached now? */
enum tsi_detach tsi_membership_may_detach(const struct tsi_membership *m,
					  unsigned id);

/*
 * The member, which may be detached, is no member any more; nothing of what it
 * may look at is written over until it has let go, and until then its number is
 * its own.  The ring has another generation then, if it had to.
 */
void tsi_membership_detach(struct tsi_membership *m, unsigned id);
void tsi_membership_let_go(struct tsi_membership *m, unsigned id);

/* Is it detached?  Is there one that had this view? */
bool tsi_membership_is_detached(const struct tsi_membership *m, unsigned id);
bool tsi_membership_has_detached(const struct tsi_membership *m, unsigned view);

/* As tsi_membership_next(), over members and those that are detached. */
bool tsi_membership_next_row(const struct tsi_membership *m, unsigned *id);

/* The view of a member, or of one that is detached; has it this one? */
unsigned tsi_membership_view(const struct tsi_membership *m, unsigned id);
bool tsi_membership_has(const struct tsi_membership *m, unsigned id,
			unsigned view);

#endif
