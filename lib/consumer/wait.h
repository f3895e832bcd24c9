/* SPDX-License-Identifier: MIT */
/*
 * wait.h - waiting for the head, asleep or spinning.
 *
 * A waiter belongs to the thread of its handle.
 */
#ifndef TSI_CONSUMER_WAIT_H
#define TSI_CONSUMER_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/whom.h"

struct tsi_reader;
struct tsi_sibling;

struct tsi_waiter {
	struct tsi_reader *reader;   /* that waits */
	struct tsi_sibling *sibling; /* the same one (siblings.h) */
	const char *stream;          /* its name */
	uint32_t pid;                /* of the producer */
	bool spins;                  /* TSOCK_SPIN */
	uint64_t wait_ns;            /* in total, since the join */
	int64_t looked_ms; /* when the producer was last seen to live */
	/* The question whom a wait is for; without requests it isn't asked. */
	struct tsi_whom_asks asks;
	struct tsi_whom *whom;
};

/* Wait until the head is need or more.  EAGAIN, ELOST, ESTREAM, EENDED. */
int tsi_wait_head(struct tsi_waiter *w, uint64_t need, int timeout_ms);

/*
 * The samples up to need are waited for since threads of this process, or its
 * GPU, hold batches: who and why are those of struct tsock_wait.  A long wait is
 * reported.
 */
void tsi_wait_held_up(struct tsi_waiter *w, uint64_t need, const char *who,
		      const char *why);

/* The samples are there: nothing is waited for. */
void tsi_wait_goes_on(struct tsi_waiter *w);

/* Why no more samples will come; 0 if they may. */
int tsi_wait_trouble(struct tsi_waiter *w, int64_t now_ms);

#endif
