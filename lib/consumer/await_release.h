/* SPDX-License-Identifier: MIT */
/*
 * await_release.h - waiting until enough batches were released for the stream
 * to go on.
 */
#ifndef TSI_CONSUMER_AWAIT_RELEASE_H
#define TSI_CONSUMER_AWAIT_RELEASE_H

#include <stdint.h>

struct tsock;

/*
 * Returns 0 as soon as n more samples, up to sample need - 1, can come although
 * batches are held.  Waits for other threads to release theirs; *timeout_ms
 * becomes what is left of it.  TSOCK_EHELD if, as far as is known, this thread
 * holds them itself; TSOCK_EAGAIN after the timeout; or what failed.
 */
int tsi_await_release(struct tsock *t, uint64_t n, uint64_t need,
		      int *timeout_ms);

#endif
