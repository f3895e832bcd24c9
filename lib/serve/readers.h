/* SPDX-License-Identifier: MIT */
/*
 * readers.h - the readers of a stream, as they join, leave, or are too slow.
 *
 * A reader is a member (membership.h) with a connection (conn.h), both of the
 * same number, which is also that of its row in the ring's header.  The
 * server's lock is held when these functions are called.
 */
#ifndef TSI_SERVE_READERS_H
#define TSI_SERVE_READERS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "serve/conn.h"
#include "serve/gate.h"
#include "serve/jobs.h"
#include "serve/last_tail.h"
#include "serve/membership.h"
#include "serve/offers.h"
#include "serve/record.h"
#include "serve/returners.h"
#include "serve/sync.h"
#include "wire/fdpass.h"

/* A member and its row in the ring's header have the same number. */
_Static_assert(TSI_MAX_MEMBERS == TSI_MAX_ROWS, "one row for each member");

struct tsi_readers {
	struct tsi_sync *sync;
	struct tsi_gate *gate;
	struct tsi_membership *membership;
	struct tsi_offers *offers;
	struct tsi_jobs jobs;
	struct tsi_returners returners;
	struct tsi_last_tail last_tail[TSI_RETURNERS]; /* of each of these */
	struct tsi_record record;
	int64_t marked_ms; /* when tails were last recorded */
	struct tsi_conn conn[TSI_MAX_MEMBERS];
	uint32_t slow; /* enum tsock_slow: the policy */
	int64_t slow_ms;
	int64_t min_wait_ms; /* for the consumers that begin a stream; or 0 */
	int64_t lacks_since_ms; /* since when some of them are there */
	int64_t retry_ms;       /* no memory for a half is asked for before */
	uint32_t detached;      /* consumers, so far */
	bool over;
};

void tsi_readers_init(struct tsi_readers *r, struct tsi_sync *sync,
		      struct tsi_gate *gate, struct tsi_membership *m,
		      struct tsi_offers *offers, uint64_t epoch_len);
void tsi_readers_fini(struct tsi_readers *r);

/*
 * Before anybody can join: keep a record of the readers of the stream that this
 * number stands for, and wait for those that the record has from the producer
 * before.  Returns the lineage of the stream: this one, or where there are such
 * readers that of the record.
 */
uint64_t tsi_readers_keep_record(struct tsi_readers *r, const char *folder,
				 const char *name, uint64_t stream,
				 uint64_t lineage);
/* The files beside the sockets were removed: the next save makes it anew. */
void tsi_readers_record_again(struct tsi_readers *r, const char *folder,
			      const char *name);
/*
 * By the control thread: what has changed goes to the file.  The lock is given
 * up meanwhile, so what was known before may not be so any more.
 */
void tsi_readers_save_record(struct tsi_readers *r);
/* At the end: the next producer waits for those that read now, or doesn't. */
void tsi_readers_leave_record(struct tsi_readers *r, bool keep);

/*
 * A consumer asks to join that was a reader of the producer before: its
 * position is noted.
 */
void tsi_readers_note_return(struct tsi_readers *r,
			     const struct tsi_msg_join *join);

/*
 * A consumer asks to join: where it would start, or an error if it can't.
 * TSOCK_EAGAIN: other ranks of its job haven't asked yet, or the readers of the
 * producer before haven't.
 */
int tsi_readers_forecast(struct tsi_readers *r, const struct tsi_msg_join *join,
			 unsigned view, uint64_t *start);

/*
 * A consumer with an offer becomes a reader: it gets a tail page and a row, and
 * its true start is fixed.  On success the peer's pidfd is the reader's, and so
 * is its socket if a->keep_sock says so.
 */
int tsi_readers_join(struct tsi_readers *r, const struct tsi_offer *o,
		     const struct tsi_peer *peer, struct tsi_reply *a);

/*
 * The reader has its reply: it is waited for no longer as one of the producer
 * before, nor by the other ranks of its job.  Or it can't have it, and is no
 * reader; then all is as if it had not come.
 */
void tsi_readers_confirm(struct tsi_readers *r, const struct tsi_offer *o,
			 unsigned id);
void tsi_readers_undo(struct tsi_readers *r, unsigned id, const char *why);

/* What a new reader gets: fills at most TSI_FDPASS_FDS, returns how many. */
unsigned tsi_readers_fds(const struct tsi_readers *r, unsigned id, int event,
			 int *fds);

/* Is the reader of this offer still one? */
bool tsi_readers_stands(const struct tsi_readers *r, const struct tsi_offer *o);

/* The reader that the connection of this nonce has; -1: none. */
int tsi_readers_find(const struct tsi_readers *r, const uint8_t *nonce);
bool tsi_readers_has(const struct tsi_readers *r, const uint8_t *nonce);

