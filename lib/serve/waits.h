/* SPDX-License-Identifier: MIT */
/*
 * waits.h - for whom do consumers wait that have waited long?
 *
 * A consumer that has waited for ten seconds asks (WHOM), and asks again as
 * long as it waits.  The waiting consumers are known from that alone, so
 * nothing is looked at before anybody asks.  The server's lock is held when
 * these functions are called.
 */
#ifndef TSI_SERVE_WAITS_H
#define TSI_SERVE_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/membership.h"
#include "serve/readers.h"
#include "wire/msg.h"

#define TSI_WAITS_MOST 64 /* consumers that wait long, at once */

struct tsi_waiting {
	bool used;
	bool joins; /* it was no reader yet */
	uint8_t nonce[TSI_NONCE];
	uint32_t pid;
	int64_t since_ms, asked_ms;
	uint64_t want, tail;          /* of a reader */
	uint32_t told_kind, told_pid; /* what the log has of it */
};

struct tsi_waits {
	struct tsi_readers *readers;
	struct tsi_membership *membership;
	struct tsi_waiting waiting[TSI_WAITS_MOST];
	char doing[128]; /* what keeps the program from making samples; or "" */
	int64_t doing_ms; /* since when */
};

void tsi_waits_init(struct tsi_waits *w, struct tsi_readers *r,
		    struct tsi_membership *m);

/* The program is at that: "reading FILE".  NULL: at nothing in particular. */
void tsi_waits_doing(struct tsi_waits *w, const char *what, int64_t now_ms);

/* A consumer asks.  The first time the log says it as well. */
void tsi_waits_answer(struct tsi_waits *w, const struct tsi_msg_whom *q,
		      int64_t now_ms, struct tsock_wait *out);

/* Nothing of that nonce waits any more. */
void tsi_waits_forget(struct tsi_waits *w, const uint8_t *nonce);

/* The waits that go on, the longest first. */
void tsi_waits_stats(struct tsi_waits *w, int64_t now_ms,
		     struct tsock_stats *st);

#endif
