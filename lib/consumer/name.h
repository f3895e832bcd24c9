/* SPDX-License-Identifier: MIT */
/*
 * name.h - the names of batches, which callers have instead of addresses.
 *
 * A struct tsock_batch is reused, so an address in an old variable would mean
 * another batch.  A name consists of the struct's number and a count of its
 * uses, and is never repeated: a batch that was released is recognised, also
 * after its reader is gone.  Any thread, no lock.
 */
#ifndef TSI_CONSUMER_NAME_H
#define TSI_CONSUMER_NAME_H

#include <stdbool.h>

#include "tsock/tsock.h"

struct tsi_name;

/* The names of b's uses, until tsi_name_free(); NULL: no memory. */
struct tsi_name *tsi_name_new(struct tsock_batch *b);
void tsi_name_free(struct tsi_name *n);

/* The name of the use that begins, for the caller. */
tsock_batch *tsi_name_of(const struct tsi_name *n);

/* The batch of that name; NULL if it was given back, or never was one. */
struct tsock_batch *tsi_name_find(const tsock_batch *name);

/*
 * End the use of that name.  Of several calls, one gets the batch and the others
 * NULL.  In a forked child, all get NULL, *forked is true, and nothing ends.
 */
struct tsock_batch *tsi_name_end(const tsock_batch *name, bool *forked);

#endif
