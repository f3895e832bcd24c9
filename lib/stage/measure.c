/* SPDX-License-Identifier: MIT */
/*
 * measure.c - is a GPU's ring filled faster from the host or from another GPU?
 *
 * Copies memory of its own into a ring that is still unused, and touches no
 * other ring.
 */
#include "stage/measure.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "mem/gpu.h"

#define BYTES_MAX (UINT64_C(8) << 20)

struct measurement {
	unsigned to_device, from_device;
	bool locked;
	uint64_t bytes;
	void *dst, *host;
	struct tsi_gpu_mem peer; /* of the same kind as a ring's */
	tsi_gpu_stream stream;
	struct tsi_gpu_event *event;
};

static int open_measurement(struct measurement *p,
			    enum tsock_transport transport)
{
	int err = 0;

	if (p->locked)
		err = tsi_gpu_host_alloc(p->to_device, p->bytes, &p->host);
	else if (!(p->host = malloc(p->bytes)))
		err = tsi_err(TSOCK_ENOMEM, "no memory to measure with");
	if (err)
		return err;
	memset(p->host, 1, p->bytes);
	err = tsi_gpu_mem_create(p->from_device, transport, BYTES_MAX,
				 &p->peer);
	if (!err)
		err = tsi_gpu_mem_grant(&p->peer, p->to_device);
	if (!err)
		err = tsi_gpu_stream_create(p->to_device, &p->stream);
	if (!err)
		err = tsi_gpu_event_create(p->to_device, true, &p->event);
	return err;
}

static void close_measurement(struct measurement *p)
{
	tsi_gpu_event_destroy(p->event);
	if (p->stream)
		tsi_gpu_stream_destroy(p->to_device, p->stream);
	tsi_gpu_mem_close(&p->peer);
	if (p->locked && p->host)
		tsi_gpu_host_free(p->to_device, p->host);
	else
		free(p->host);
}

static int time_copy(struct measurement *p, bool peer, int64_t *ns)
{
	int64_t begun = tsi_now_ns();
	int err;

	if (peer)
		err = tsi_gpu_copy_peer(p->stream, p->to_device, p->dst,
					p->from_device,
					tsi_gpu_mem_base(&p->peer), p->bytes);
	else
		err = tsi_gpu_upload(p->to_device, p->stream, p->dst, p->host,
				     p->bytes);
	if (!err)
		err = tsi_gpu_event_record(p->event, p->stream);
	if (!err)
		err = tsi_gpu_event_wait(p->event);
	*ns = tsi_now_ns() - begun;
	return err;
}

/* The first copy warms up; the fastest of the others counts. */
static int time_best(struct measurement *p, bool peer, int64_t *ns)
{
	int64_t t;
	int err = time_copy(p, peer, ns);

	*ns = INT64_MAX;
	for (unsigned i = 0; i < 3 && !err; i++) {
		err = time_copy(p, peer, &t);
		*ns = t < *ns ? t : *ns;
	}
	return err;
}

int tsi_stage_measure(const struct tsi_ring *to, unsigned to_device,
		      unsigned from_device, bool locked, int64_t *host_ns,
		      int64_t *peer_ns)
{
	struct measurement p = { .to_device = to_device,
				 .from_device = from_device,
				 .locked = locked };
	int err;

	for (unsigned f = 0; f < tsi_ring_nfields(to); f++) {
		uint64_t bytes = tsi_ring_bytes(to, f, tsi_ring_capacity(to));

		if (bytes <= p.bytes)
			continue;
		p.bytes = bytes < BYTES_MAX ? bytes : BYTES_MAX;
		p.dst = tsi_ring_at(to, f, 0);
	}
	err = open_measurement(&p, tsi_ring_transport(to));
	if (!err)
		err = time_best(&p, false, host_ns);
	if (!err)
		err = time_best(&p, true, peer_ns);
	close_measurement(&p);
	return err;
}
