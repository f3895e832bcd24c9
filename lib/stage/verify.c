/* SPDX-License-Identifier: MIT */
/*
 * verify.c - do copies between two GPUs arrive as they were sent?
 *
 * Some drivers and IOMMUs say that they can copy from GPU to GPU, copy without
 * an error, and deliver other bytes.  So before the first sample is copied, two
 * copies into every field's ring are downloaded and compared: one of a pattern,
 * from memory of the same kind as the source's, and one of what the source's
 * ring holds.  The target is still unused; the source may be written meanwhile.
 */
#include "stage/measure.h"

#include <stdlib.h>

#include "base/err.h"
#include "mem/gpu.h"

#define BYTES_MAX \
	(UINT64_C(4) << 20) /* of the beginning of a ring, and of its end */

struct endpoint {
	unsigned device;
	tsi_gpu_stream stream;
	struct tsi_gpu_event *event;
};

struct verification {
	struct endpoint from, to;
	struct tsi_gpu_mem memory; /* on the source's GPU */
	uint8_t *sent, *got, *later;
	uint64_t seed;
};

static int open_endpoint(struct endpoint *e, unsigned device)
{
	int err;

	e->device = device;
	err = tsi_gpu_stream_create(device, &e->stream);
	return err ? err : tsi_gpu_event_create(device, true, &e->event);
}

static void close_endpoint(struct endpoint *e)
{
	tsi_gpu_event_destroy(e->event);
	if (e->stream)
		tsi_gpu_stream_destroy(e->device, e->stream);
}

static int open_verification(struct verification *t, unsigned from, unsigned to,
			     enum tsock_transport transport)
{
	int err;

	t->sent = malloc(3 * BYTES_MAX);
	if (!t->sent)
		return tsi_err(TSOCK_ENOMEM, "no memory to compare with");
	t->got = t->sent + BYTES_MAX;
	t->later = t->got + BYTES_MAX;
	err = tsi_gpu_mem_create(from, transport, BYTES_MAX, &t->memory);
	if (!err)
		err = tsi_gpu_mem_grant(&t->memory, to);
	if (!err)
		err = open_endpoint(&t->from, from);
	return err ? err : open_endpoint(&t->to, to);
}

static void close_verification(struct verification *t)
{
	close_endpoint(&t->from);
	close_endpoint(&t->to);
	tsi_gpu_mem_close(&t->memory);
	free(t->sent);
}

static int wait_for(struct endpoint *e)
{
	int err = tsi_gpu_event_record(e->event, e->stream);

	return err ? err : tsi_gpu_event_wait(e->event);
}

static int download(struct endpoint *e, void *to, const void *from,
		    uint64_t bytes)
{
	int err = tsi_gpu_download(e->device, e->stream, to, from, bytes);

	return err ? err : wait_for(e);
}

static int across(struct verification *t, void *to, const void *from,
		  uint64_t bytes)
{
	int err = tsi_gpu_copy_peer(t->to.stream, t->to.device, to,
				    t->from.device, from, bytes);

	if (!err)
		err = wait_for(&t->to);
	return err ? err : download(&t->to, t->got, to, bytes);
}

/* Bytes that changed in the source meanwhile are left out. */
static int compare(const struct verification *t, const uint8_t *later,
		   uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (t->got[i] != t->sent[i] && t->sent[i] == later[i])
			return tsi_err(TSOCK_ESYS,
				       "a copy from GPU %u arrives on GPU %u "
				       "with other bytes, without an error "
				       "(byte %llu of %llu is 0x%02x, not "
				       "0x%02x): the driver, or an IOMMU or "
				       "PCI switch, spoils copies between them",
				       t->from.device, t->to.device,
				       (unsigned long long)i,
				       (unsigned long long)bytes, t->got[i],
				       t->sent[i]);
	return 0;
}

static int send_pattern(struct verification *t, void *to, uint64_t bytes)
{
	int err;

	for (uint64_t i = 0; i < bytes; i++) {
		t->seed = t->seed * UINT64_C(6364136223846793005) + 1;
		t->sent[i] = (uint8_t)(t->seed >> 56);
	}
	err = tsi_gpu_upload(t->from.device, t->from.stream,
			     tsi_gpu_mem_base(&t->memory), t->sent, bytes);
	if (!err)
		err = wait_for(&t->from);
	if (!err)
		err = across(t, to, tsi_gpu_mem_base(&t->memory), bytes);
	return err ? err : compare(t, t->sent, bytes);
}

static int send_ring(struct verification *t, void *to, const void *from,
		     uint64_t bytes)
{
	int err = download(&t->from, t->sent, from, bytes);

	if (!err)
		err = across(t, to, from, bytes);
	if (!err)
		err = download(&t->from, t->later, from, bytes);
	return err ? err : compare(t, t->later, bytes);
}

static uint64_t used_bytes(const struct tsi_ring *r, unsigned f)
{
	return tsi_ring_bytes(r, f,
			      tsi_ring_capacity(r) + tsi_ring_margin(r, f));
}

/* The beginning, or the end, of both rings. */
static int try_field(struct verification *t, const struct tsi_ring *to,
		     const struct tsi_ring *from, unsigned f, bool end)
{
	uint64_t has = used_bytes(to, f), had = used_bytes(from, f), bytes;
	uint8_t *dst = tsi_ring_at(to, f, 0);
	const uint8_t *src = tsi_ring_at(from, f, 0);
	int err;

	bytes = has < BYTES_MAX ? has : BYTES_MAX;
	bytes = had < bytes ? had : bytes;
	if (end) {
		dst += has - bytes;
		src += had - bytes;
	}
	err = send_pattern(t, dst, bytes);
	return err ? err : send_ring(t, dst, src, bytes);
}

int tsi_stage_verify(const struct tsi_ring *to, unsigned to_device,
		     const struct tsi_ring *from, unsigned from_device)
{
	struct verification t = { .seed = from_device * 64 + to_device };
	enum tsock_transport transport = tsi_ring_transport(from);
	int err = open_verification(&t, from_device, to_device, transport);

	for (unsigned f = 0; f < tsi_ring_nfields(to) && !err; f++) {
		err = try_field(&t, to, from, f, false);
		if (!err && used_bytes(to, f) > BYTES_MAX)
			err = try_field(&t, to, from, f, true);
	}
	close_verification(&t);
	return err;
}