/* What this nonce asked for ends: a reader's last tail counts. */
void tsi_readers_leave(struct tsi_readers *r, const uint8_t *nonce);

/* No reader is one any more: their rows, connections and memberships end. */
void tsi_readers_drop_all(struct tsi_readers *r, const char *why);

/* The stream begins without some of min_consumers, that long after the first
 * one has come; 0: never. */
void tsi_readers_set_min_wait(struct tsi_readers *r, uint32_t min_wait_ms);

/* A reader has joined: the writers look at their limits anew. */
void tsi_readers_changed(struct tsi_readers *r);

/* A view's head, or what its stage reads, has changed. */
void tsi_readers_wake_workers(struct tsi_readers *r);

/* A view has failed: its readers, and offers to read it, end. */
void tsi_readers_drop_view(struct tsi_readers *r, unsigned view);

/* From now on consumers can join the ring of a view, or can't any more. */
void tsi_readers_add_ring(struct tsi_readers *r, unsigned view,
			  struct tsi_ring *ring);
void tsi_readers_remove_ring(struct tsi_readers *r, unsigned view);

/* Does the view have a reader, or will it have one? */
bool tsi_readers_need(const struct tsi_readers *r, unsigned view);

/* Read every tail; drop a reader that wrote an impossible one. */
void tsi_readers_refresh(struct tsi_readers *r);

/*
 * Sleep until a view's limit may have moved, or until_ns.  The headers say
 * which tails are waited for, and these are read once more before the sleep.
 */
void tsi_readers_wait(struct tsi_readers *r, unsigned view, int64_t until_ns);

/*
 * A worker goes off.  For those that sleep: wake some if there are samples, and
 * if not, state in their place which tails they wait for now.
 */
void tsi_readers_mind_sleepers(struct tsi_readers *r);

/* No reader needs another sample, and none can join that would: for ever. */
bool tsi_readers_over(struct tsi_readers *r);

/* ---- for the control thread ---- */

/*
 * Offers, and jobs of several ranks, that are too old; readers of the producer
 * before that have returned, or won't.
 */
void tsi_readers_expire(struct tsi_readers *r, int64_t now_ms);

/* What tells of the readers' deaths: fills a row for each, returns how many. */
unsigned tsi_readers_poll(const struct tsi_readers *r, struct pollfd *fds);

/* Drop the readers that have left, and those whose processes are gone. */
void tsi_readers_reap(struct tsi_readers *r);

/* ---- slow readers: readers_slow.c ---- */

/* What is done with readers that hold others up: enum tsock_slow. */
void tsi_readers_set_slow(struct tsi_readers *r, uint32_t slow,
			  int64_t slow_ms);

/* What consumers say: the heads that they wait for, and their generations. */
void tsi_readers_read_pages(struct tsi_readers *r);

/* Can readers be detached? */
bool tsi_readers_detaches(const struct tsi_readers *r);

/*
 * For the control thread: kill or detach the readers that have held others up
 * for too long, if that was asked for.  Returns the view whose second half has
 * to be reserved before (tsi_view_table_reserve()), or -1.
 */
int tsi_readers_mind_slow(struct tsi_readers *r, int64_t now_ms);

/* That half can't be reserved; tsock_errmsg() says why. */
void tsi_readers_no_memory(struct tsi_readers *r, int64_t now_ms);

/*
 * How many processes read; fills buf with them, as in "17 (a), 18 (b) and 3
 * more".
 */
unsigned tsi_readers_names(const struct tsi_readers *r, char *buf, size_t size);

/* ---- for whom readers wait: waits.h ---- */

/* The connection of a reader. */
const struct tsi_conn *tsi_readers_conn(const struct tsi_readers *r,
					unsigned id);

/* Does a reader, or one that asks to join, wait for other ranks? */
bool tsi_readers_waits_for_ranks(struct tsi_readers *r, unsigned id);
bool tsi_readers_asks_as_rank(const struct tsi_readers *r,
			      const uint8_t *nonce);

/* For which rank: asked of a reader, or (-1) of one that asks by a nonce. */
bool tsi_readers_missing(struct tsi_readers *r, int id, const uint8_t *nonce,
			 struct tsi_job_missing *out);

/* Is the stream held for readers of the producer before? */
bool tsi_readers_returning(const struct tsi_readers *r);

/* Are readers of the producer before waited for before anybody joins?  The
 * process of the first that has still to return; 0: none, or not known. */
bool tsi_readers_collects(const struct tsi_readers *r);
uint32_t tsi_readers_awaited(const struct tsi_readers *r);

/* Are slow readers waited for without end? */
bool tsi_readers_blocks(const struct tsi_readers *r);

/* ---- for the statistics ---- */

/* Rows of the readers; of those that are behind if there are too many. */
void tsi_readers_stats(const struct tsi_readers *r, struct tsock_stats *st);

#endif
