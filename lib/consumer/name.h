/* SPDX-License-Identifier: MIT */
/*
 * name.h - what a caller has of a batch: a name, in the place of an address.
 *
 * A struct tsock_batch is used again and again, so its address in an old
 * variable would mean somebody else's batch.  A name is a number of the struct
 * and which of its uses is meant, and never comes a second time: what was given
 * back is known as such, also after its reader is gone.  Any thread, no lock.
 */
#ifndef TSI_CONSUMER_NAME_H
#define TSI_CONSUMER_NAME_H

#include <stdbool.h>

#include "tsock/tsock.h"

struct tsi_name;

/* For the uses of b, as long as that exists; NULL: no memory. */
struct tsi_name *tsi_name_new(struct tsock_batch *b);
void tsi_name_free(struct tsi_name *n);

/* What the caller gets for the use that begins. */
tsock_batch *tsi_name_of(const struct tsi_name *n);

/* The batch of that name; NULL if it was given back, or never was one. */
struct tsock_batch *tsi_name_find(const tsock_batch *name);

/*
 * The use of that name ends.  Of several calls that say so one gets the
 * batch, the others NULL; in a forked child all get NULL, *forked is true, and
 * nothing ends.
 */
struct tsock_batch *tsi_name_end(const tsock_batch *name, bool *forked);

#endif
