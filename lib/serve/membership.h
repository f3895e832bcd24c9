/*
 * membership.h - who reads, from where, and how far the writers may go.
 *
 * The rules of joining, leaving, epochs, pins and jumps as a pure state
 * machine: no clock, no I/O, no memory, no lock.  The server feeds it with
 * what happened and does what it says; tests drive it with made-up schedules.
 *
 * View 0 is the base ring, which workers fill.  Another view is filled by its
 * stage, which reads its source, the base ring or a third view, up to its own
 * head.  A view is active while somebody reads it, or a view that is made of
 * it.  One whose source may be lost (it is on another GPU) can be refed from
 * the base ring, which therefore keeps what that view needs next.
 */
#ifndef TSI_SERVE_MEMBERSHIP_H
#define TSI_SERVE_MEMBERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"

#define TSI_VIEWS 25
#define TSI_LAST (UINT64_C(1) << 62) /* no stream gets that far */

struct tsi_view_state {
	bool active;
	bool needs_base; /* it can be refed from there */
	unsigned source; /* the view that it is made of */
	uint64_t capacity;
	uint64_t base;    /* first sequence number since it began or jumped */
	uint64_t head;    /* first not yet published */
	uint64_t claimed; /* first not yet handed to be filled */
	uint64_t reading; /* first that its stage is reading; or TSI_NEVER */
	uint32_t opening; /* changes when it begins anew: see done() */
};

struct tsi_member {
	bool used;
	bool by_segment; /* its next epoch may begin at any segment */
	unsigned view;
	uint64_t start;
	uint64_t tail;
	uint64_t want;     /* the head that it waits for; 0 when it doesn't */
	int64_t moved_ms;  /* when the tail last moved */
	int64_t blocks_ms; /* since when others wait for it; or -1 */
	unsigned freed;    /* looks in a row in which nobody did */
};

struct tsi_membership_config {
	uint64_t epoch_len;   /* N */
	uint64_t join_window; /* W */
	uint64_t capacity;    /* of the base ring */
	uint64_t end;         /* TSI_NEVER: endless */
	unsigned segments;
	const uint64_t *bounds; /* segments + 1 places within an epoch */
	unsigned min_members;
};

struct tsi_membership {
	struct tsi_membership_config c;
	struct tsi_view_state view[TSI_VIEWS];
	struct tsi_member member[TSI_MAX_ROWS];
	unsigned count;
	unsigned rows;     /* none is used at or above it */
	bool started;      /* min_members were there once */
	bool jumping;      /* until the head reaches the last claim */
	uint64_t target;   /* of the jump */
	uint64_t greatest; /* greatest min(tail, head) ever seen */
	uint64_t given;    /* greatest start ever given */
	uint64_t last;     /* the same of who left last, or needs no more */
	int64_t looked_ms; /* by tsi_membership_slowest() */
};

struct tsi_join {
	unsigned view;     /* where it will read */
	uint64_t capacity; /* of that view's ring */
	uint32_t join;     /* enum tsock_join */
	bool leaves;       /* between two epochs */
	uint64_t after;    /* no start lies before it; 0: its first join */
};

struct tsi_claim {
	unsigned id;        /* the member, and its row */
	uint64_t start;     /* first sequence number */
	uint64_t epoch_end; /* where its first epoch ends */
	unsigned opened;    /* views that begin now, a bit for each */
};

void tsi_membership_init(struct tsi_membership *m,
			 const struct tsi_membership_config *c);

/*
 * View is made of source, which exists; before its first join.  needs_base: it
 * may be refed later.
 */
void tsi_membership_source(struct tsi_membership *m, unsigned view,
			   unsigned source, uint64_t capacity, bool needs_base);

/*
 * The view's source is lost, and nothing is on its way from there any more:
 * from now on it is made of the base ring.  False, and nothing is changed, if
 * the view began so late that the base ring had gone on already.
 */
bool tsi_membership_fall_back_to_base(struct tsi_membership *m, unsigned view);

/*
 * Where a join would start; TSOCK_EENDED when the stream ends before the epoch
 * from there does.  Only the first epoch of TSOCK_JOIN_NOW is a short one.
 */
int tsi_membership_forecast(const struct tsi_membership *m,
			    const struct tsi_join *j, uint64_t *start);

/* Claim.  Fails with EENDED, or EREFUSED when there are too many. */
int tsi_membership_join(struct tsi_membership *m, const struct tsi_join *j,
			int64_t now_ms, struct tsi_claim *out);

/*
 * A tail was read.  TSOCK_EPROTO for one that goes back, or beyond all bounds:
 * its owner is to be given up.  One beyond the head is fine: its owner skips.
 */
int tsi_membership_tail(struct tsi_membership *m, unsigned id, uint64_t tail,
			int64_t now_ms);

/* A member left, died, or was given up.  Its view ends with its last one. */
void tsi_membership_leave(struct tsi_membership *m, unsigned id);

/* First sequence number of a view that may not be filled yet. */
uint64_t tsi_membership_limit(const struct tsi_membership *m, unsigned view);

/* Hand up to want samples of a view to be filled; returns how many. */
unsigned tsi_membership_claim(struct tsi_membership *m, unsigned view,
			      unsigned want, uint64_t *first);

/* A stage reads base samples from first on, or (TSI_NEVER) has finished. */
void tsi_membership_reading(struct tsi_membership *m, unsigned view,
			    uint64_t first);

/* Everything below head is published. */
void tsi_membership_head(struct tsi_membership *m, unsigned view,
			 uint64_t head);

/*
 * Samples first .. head-1 of a view, which were taken when its opening was
 * that, are in its ring: true if they come next, and are published.  A view may
 * have ended meanwhile, and begun again: what was taken before is no part of
 * that, even where the numbers would fit.
 */
bool tsi_membership_done(struct tsi_membership *m, unsigned view,
			 uint32_t opening, uint64_t first, uint64_t head);

/*
 * The stream is over: whoever is a member needs nothing more, and nobody who
 * might come could get an epoch any more.
 */
bool tsi_membership_ended(const struct tsi_membership *m);

/* Carry out a jump that is due: true when heads moved, of any active views. */
bool tsi_membership_apply_jump(struct tsi_membership *m);

/*
 * What a view's writer waits for when it is at its limit: a tail beyond *gate,
 * or one at *front or more.  TSI_NEVER where no tail would help.  If views are
 * made of that one, a tail in one of these beyond its own next start, too.
 */
void tsi_membership_waits(const struct tsi_membership *m, unsigned view,
			  uint64_t *gate, uint64_t *front);

/*
 * The first start of an epoch (of a segment, for those who join by segment and
 * leave) that none of a view's own readers has passed; TSI_NEVER without any.
 */
uint64_t tsi_membership_next_start(const struct tsi_membership *m,
				   unsigned view);

/* Is a view made of ring, straight or by way of others? */
bool tsi_membership_made_of(const struct tsi_membership *m, unsigned view,
			    unsigned ring);

/* ---- slow readers: membership_slow.c ---- */

/* A member waits for that head of its view; 0: it doesn't wait. */
void tsi_membership_want(struct tsi_membership *m, unsigned id, uint64_t want);

/*
 * The member that has held up another one, which waited, for at least slow_ms;
 * -1 when there is none.  To be asked again and again: it is held to be so all
 * the time when it is so whenever this looks.
 */
int tsi_membership_slowest(struct tsi_membership *m, int64_t now_ms,
			   int64_t slow_ms);

#endif
