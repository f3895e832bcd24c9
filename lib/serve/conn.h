/* SPDX-License-Identifier: MIT */
/*
 * conn.h - the connection to a reader: its process, and its tail page.
 */
#ifndef TSI_SERVE_CONN_H
#define TSI_SERVE_CONN_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memfd.h"
#include "ring/ring.h"
#include "serve/returners.h"
#include "wire/msg.h"

struct tsi_peer;

struct tsi_conn {
	struct tsi_ring *ring; /* that it reads */
	struct tsi_memfd tail;
	int pidfd, sock; /* -1: none; there is one at least */
	bool may_kill;   /* pidfd is certainly the consumer's */
	bool killed;     /* we did that */
	bool stays;      /* it was said that it can't be detached */
	bool staged;     /* it copies to its GPU by itself */
	uint32_t pid, batch, world;
	uint32_t sure_pid; /* in our pid namespace; 0: not known */
	uint8_t nonce[TSI_NONCE];
	uint8_t job[TSOCK_JOB]; /* if it has several ranks */
};

/* None, with nothing to close. */
void tsi_conn_init(struct tsi_conn *c);

/*
 * A connection to the peer, which asked to join like that, with a tail page.
 * Process and socket remain the peer's until tsi_conn_attach().
 */
int tsi_conn_make(struct tsi_conn *c, const struct tsi_peer *peer,
		  const struct tsi_msg_join *join);

/* The peer does not become a reader: only the tail page is closed. */
void tsi_conn_give_up(struct tsi_conn *c);

/*
 * The peer becomes a reader: it gets a row of this ring, and its number as
 * tsi_ring_attach() gives it; or it loses the row.
 */
uint32_t tsi_conn_attach(struct tsi_conn *c, struct tsi_ring *r, unsigned row,
			 uint64_t start);
void tsi_conn_detach(const struct tsi_conn *c, unsigned row, const char *why);

/*
 * The consumer is told that it is detached; then it enters no other generation
 * of its ring than tsi_conn_generation() says.  Undone, it is a reader still.
 */
void tsi_conn_set_aside(const struct tsi_conn *c, unsigned row);
void tsi_conn_undo_set_aside(const struct tsi_conn *c, unsigned row);
uint32_t tsi_conn_generation(const struct tsi_conn *c);

/* Is the socket kept open? */
bool tsi_conn_keeps_sock(const struct tsi_conn *c);

/* What a reader gets: fills at most TSI_FDPASS_FDS, returns how many. */
unsigned tsi_conn_fds(const struct tsi_conn *c, int event, int *fds);

/* Does the connection bear this nonce? */
bool tsi_conn_is(const struct tsi_conn *c, const uint8_t *nonce);

/* The nonce that it bears, of TSI_NONCE bytes. */
const uint8_t *tsi_conn_nonce(const struct tsi_conn *c);

/* Its row in the record, at this mark. */
struct tsi_reader_row tsi_conn_row(const struct tsi_conn *c, uint64_t mark);

/* Close what is open. */
void tsi_conn_close(struct tsi_conn *c);

/* Has the consumer's process died, or hung up? */
bool tsi_conn_gone(const struct tsi_conn *c);

/* What is to be said of that. */
const char *tsi_conn_why_gone(const struct tsi_conn *c);

/* Does the consumer say that it is a reader no more? */
bool tsi_conn_left(const struct tsi_conn *c);

/* What a poll() has to wait for to see that. */
struct pollfd tsi_conn_poll(const struct tsi_conn *c);

/* The first sample that the consumer still needs, as it says. */
uint64_t tsi_conn_tail(const struct tsi_conn *c);

/* The head that the consumer waits for, asleep or spinning; 0: none. */
uint64_t tsi_conn_want(const struct tsi_conn *c);

/*
 * Kill the consumer once, if this kernel can tell for certain which process it
 * is: another reader has had to wait for it for so long.
 */
void tsi_conn_kill(struct tsi_conn *c, const struct tsi_conn *waiter,
		   int64_t held_ms);

/*
 * The consumer is detached: the other one has had to wait for it so long.  Or
 * it can't be, for the reason why, which is said once.
 */
void tsi_conn_tell_detached(const struct tsi_conn *c,
			    const struct tsi_conn *waiter, int64_t held_ms);
void tsi_conn_tell_stays(struct tsi_conn *c, const struct tsi_conn *waiter,
			 int64_t held_ms, const char *why);

/* The consumer, for people: its pid, and its process's name if known. */
#define TSI_CONN_WHO 80
const char *tsi_conn_who(const struct tsi_conn *c, char text[TSI_CONN_WHO]);

/* Its process; is that stopped, as far as can be seen? */
uint32_t tsi_conn_pid(const struct tsi_conn *c);
bool tsi_conn_stopped(const struct tsi_conn *c);

/* How many ranks its job has. */
uint32_t tsi_conn_world(const struct tsi_conn *c);

/* Is the one that asks to join another rank of its job? */
bool tsi_conn_is_of_job(const struct tsi_conn *c,
			const struct tsi_msg_join *join);

/* Where the samples end that it has taken. */
uint64_t tsi_conn_taken(const struct tsi_conn *c);

/* Its tail is there: how many samples does it hold, in how many batches? */
uint64_t tsi_conn_held(const struct tsi_conn *c, uint64_t tail,
		       uint32_t *batches);

/* What the connection knows of a row of the statistics. */
void tsi_conn_stats(const struct tsi_conn *c, struct tsock_stats_row *row);

#endif
