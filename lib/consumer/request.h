/* SPDX-License-Identifier: MIT */
/*
 * request.h - asking the producer, and getting an answer although messages are
 * lost.
 *
 * A requester belongs to the thread of its handle.  Everything sent is
 * idempotent, so it is simply sent again.
 */
#ifndef TSI_CONSUMER_REQUEST_H
#define TSI_CONSUMER_REQUEST_H

#include <stdint.h>

#include "wire/zmq.h"
#include "wire/address.h"

struct tsi_requester {
	struct tsi_channel *channel;
	char fdpass[TSI_SOCKET_PATH];
	uint32_t serial;  /* the last one used */
	uint32_t pending; /* sent, not answered; 0: none */
	int64_t sent_ms;
	unsigned garbage;
	uint32_t leaving;        /* of a LEAVE that isn't confirmed; 0: none */
	uint8_t left[TSI_NONCE]; /* the claim that it ends */
};

int tsi_request_open(struct tsi_requester *r, const struct tsi_address *p);
void tsi_request_close(struct tsi_requester *r);

/* A number for a new question; asking again keeps it. */
uint32_t tsi_request_serial(struct tsi_requester *r);

/* The number of the question that was asked last and isn't answered, or a new
 * one: for a requester that asks one thing after the other. */
uint32_t tsi_request_under_way(struct tsi_requester *r);

/*
 * Ask, and wait for the answer until deadline_ms.  0 with any reply but
 * ERROR, which becomes the error that it carries; TSOCK_EAGAIN when it is not
 * there yet (call again with the same question: it is sent again when due);
 * TSOCK_ELOST when no producer listens any more; TSOCK_EPROTO.
 */
int tsi_request_ask(struct tsi_requester *r, const struct tsi_msg *question,
		    int64_t deadline_ms, struct tsi_msg *reply);

/* Say something to which no answer is awaited. */
void tsi_request_tell(struct tsi_requester *r, struct tsi_msg *m);

#define TSI_LEAVE_MS 1000 /* for a confirmation, where nobody says how long */

/*
 * End the claim of that nonce.  Waits at most timeout_ms (-1 waits) for the
 * confirmation.
 */
void tsi_request_leave(struct tsi_requester *r, const uint8_t *nonce,
		       int timeout_ms);

/*
 * Wait on for the confirmation of the last one: TSOCK_EAGAIN when it hasn't
 * come, and 0 when it has, or nobody is there who could confirm it.
 */
int tsi_request_await_left(struct tsi_requester *r, int timeout_ms);

#endif
