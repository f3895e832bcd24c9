/* SPDX-License-Identifier: MIT */
/*
 * negotiate.h - a consumer's GPU, and the transport by which batches get there.
 */
#ifndef TSI_CONSUMER_GPU_NEGOTIATE_H
#define TSI_CONSUMER_GPU_NEGOTIATE_H

#include <stdbool.h>

#include "consumer/gpu/backend.h"
#include "wire/msg.h"

struct tsock;

/* Look at the device that the options name, if any, before a producer is. */
int tsi_negotiate_options(struct tsock *t);

/*
 * What to ask the producer for, and what its ring is to hold, from what the
 * consumer wants and the transport that is to be tried.
 */
void tsi_negotiate_aim(struct tsock *t);

/* What the reader is made of, after an offer; NULL on the host. */
const struct tsi_gpu_backend_parts *
tsi_negotiate_parts(struct tsock *t, const struct tsi_msg_offer *offer,
		    struct tsi_gpu_backend_parts *p);

/* Is the offer one for what was asked? */
int tsi_negotiate_check(const struct tsock *t,
			const struct tsi_msg_offer *offer);

/* By what transport batches come after that offer. */
enum tsock_transport tsi_negotiate_transport(const struct tsock *t,
					     const struct tsi_msg_offer *offer);

/*
 * The transport to the GPU failed for the reason that tsock_errmsg() has: the
 * memory that was offered couldn't be opened, or (offered AUTO) the producer
 * can't offer any.  Try the next one?  Says so, once, in the log.
 */
bool tsi_negotiate_next(struct tsock *t, enum tsock_transport offered);

#endif
