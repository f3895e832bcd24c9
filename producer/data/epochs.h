/* SPDX-License-Identifier: MIT */
/*
 * epochs.h - the orders of the epochs that are being read, made once for all
 * threads.
 *
 * order/order.h says what the order of an epoch is.  Nothing here depends on
 * what was asked before, or by which thread.
 */
#ifndef TSI_DATA_EPOCHS_H
#define TSI_DATA_EPOCHS_H

#include <stdint.h>

#include "order/order.h"

struct tsi_epochs;

/* Fails as tsi_order_check() does, and with ENOMEM. */
int tsi_epochs_create(const struct tsi_order_opts *opts,
		      struct tsi_epochs **out);

/* NULL is allowed. */
void tsi_epochs_destroy(struct tsi_epochs *e);

/* Positions in an epoch. */
uint64_t tsi_epochs_len(const struct tsi_epochs *e);

/* Which of the times that its sample comes a position is, from 0. */
uint64_t tsi_epochs_time(const struct tsi_epochs *e, uint64_t epoch,
			 uint64_t position);

/* First position of every segment, and the epoch's length: segments + 1. */
void tsi_epochs_bounds(const struct tsi_epochs *e, uint64_t *bounds);

/*
 * The data set's indexes at n positions, from this one on.  Any thread.  The
 * first call in an epoch may shuffle it (milliseconds per million samples); a
 * call in an epoch's second half may prepare the next, so that its first call
 * doesn't have to.  Fails with EARG for a position outside the epoch.
 */
int tsi_epochs_run(struct tsi_epochs *e, uint64_t epoch, uint64_t position,
		   unsigned n, uint64_t *index);

/* The same for one position. */
int tsi_epochs_at(struct tsi_epochs *e, uint64_t epoch, uint64_t position,
		  uint64_t *index);

#endif
