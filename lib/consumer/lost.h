/* SPDX-License-Identifier: MIT */
/*
 * lost.h - a reader that was lost in the middle of an epoch: since when, why,
 * and how long the next producer is waited for.
 *
 * Times are of tsi_now_ms(); rejoin_ms is the option of tsock_open(), and has
 * no limit where it is TSI_LOST_NO_LIMIT.  No function here talks to a
 * producer.  One thread at a time, as for the handle.
 */
#ifndef TSI_CONSUMER_LOST_H
#define TSI_CONSUMER_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

#define TSI_LOST_NO_LIMIT UINT32_MAX

/* A producer that is gone, and what is known of the next one; or a reader that
 * was detached.  All zeros: nothing is lost. */
struct tsi_lost {
	int64_t since_ms;       /* when that was seen; 0: it isn't gone */
	bool met;               /* the next one is there */
	bool detached;          /* the reader was, by a producer that lives or
				 * not: it goes on where the stream is */
	uint64_t position;      /* first sample that isn't taken */
	uint8_t was[TSI_NONCE]; /* of the reader there; zeros: none */
	char why[128];
};

/* The producer is gone: a warning says so once, with the reason. */
void tsi_lost_note(struct tsi_lost *l, const char *why, uint32_t rejoin_ms);

/* Was the producer seen to be gone, and was no other one joined since? */
bool tsi_lost_waits(const struct tsi_lost *l);

/* Does tsi_lost_waits() hold, and was no other producer met either? */
bool tsi_lost_lacks_producer(const struct tsi_lost *l);

/* Until when the next producer is waited for (INT64_MAX: without limit); has
 * that time passed? */
int64_t tsi_lost_last_ms(const struct tsi_lost *l, uint32_t rejoin_ms);
bool tsi_lost_waited_enough(const struct tsi_lost *l, uint32_t rejoin_ms);

/* The error when no producer came: TSOCK_ELOST. */
int tsi_lost_err(const struct tsi_lost *l, uint32_t rejoin_ms);

/* The stream of that name goes on at sample start: say after how long. */
void tsi_lost_log_rejoined(const struct tsi_lost *l, const char *name,
			   uint64_t start);

/* Nobody is waited for any longer.  The position stays. */
void tsi_lost_forget(struct tsi_lost *l);

#endif
