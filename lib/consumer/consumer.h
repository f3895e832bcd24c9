/* SPDX-License-Identifier: MIT */
/*
 * consumer.h - the handle.
 *
 * Its fields are for three files: open.c finds the producer, and learns what it
 * serves; join.c makes the handle a reader; epoch.c reads, leaves, and closes.
 * What they call knows a part of it, and not the handle: wait.h, siblings.h,
 * finished.h, leave.h, lost.h, meta.h, progress.h, request.h, warnings.h, and
 * gpu/negotiate.h.
 */
#ifndef TSI_CONSUMER_CONSUMER_H
#define TSI_CONSUMER_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/finished.h"
#include "consumer/gpu/negotiate.h"
#include "consumer/leave.h"
#include "consumer/lost.h"
#include "consumer/meta.h"
#include "consumer/progress.h"
#include "consumer/reader.h"
#include "consumer/request.h"
#include "consumer/siblings.h"
#include "consumer/wait.h"
#include "consumer/warnings.h"
#include "wire/address.h"
#include "wire/fdpass.h"
#include "wire/msg.h"

enum tsi_phase {
	TSI_PHASE_IDLE,    /* no epoch begun */
	TSI_PHASE_READING, /* in one: there is a reader */
	TSI_PHASE_DONE,    /* at its end: with one (hold), or without */
	TSI_PHASE_LOST,    /* in one: the reader's producer is gone, or the
			    * reader was detached */
};

/* Where a join has to go on, in the epoch that ends there; end 0: anywhere, but
 * no earlier than from. */
struct tsi_goal {
	uint64_t position, end;
	uint64_t from;
};

struct tsock {
	unsigned generation; /* of forks */
	struct tsock_opts opts;
	int64_t opened_ns;          /* when; tsi_now_ns() */
	bool leaves;                /* between two epochs */
	struct tsi_address address; /* of the producer that was found */
	struct tsi_address addresses[TSI_ADDRESSES]; /* where it may be */
	int naddresses;
	struct tsi_requester requests;
	struct tsi_msg_stream stream;
	struct tsi_negotiation negotiation;
	struct tsi_meta meta;

	enum tsi_phase phase;
	struct tsi_reader *reader;
	struct tsi_waiter waiter;   /* of the reader */
	struct tsi_whom whom;       /* what is waited for now */
	struct tsi_sibling sibling; /* the reader, for others */
	struct tsi_left left;
	struct tsi_msg question; /* a JOIN under way, if joining */
	bool joining;
	struct tsi_msg_offer offer; /* the answer to it, if connecting.open */
	struct tsi_connecting connecting;
	int64_t connect_by_ms;          /* or it is given up */
	uint8_t nonce[TSI_NONCE];       /* of the reader */
	enum tsock_transport transport; /* in use */
	struct tsi_goal goal;           /* of the join under way */
	bool unopened; /* the GPU's memory couldn't be opened, once */
	struct tsi_lost lost;
	struct tsock *fresh; /* the next producer, while it is asked what it
			      * serves; or NULL */
	bool returns;        /* there was a producer before this one */
	struct tsi_progress progress;
	bool own;      /* it looks at its rank's batches alone: it said so */
	uint64_t part; /* of the stream: see finished.h; 0: none yet */
	struct tsi_finished read;     /* by its process, before it began */
	struct tsi_finished finished; /* by itself */
	struct tsi_heard heard;       /* from the producers, so far */
	uint64_t samples;             /* taken since the join */
	uint64_t missed; /* while it was detached, since it was opened */
};

/*
 * Become a reader: t->reader, whose first epoch is from start to end.  The goal
 * says where; a producer that comes later is waited for if t->lost says so.
 * TSOCK_EAGAIN at the deadline: call it again, and the same join goes on.
 */
int tsi_join(struct tsock *t, int64_t deadline, uint64_t *start, uint64_t *end);

/*
 * For a reader that was detached, before t->lost is forgotten: the stream goes
 * on for it at start; what lies between is counted and logged as missed.
 */
void tsi_join_missed(struct tsock *t, uint64_t start);

/*
 * Look once for a producer that serves what t knows, and ask it until the
 * deadline.  EAGAIN: there is none, or it hasn't answered yet; the next call
 * goes on.  ELOST, with the difference, if it serves another stream.
 */
int tsi_open_again(struct tsock *t, int64_t deadline);

/* Ask no next producer any longer. */
void tsi_open_forget(struct tsock *t);

/*
 * Nobody is waited for any longer, and no producer is to wait for a claim of
 * the handle's that one may have recorded.  The confirmation is waited for, at
 * most timeout_ms.  The error of the thread stays as it is.
 */
void tsi_join_forgo(struct tsock *t, int timeout_ms);

/* Give up a join that is under way, if any. */
void tsi_join_cancel(struct tsock *t);

#endif
