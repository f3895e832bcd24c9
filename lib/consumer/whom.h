/* SPDX-License-Identifier: MIT */
/*
 * whom.h - whom a long wait is for: the producer is asked, and a warning says
 * it.
 *
 * Belongs to the thread of its handle.  Calls to look() that follow each other
 * within a second or two are one wait, however short each of them is.
 */
#ifndef TSI_CONSUMER_WHOM_H
#define TSI_CONSUMER_WHOM_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/request.h"

#define TSI_WHOM_JOIN UINT64_MAX /* instead of a head */

struct tsi_whom {
	uint64_t want;    /* the head that is waited for, or WHOM_JOIN */
	int64_t since_ms; /* 0: nothing is waited for */
	int64_t seen_ms;  /* of the last look */
	int64_t asked_ms; /* when the question was first sent; 0: not yet */
	int64_t said_ms;  /* when the last warning came; 0: never */
	uint32_t serial;  /* of a question without an answer; 0: none */
	char who[64];     /* the readers that the last warning named */
	char known[256];  /* whom, where no question is needed; or "" */
};

/* What the question says. */
struct tsi_whom_asks {
	struct tsi_requester *requests;
	const uint8_t *nonce; /* of the reader, or of the JOIN */
	const char *stream;   /* its name */
	uint32_t pid;         /* of its producer */
	int wait_ms; /* that a look takes at most, where other questions would
		      * come between this one and its answer */
};

/*
 * This is waited for.  After ten seconds the producer is asked, as often as
 * that again, and the answer is logged, if it is news, or each minute.
 * Doesn't wait for the answer: a later look has it.
 */
void tsi_whom_look(struct tsi_whom *w, const struct tsi_whom_asks *a,
		   uint64_t want, int64_t now_ms);

/* As tsi_whom_look(), but the producer has answered nothing yet and isn't
 * asked. */
void tsi_whom_mute(struct tsi_whom *w, const struct tsi_whom_asks *a,
		   int64_t now_ms);

/* As tsi_whom_look(), but the consumer knows already whom it waits for, and why
 * (who and why as in struct tsock_wait): nobody is asked. */
void tsi_whom_know(struct tsi_whom *w, const struct tsi_whom_asks *a,
		   uint64_t want, int64_t now_ms, const char *who,
		   const char *why);

/* Nothing is waited for any more. */
static inline void tsi_whom_end(struct tsi_whom *w)
{
	w->since_ms = 0;
}

/*
 * Whom does it wait for now?  Fills buf with words that continue "waiting for
 * ", or with "" where it waits for nobody.
 */
void tsi_whom_tell(struct tsi_whom *w, const struct tsi_whom_asks *a,
		   int64_t deadline_ms, char *buf, size_t size);

#endif
