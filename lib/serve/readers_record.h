/* SPDX-License-Identifier: MIT */
/*
 * readers_record.h - what readers.c asks of readers_record.c.
 *
 * A reader's row in the record is put before the reader has its claim.  The row
 * of the claim that it had with the producer before stays until the reader has
 * its reply (tsi_readers_confirm()), so whichever of the two claims it knows of
 * when this producer dies, the next producer finds it.
 */
#ifndef TSI_SERVE_READERS_RECORD_H
#define TSI_SERVE_READERS_RECORD_H

#include "serve/readers.h"

/* A row for a new reader; together: its job has still to begin. */
void tsi_readers_record(struct tsi_readers *r, const struct tsi_msg_join *join,
			const struct tsi_conn *c, uint64_t start,
			bool together);

/* Reader id has its reply. */
void tsi_readers_settle(struct tsi_readers *r, const struct tsi_msg_join *join,
			unsigned id);

/*
 * The reader that had this nonce will not return.  A claim that was never heard
 * of is merely withdrawn: the producer waits for the consumer that asked for it
 * as before, unless the record's file says that the consumer has taken itself
 * off.
 */
void tsi_readers_withdraw(struct tsi_readers *r, const uint8_t *nonce);

/* The tails, about once a second, for what a next producer may need. */
void tsi_readers_mark(struct tsi_readers *r, int64_t now_ms);

/* Readers of the producer before: go on where they are, or give them up. */
void tsi_readers_await(struct tsi_readers *r, int64_t now_ms);

#endif
