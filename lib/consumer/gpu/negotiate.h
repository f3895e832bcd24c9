/* SPDX-License-Identifier: MIT */
/*
 * negotiate.h - what a consumer wants, what its producer is asked for, and the
 * transport by which batches get to its GPU, if it has one.
 */
#ifndef TSI_CONSUMER_GPU_NEGOTIATE_H
#define TSI_CONSUMER_GPU_NEGOTIATE_H

#include <stdbool.h>

#include "consumer/gpu/backend.h"
#include "wire/msg.h"

struct tsi_negotiation {
	int device;                /* -1: host memory */
	bool as_stored;            /* TSOCK_GPU_STORED */
	uint8_t uuid[TSI_UUID];    /* of the device, if any */
	enum tsock_transport wish; /* of the user; or AUTO */
	enum tsock_transport try;  /* the next one */
	unsigned nfields;
	struct tsi_view_spec
		make; /* what is wanted; dtype 0: as it is stored */
	struct tsock_field field[TSOCK_MAX_FIELDS];  /* the same */
	struct tsock_field served[TSOCK_MAX_FIELDS]; /* in the base view */
	struct tsi_view_spec view;                   /* whose ring is read */
	struct tsock_field stored[TSOCK_MAX_FIELDS]; /* in that ring */
};

/*
 * What the options want.  Looks at the device that they name, if any, before a
 * producer is there.
 */
int tsi_negotiate_options(struct tsi_negotiation *n,
			  const struct tsock_opts *o);

/*
 * A producer serves these fields: how they are wanted, and what to ask for.
 * TSOCK_EARG: they can't be had so.
 */
int tsi_negotiate_fields(struct tsi_negotiation *n,
			 const struct tsi_msg_stream *s);

/* Field i, as the consumer gets it. */
static inline const struct tsock_field *
tsi_negotiate_field(const struct tsi_negotiation *n, unsigned i)
{
	return &n->field[i];
}

/* The view to ask for, and the fields of its ring. */
static inline const struct tsi_view_spec *
tsi_negotiate_view(const struct tsi_negotiation *n)
{
	return &n->view;
}

static inline const struct tsock_field *
tsi_negotiate_stored(const struct tsi_negotiation *n)
{
	return n->stored;
}

/* Does this process copy batches to the GPU from the host's ring itself? */
static inline bool tsi_negotiate_staged(const struct tsi_negotiation *n)
{
	return n->device >= 0 && n->try == TSOCK_TRANSPORT_STAGED;
}

/* What the reader is made of, after an offer; NULL on the host. */
const struct tsi_gpu_backend_parts *
tsi_negotiate_parts(const struct tsi_negotiation *n,
		    const struct tsi_msg_offer *offer,
		    struct tsi_gpu_backend_parts *p);

/* Is the offer of that stream's producer one for what was asked? */
int tsi_negotiate_check(const struct tsi_negotiation *n,
			const struct tsi_msg_offer *offer, const char *stream);

/* By what transport batches come after that offer. */
enum tsock_transport tsi_negotiate_transport(const struct tsi_negotiation *n,
					     const struct tsi_msg_offer *offer);

/*
 * The transport to the GPU failed for the reason that tsock_errmsg() has: the
 * memory that was offered couldn't be opened, or (offered AUTO) the producer
 * can't offer any.  Try the next one?  Says so, once, in the log.
 */
bool tsi_negotiate_next(struct tsi_negotiation *n,
			enum tsock_transport offered);

#endif
