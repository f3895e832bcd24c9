/* SPDX-License-Identifier: MIT */
/*
 * negotiate.c - what a consumer wants, what its producer is asked for, and the
 * transport by which batches get to its GPU, if it has one.
 *
 * The producer's memory on that GPU by a descriptor, by a legacy handle, or
 * the host ring and copies of this process's own.  Opens nothing itself.
 */
#include "consumer/gpu/negotiate.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"

static int check_host(const struct tsock_opts *o)
{
	if (o->device != -1)
		return tsi_err(TSOCK_EARG,
			       "device is %d: it is CUDA's number of a GPU, or "
			       "-1 for host memory",
			       o->device);
	if (o->flags & TSOCK_GPU_STORED)
		return tsi_err(TSOCK_EARG, "TSOCK_GPU_STORED is for a GPU, and "
					   "device is -1: host memory");
	if (o->transport)
		return tsi_err(TSOCK_EARG,
			       "transport is %u, which is for a GPU, and "
			       "device is -1: host memory",
			       o->transport);
	return 0;
}

int tsi_negotiate_options(struct tsi_negotiation *n, const struct tsock_opts *o)
{
	struct tsi_gpu_info info;
	int err = tsi_view_spec_make(o->dtype, o->layout, o->normalize, o->mean,
				     o->std, &n->make);

	if (err)
		return err;
	n->device = o->device;
	n->as_stored = o->flags & TSOCK_GPU_STORED;
	n->wish = o->transport;
	if (o->transport > TSOCK_TRANSPORT_STAGED)
		return tsi_err(TSOCK_EARG,
			       "transport is %u: use TSOCK_TRANSPORT_AUTO, "
			       "_VMM, _LEGACY or _STAGED",
			       o->transport);
	if (o->device < 0)
		return check_host(o);
	if (o->flags & TSOCK_WRITABLE)
		return tsi_err(TSOCK_EARG,
			       "TSOCK_WRITABLE is for host memory; on a GPU "
			       "use TSOCK_GPU_STORED, and write into what "
			       "tsock_batch_convert() gave");
	err = tsi_gpu_info((unsigned)o->device, &info);
	if (err)
		return err;
	memcpy(n->uuid, info.uuid, sizeof(n->uuid));
	n->try = n->wish;
	return 0;
}

/* ---- what is asked for ---- */

/* The ring holds the samples as they are stored. */
static bool raw(const struct tsi_negotiation *n)
{
	return tsi_negotiate_staged(n) || n->as_stored || !n->make.dtype;
}

/* From what is wanted, and the transport that is to be tried. */
static void aim(struct tsi_negotiation *n)
{
	struct tsi_view_spec *v = &n->view;

	*v = (struct tsi_view_spec){ .dtype = 0 };
	if (!raw(n))
		*v = n->make;
	memcpy(n->stored, raw(n) ? n->served : n->field, sizeof(n->stored));
	if (n->device < 0 || tsi_negotiate_staged(n))
		return;
	if (raw(n))
		v->dtype = TSOCK_U8;
	v->gpu = 1;
	v->transport = n->try;
	memcpy(v->uuid, n->uuid, sizeof(v->uuid));
}

int tsi_negotiate_fields(struct tsi_negotiation *n,
			 const struct tsi_msg_stream *s)
{
	bool image = false;
	int err = 0;

	n->nfields = s->nfields;
	memcpy(n->served, s->field, sizeof(n->served));
	for (unsigned i = 0; i < s->nfields && !err; i++) {
		n->field[i] = s->field[i];
		if (!(n->field[i].flags & TSOCK_FIELD_IMAGE))
			continue;
		image = true;
		if (!n->make.dtype)
			continue;
		err = tsi_view_spec_check_field(&n->make, &s->field[i]);
		tsi_view_spec_field(&n->make, &s->field[i], &n->field[i]);
	}
	if (err)
		return err;
	/* Nothing to convert: all get the samples as they are stored. */
	if (!image)
		n->make = (struct tsi_view_spec){ .dtype = 0 };
	aim(n);
	return 0;
}

/* ---- what is offered ---- */

int tsi_negotiate_check(const struct tsi_negotiation *n,
			const struct tsi_msg_offer *offer, const char *stream)
{
	bool gpu = n->device >= 0 && !tsi_negotiate_staged(n);
	bool good;

	if (!gpu)
		good = !offer->transport;
	else if (n->try == TSOCK_TRANSPORT_AUTO)
		good = offer->transport == TSOCK_TRANSPORT_VMM ||
		       offer->transport == TSOCK_TRANSPORT_LEGACY;
	else
		good = offer->transport == n->try;
	if (good && offer->transport == TSOCK_TRANSPORT_LEGACY)
		good = offer->nfields == n->nfields;
	return good ? 0
		    : tsi_err(TSOCK_EPROTO,
			      "the producer of '%s' offered another kind of "
			      "memory than was asked for",
			      stream);
}

const struct tsi_gpu_backend_parts *
tsi_negotiate_parts(const struct tsi_negotiation *n,
		    const struct tsi_msg_offer *offer,
		    struct tsi_gpu_backend_parts *p)
{
	if (n->device < 0)
		return NULL;
	*p = (struct tsi_gpu_backend_parts){
		.device = (unsigned)n->device,
		.as_stored = n->as_stored,
		.staged = tsi_negotiate_staged(n),
		.ring = { .device = (unsigned)n->device,
			  .transport = offer->transport,
			  .handle = offer->handle },
		.make = n->make,
	};
	memcpy(p->field, n->field, sizeof(p->field));
	memcpy(p->stored, n->stored, sizeof(p->stored));
	return p;
}

enum tsock_transport tsi_negotiate_transport(const struct tsi_negotiation *n,
					     const struct tsi_msg_offer *offer)
{
	return tsi_negotiate_staged(n) ? TSOCK_TRANSPORT_STAGED
				       : offer->transport;
}

bool tsi_negotiate_next(struct tsi_negotiation *n, enum tsock_transport offered)
{
	if (n->device < 0 || n->wish || tsi_negotiate_staged(n))
		return false;
	n->try = offered == TSOCK_TRANSPORT_VMM ? TSOCK_TRANSPORT_LEGACY
						: TSOCK_TRANSPORT_STAGED;
	tsi_log(TSOCK_LOG_WARN, "GPU %d: %s; %s", n->device, tsock_errmsg(),
		tsi_negotiate_staged(n)
			? "this process copies batches to it from the host "
			  "ring, which is slower"
			: "a legacy handle is tried");
	aim(n);
	return true;
}
