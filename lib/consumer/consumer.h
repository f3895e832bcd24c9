/* SPDX-License-Identifier: MIT */
/*
 * consumer.h - the handle, for the files of this folder alone.
 *
 * open.c finds the producer and learns what it serves, join.c makes the handle
 * a reader, epoch.c reads, wait.c waits for samples, and leave.c leaves.
 * gpu/negotiate.c agrees with the producer on the way to a GPU.
 */
#ifndef TSI_CONSUMER_CONSUMER_H
#define TSI_CONSUMER_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/reader.h"
#include "consumer/request.h"
#include "consumer/siblings.h"
#include "wire/msg.h"
#include "wire/address.h"

enum tsi_phase {
	TSI_PHASE_IDLE,    /* no epoch begun */
	TSI_PHASE_READING, /* in one: there is a reader */
	TSI_PHASE_DONE,    /* at its end: with one (hold), or without */
};

struct tsock {
	unsigned generation; /* of forks */
	struct tsock_opts opts;
	bool leaves; /* between two epochs */
	struct tsi_address address;
	struct tsi_requester requests;
	struct tsi_msg_stream stream;
	struct tsi_view_spec
		make; /* what is wanted; dtype 0: as it is stored */
	struct tsock_field field[TSOCK_MAX_FIELDS];  /* the same */
	struct tsi_view_spec view;                   /* whose ring is read */
	struct tsock_field stored[TSOCK_MAX_FIELDS]; /* in that ring */
	uint8_t uuid[TSI_UUID];                      /* of the GPU, if any */
	enum tsock_transport try, transport;         /* to be tried; in use */
	char *meta;
	const char **classes;

	enum tsi_phase phase;
	struct tsi_reader *reader;
	struct tsi_reader *left; /* whose claim some batch still holds */
	struct tsi_msg question; /* a JOIN under way, if joining */
	bool joining;
	uint8_t nonce[TSI_NONCE]; /* of the reader */
	uint64_t end;             /* of the epoch begun */
	uint64_t epoch;           /* its number; UINT64_MAX: none yet */
	uint64_t samples, wait_ns;
	struct tsock *sibling; /* the next reader of this process */
	struct tsi_stuck stuck;
	int64_t looked_ms; /* when we last asked whether the producer lives */
};

/* ---- join.c ---- */

/*
 * Become a reader: t->reader, whose first epoch is from start to end.
 * TSOCK_EAGAIN at the deadline: call it again, and the same join goes on.
 */
int tsi_join(struct tsock *t, int64_t deadline, uint64_t *start, uint64_t *end);

/* ---- leave.c ---- */

/*
 * Stop being a reader; now, or when the last batch that holds the claim is
 * given back.
 */
void tsi_leave_reader(struct tsock *t);

/* Give up a join that is under way, if any. */
void tsi_leave_join(struct tsock *t);

/* Let go of readers that were left and that no batch holds any more. */
void tsi_leave_sweep(struct tsock *t);

/* ---- wait.c ---- */

/* Wait until the head is need or more.  EAGAIN, ELOST, ESTREAM. */
int tsi_wait_head(struct tsock *t, uint64_t need, int timeout_ms);

/* Why no more samples will come; 0 if they may. */
int tsi_wait_trouble(struct tsock *t, int64_t now_ms);

#endif
