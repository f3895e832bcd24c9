/* SPDX-License-Identifier: MIT */
/*
 * negotiate.c - a consumer's GPU, and the transport by which batches get there.
 *
 * The producer's memory on that GPU by a descriptor, by a legacy handle, or
 * the host ring and copies of this process's own.  Opens nothing itself.
 */
#include "consumer/gpu/negotiate.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "consumer/consumer.h"

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

int tsi_negotiate_options(struct tsock *t)
{
	const struct tsock_opts *o = &t->opts;
	struct tsi_gpu_info info;
	int err;

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
	memcpy(t->uuid, info.uuid, sizeof(t->uuid));
	t->try = o->transport;
	return 0;
}

/* ---- what is asked for ---- */

static bool staged(const struct tsock *t)
{
	return t->opts.device >= 0 && t->try == TSOCK_TRANSPORT_STAGED;
}

/* The ring holds the samples as they are stored. */
static bool raw(const struct tsock *t)
{
	return staged(t) || t->opts.flags & TSOCK_GPU_STORED || !t->make.dtype;
}

void tsi_negotiate_aim(struct tsock *t)
{
	struct tsi_view_spec *v = &t->view;

	*v = (struct tsi_view_spec){ .dtype = 0 };
	if (!raw(t))
		*v = t->make;
	memcpy(t->stored, raw(t) ? t->stream.field : t->field,
	       sizeof(t->stored));
	if (t->opts.device < 0 || staged(t))
		return;
	if (raw(t))
		v->dtype = TSOCK_U8;
	v->gpu = 1;
	v->transport = t->try;
	memcpy(v->uuid, t->uuid, sizeof(v->uuid));
}

/* ---- what is offered ---- */

int tsi_negotiate_check(const struct tsock *t,
			const struct tsi_msg_offer *offer)
{
	bool gpu = t->opts.device >= 0 && !staged(t);
	bool good;

	if (!gpu)
		good = !offer->transport;
	else if (t->try == TSOCK_TRANSPORT_AUTO)
		good = offer->transport == TSOCK_TRANSPORT_VMM ||
		       offer->transport == TSOCK_TRANSPORT_LEGACY;
	else
		good = offer->transport == t->try;
	if (good && offer->transport == TSOCK_TRANSPORT_LEGACY)
		good = offer->nfields == t->stream.nfields;
	return good ? 0
		    : tsi_err(TSOCK_EPROTO,
			      "the producer of '%s' offered another kind of "
			      "memory than was asked for",
			      tsi_address_name(&t->address));
}

const struct tsi_gpu_backend_parts *
tsi_negotiate_parts(struct tsock *t, const struct tsi_msg_offer *offer,
		    struct tsi_gpu_backend_parts *p)
{
	if (t->opts.device < 0)
		return NULL;
	*p = (struct tsi_gpu_backend_parts){
		.device = (unsigned)t->opts.device,
		.as_stored = t->opts.flags & TSOCK_GPU_STORED,
		.staged = staged(t),
		.ring = { .device = (unsigned)t->opts.device,
			  .transport = offer->transport,
			  .handle = offer->handle },
		.make = t->make,
	};
	memcpy(p->field, t->field, sizeof(p->field));
	memcpy(p->stored, t->stored, sizeof(p->stored));
	return p;
}

enum tsock_transport tsi_negotiate_transport(const struct tsock *t,
					     const struct tsi_msg_offer *offer)
{
	return staged(t) ? TSOCK_TRANSPORT_STAGED : offer->transport;
}

bool tsi_negotiate_next(struct tsock *t, enum tsock_transport offered)
{
	if (t->opts.device < 0 || t->opts.transport || staged(t))
		return false;
	t->try = offered == TSOCK_TRANSPORT_VMM ? TSOCK_TRANSPORT_LEGACY
						: TSOCK_TRANSPORT_STAGED;
	tsi_log(TSOCK_LOG_WARN, "GPU %d: %s; %s", t->opts.device,
		tsock_errmsg(),
		staged(t) ? "this process copies batches to it from the host "
			    "ring, which is slower"
			  : "a legacy handle is tried");
	tsi_negotiate_aim(t);
	return true;
}
