/*
 * link.h - asking the producer, and getting an answer although messages are
 * lost.
 *
 * A link belongs to the thread of its handle.  Everything sent is idempotent,
 * so it is simply sent again.
 */
#ifndef TSI_CONSUMER_LINK_H
#define TSI_CONSUMER_LINK_H

#include <stdint.h>

#include "wire/zmq.h"
#include "wire/address.h"

struct tsi_link {
	struct tsi_channel *channel;
	char fdpass[TSI_SOCKET_PATH];
	uint32_t serial;  /* the last one used */
	uint32_t pending; /* sent, not answered; 0: none */
	int64_t sent_ms;
	unsigned garbage;
};

int tsi_link_open(struct tsi_link *l, const struct tsi_address *p);
void tsi_link_close(struct tsi_link *l);

/* A number for a new question; asking again keeps it. */
uint32_t tsi_link_serial(struct tsi_link *l);

/*
 * Ask, and wait for the answer until deadline_ms.  0 with any reply but
 * ERROR, which becomes the error that it carries; TSOCK_EAGAIN when it is not
 * there yet (call again with the same question: it is sent again when due);
 * TSOCK_ELOST when no producer listens any more; TSOCK_EPROTO.
 */
int tsi_link_ask(struct tsi_link *l, const struct tsi_msg *question,
		 int64_t deadline_ms, struct tsi_msg *reply);

/* Say something to which no answer is awaited. */
void tsi_link_tell(struct tsi_link *l, struct tsi_msg *m);

/* End the claim of that nonce; waits a moment for the confirmation. */
void tsi_link_leave(struct tsi_link *l, const uint8_t *nonce);

/* The same with no link at hand.  Any thread. */
void tsi_link_farewell(const struct tsi_address *p, const uint8_t *nonce);

#endif
