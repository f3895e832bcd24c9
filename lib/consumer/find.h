/* SPDX-License-Identifier: MIT */
/*
 * find.h - at which of the addresses of a stream's name a producer listens,
 * and what is said where none does.
 */
#ifndef TSI_CONSUMER_FIND_H
#define TSI_CONSUMER_FIND_H

#include <stdint.h>

#include "wire/address.h"

/*
 * The first of n addresses at which a producer listens, or NULL.  *err: why
 * this process can't look, or 0.
 */
const struct tsi_address *tsi_find_listening(const struct tsi_address *p, int n,
					     int *err);

/* The log says that a producer is waited for; at once, since a misspelt name
 * needn't be waited for. */
void tsi_find_log(const struct tsi_address *p, int n);

/* None came: TSOCK_ENOPROD. */
int tsi_find_err(const struct tsi_address *p, int n, int64_t waited_ms);

#endif
