/* SPDX-License-Identifier: MIT */
/*
 * returners.h - the readers of the producer before, which was started again:
 * which of them have still to return, and where the stream goes on.
 *
 * A pure table: no clock, no I/O.  The readers come from the record (record.h),
 * each with a mark: a tail that the producer before had seen, so that the
 * reader is there or further on.
 *
 * First the returners are collected, until all have asked to join or for half a
 * second, and nobody else joins.  Then the stream goes on at the least of their
 * positions, or of the marks of those that haven't asked yet.  Samples from
 * there on are held, until all have become readers again or are no more.  A
 * reader that still reads what the producer before has made doesn't ask: where
 * its tail can be seen it counts in the mark's place, and what is held follows
 * it.  Each is waited for a time of grace, from the start or from the last time
 * that its tail moved.
 */
#ifndef TSI_SERVE_RETURNERS_H
#define TSI_SERVE_RETURNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"
#include "wire/record_file.h"

#define TSI_RETURNERS 256
#define TSI_RETURNERS_GRACE_MS 60000

struct tsi_returner {
	bool used, asked;
	struct tsi_reader_row row;
	uint64_t position; /* if it has asked */
	int64_t asked_ms;  /* the last time */
	uint64_t tail;     /* as it was seen last; 0: it wasn't */
	int64_t moved_ms;  /* when that was seen to move, or it was added */
};

enum tsi_returning {
	TSI_RETURNING_NOBODY, /* has still to return */
	TSI_RETURNING_COLLECTED,
	TSI_RETURNING_HELD,
};

struct tsi_returners {
	enum tsi_returning phase;
	int64_t since_ms;
	int64_t looked_ms; /* the last time */
	uint64_t held;     /* if so: from there on */
	unsigned count;    /* that have still to return */
	struct tsi_returner returner[TSI_RETURNERS];
};

/* What is to be done. */
enum tsi_returners_step {
	TSI_RETURNERS_WAIT,
	TSI_RETURNERS_HOLD,    /* go on at *from, and hold */
	TSI_RETURNERS_FOLLOW,  /* hold no more than from *from on */
	TSI_RETURNERS_RELEASE, /* hold no longer */
};

/* Before the first step: one of the readers before.  False: too many. */
bool tsi_returners_add(struct tsi_returners *t,
		       const struct tsi_reader_row *row, int64_t now_ms);

/* A consumer asks to join: was it one of them?  Then that is noted. */
bool tsi_returners_ask(struct tsi_returners *t, const struct tsi_msg_join *j,
		       int64_t now_ms);

/* May nobody join, since the stream's place isn't known yet? */
bool tsi_returners_collect(const struct tsi_returners *t);

/* What is known of the one that had, or asked for a claim as the one that had
 * had, this nonce; NULL: it isn't awaited. */
const struct tsi_reader_row *tsi_returners_find(const struct tsi_returners *t,
						const uint8_t *was);

/* A former reader is one again; true if it was awaited. */
bool tsi_returners_take(struct tsi_returners *t, const uint8_t *was);

/*
 * The first from number *i on that has still to return; NULL: none.  For a walk
 * over all, during which they may be given up.
 */
const struct tsi_reader_row *tsi_returners_next(const struct tsi_returners *t,
						unsigned *i);

/* It asked, and then was silent for so long that it must have given up. */
bool tsi_returners_silent(const struct tsi_returners *t, unsigned i,
			  int64_t now_ms);

/*
 * Before that is asked, and often: when the last time is long ago, this process
 * was stopped, and the silence of the returners is its own.
 */
void tsi_returners_look(struct tsi_returners *t, int64_t now_ms);

/* Its tail, in the ring of the producer before, as it is now. */
void tsi_returners_see(struct tsi_returners *t, unsigned i, uint64_t tail,
		       int64_t now_ms);

/* Its time of grace is over. */
bool tsi_returners_late(const struct tsi_returners *t, unsigned i,
			int64_t now_ms);

/* That reader won't come. */
void tsi_returners_give_up(struct tsi_returners *t, unsigned i);

/* What is due.  HOLD comes once, and RELEASE once all are back or given up. */
enum tsi_returners_step tsi_returners_step(struct tsi_returners *t,
					   int64_t now_ms, uint64_t *from);

#endif
