/* SPDX-License-Identifier: MIT */
/*
 * warnings.h - what the producer has to say to all readers of its stream: asked
 * for, logged once, and kept until the program takes it.
 *
 * One thread at a time, as for the handle.
 */
#ifndef TSI_CONSUMER_WARNINGS_H
#define TSI_CONSUMER_WARNINGS_H

#include <stdint.h>

#include "consumer/claim.h"
#include "consumer/request.h"
#include "wire/msg.h"

#define TSI_HEARD 8 /* warnings that are kept for the program */

/* All zeros: none was heard. */
struct tsi_heard {
	uint64_t incarnation;        /* of the producer that they are of */
	uint32_t there, n;           /* of that one; and heard of these */
	uint64_t said[TSI_WARNINGS]; /* the last ones, by hash */
	unsigned nsaid;
	struct tsi_msg_warning_data kept[TSI_HEARD];
	unsigned first, nkept;
	char text[TSI_WARNING_TEXT]; /* that was taken last */
};

/* Whom to ask: the producer of a stream. */
struct tsi_heard_from {
	struct tsi_requester *requests;
	const char *stream;
};

/*
 * See how many there are in the ring's header, which the producer of that
 * incarnation writes, and ask for those that are new, a tenth of a second long.
 */
void tsi_heard_look(struct tsi_heard *h, const struct tsi_heard_from *from,
		    uint64_t incarnation, const struct tsi_claim *c);

/*
 * Ask for those that were seen and haven't come, if any, at most timeout_ms (-1
 * waits).  The error of the thread stays as it is.
 */
void tsi_heard_ask(struct tsi_heard *h, const struct tsi_heard_from *from,
		   int timeout_ms);

/* The oldest warning that wasn't taken yet; NULL: there is none. */
const char *tsi_heard_take(struct tsi_heard *h, uint32_t *kind);

#endif
