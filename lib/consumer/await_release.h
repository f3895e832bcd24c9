/* SPDX-License-Identifier: MIT */
/*
 * await_release.h - waiting until enough batches were released for the stream
 * to go on.
 */
#ifndef TSI_CONSUMER_AWAIT_RELEASE_H
#define TSI_CONSUMER_AWAIT_RELEASE_H

#include <stdint.h>

struct tsi_reader;
struct tsi_waiter;

/*
 * Returns 0 as soon as r can acquire n more samples although batches are held.
 * Waits for other threads to release theirs; *timeout_ms becomes what is left
 * of it.  TSOCK_EHELD if, as far as is known, this thread holds them itself;
 * TSOCK_EAGAIN after the timeout; or what failed.  w is the waiter of r.
 */
int tsi_await_release(struct tsi_waiter *w, struct tsi_reader *r, uint64_t n,
		      int *timeout_ms);

#endif
