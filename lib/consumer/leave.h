/* SPDX-License-Identifier: MIT */
/*
 * leave.h - giving up a claim, and the readers that were left although batches
 * still hold their claims.
 *
 * All of it belongs to the thread of the handle.
 */
#ifndef TSI_CONSUMER_LEAVE_H
#define TSI_CONSUMER_LEAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/reader.h"
#include "consumer/request.h"

struct tsi_waiter;

/* A handle's. */
struct tsi_left {
	struct tsi_reader *first;
};

/*
 * Stop being a reader, the one of that nonce: now, or when the last batch that
 * holds the claim is given back.  r belongs to l from now on.  The producer's
 * confirmation is waited for, at most timeout_ms (-1 waits).  Where readers are
 * recorded, at an address that isn't NULL, a next producer doesn't wait for it,
 * however much later its own one dies.
 */
void tsi_leave_reader(struct tsi_left *l, struct tsi_reader *r,
		      const struct tsi_address *recorded,
		      struct tsi_requester *q, const uint8_t *nonce,
		      int timeout_ms);

/* Leave as a reader that was detached and returns: its batches hold nobody up,
 * and the record keeps it.  It doesn't wait: the handle's next join is heard of
 * after this. */
void tsi_leave_detached(struct tsi_left *l, struct tsi_reader *r,
			struct tsi_requester *q, const uint8_t *nonce);

/*
 * Its producer is gone: batches stay as they are until they are given back, and
 * hold nobody up.
 */
void tsi_leave_lost(struct tsi_left *l, struct tsi_reader *r);

/*
 * The reader that had that claim does not return to a producer that comes, or
 * came, at that address after its own: it waits for nobody then.  If it is
 * there q becomes a connection to it, and its confirmation is waited for, at
 * most timeout_ms.
 */
void tsi_leave_record(const struct tsi_address *a, struct tsi_requester *q,
		      const uint8_t *nonce, int timeout_ms);

/* Let go of those that no batch holds any more; of all. */
void tsi_leave_sweep(struct tsi_left *l);
void tsi_leave_drop_all(struct tsi_left *l);

/* Is there one? */
static inline bool tsi_leave_any(const struct tsi_left *l)
{
	return l->first;
}

/*
 * Wait until none of them keeps the stream from sample need - 1.  *timeout_ms
 * becomes what is left of it.  TSOCK_EAGAIN after the timeout; TSOCK_EHELD
 * where, as far as is known, this thread holds the batches.  w is that of the
 * reader that goes on.
 */
int tsi_leave_await(struct tsi_left *l, struct tsi_waiter *w, uint64_t need,
		    int *timeout_ms);

#endif
