/* SPDX-License-Identifier: MIT */
/*
 * staging.c - the way to a GPU for a reader of a host ring: copies of its own.
 *
 * Never frees memory of a batch while its reader lives: freeing would hold up
 * the whole GPU.
 */
#include "consumer/gpu/staging.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "convert/gpu.h"
#include "ring/geometry.h"

#define ALIGN UINT64_C(256) /* of a field: DLPack's */
#define LEAST_NS 20000      /* between two looks whether a copy has ended */
#define MOST_NS 200000

struct layout {
	uint64_t stored_bytes, field_bytes; /* of a sample */
	uint64_t raw_at;     /* in page-locked memory, as it is stored */
	uint64_t scratch_at; /* on the GPU, as it is stored */
	uint64_t field_at;   /* on the GPU, as it is wanted */
	uint64_t shape[TSOCK_MAX_DIMS]; /* as it is stored */
	bool converts;
};

struct tsi_staging {
	unsigned device, nfields;
	bool as_stored;
	struct tsi_view_spec make;
	struct layout layout[TSOCK_MAX_FIELDS];
	uint64_t raw_bytes, scratch_bytes, field_bytes;
	/* A shared reader's; each copy is waited for. */
	tsi_gpu_stream stream;
	struct tsi_gpu_event *event;
	void *pinned, *scratch;
	/* Nobody's yet. */
	struct tsi_staging_memory spare[TSI_STAGING_AHEAD];
	unsigned spares;
};

static uint64_t add_bytes(uint64_t *total, uint64_t bytes)
{
	uint64_t at = *total;

	*total = (at + bytes + ALIGN - 1) / ALIGN * ALIGN;
	return at;
}

static void lay_out_parts(struct tsi_staging *u,
			  const struct tsi_staging_parts *p)
{
	for (unsigned i = 0; i < p->nfields; i++) {
		const struct tsock_field *f = &p->stored[i];
		struct layout *at = &u->layout[i];

		at->stored_bytes = tsi_geometry_field_bytes(f);
		at->field_bytes = tsi_geometry_field_bytes(&p->field[i]);
		at->converts = u->make.dtype && f->flags & TSOCK_FIELD_IMAGE;
		memcpy(at->shape, f->shape, sizeof(at->shape));
		at->raw_at =
			add_bytes(&u->raw_bytes, p->batch * at->stored_bytes);
		at->field_at =
			add_bytes(&u->field_bytes, p->batch * at->field_bytes);
		if (at->converts)
			at->scratch_at = add_bytes(&u->scratch_bytes,
						   p->batch * at->stored_bytes);
	}
}

static int make_common(struct tsi_staging *u)
{
	int err = tsi_gpu_stream_create(u->device, &u->stream);

	if (!err)
		err = tsi_gpu_event_create(u->device, false, &u->event);
	if (!err)
		err = tsi_gpu_host_alloc(u->device, u->raw_bytes, &u->pinned);
	if (!err && u->scratch_bytes)
		err = tsi_gpu_alloc(u->device, u->scratch_bytes, &u->scratch);
	return err;
}

static int make_memory(const struct tsi_staging *u,
		       struct tsi_staging_memory *own)
{
	uint64_t bytes = u->as_stored ? u->scratch_bytes : u->field_bytes;
	int err = 0;

	if (u->as_stored && !own->pinned)
		err = tsi_gpu_host_alloc(u->device, u->raw_bytes, &own->pinned);
	if (!err && bytes && !own->device)
		err = tsi_gpu_alloc(u->device, bytes, &own->device);
	return err;
}

int tsi_staging_create(const struct tsi_staging_parts *p,
		       struct tsi_staging **out)
{
	struct tsi_staging *u = calloc(1, sizeof(*u));
	int err = 0;

	if (!u)
		return tsi_err(TSOCK_ENOMEM, "no memory to read a stream");
	u->device = p->device;
	u->nfields = p->nfields;
	u->as_stored = p->as_stored;
	u->make = *p->make;
	lay_out_parts(u, p);
	if (!u->as_stored)
		err = make_common(u);
	while (!err && u->spares < TSI_STAGING_AHEAD)
		err = make_memory(u, &u->spare[u->spares++]);
	if (err) {
		tsi_staging_destroy(u);
		return err;
	}
	*out = u;
	return 0;
}

void tsi_staging_destroy(struct tsi_staging *u)
{
	if (!u)
		return;
	tsi_gpu_event_destroy(u->event);
	if (u->stream)
		tsi_gpu_stream_destroy(u->device, u->stream);
	if (u->pinned)
		tsi_gpu_host_free(u->device, u->pinned);
	if (u->scratch)
		tsi_gpu_free(u->device, u->scratch);
	while (u->spares)
		tsi_staging_free_memory(u, &u->spare[--u->spares]);
	free(u);
}

void tsi_staging_free_memory(const struct tsi_staging *u,
			     struct tsi_staging_memory *own)
{
	if (own->pinned)
		tsi_gpu_host_free(u->device, own->pinned);
	if (own->device)
		tsi_gpu_free(u->device, own->device);
	*own = (struct tsi_staging_memory){ NULL, NULL };
}

/* ---- copying ---- */

/* Field i from page-locked memory to dst, by way of scratch. */
static int queue_field(const struct tsi_staging *u, unsigned i, uint64_t count,
		       const void *pinned, void *scratch, void *dst,
		       tsi_gpu_stream s)
{
	const struct layout *at = &u->layout[i];
	const uint8_t *from = (const uint8_t *)pinned + at->raw_at;
	uint8_t *raw = (uint8_t *)scratch + at->scratch_at;
	int err;

	if (!at->converts)
		return tsi_gpu_upload(u->device, s, dst, from,
				      count * at->stored_bytes);
	err = tsi_gpu_upload(u->device, s, raw, from, count * at->stored_bytes);
	if (err)
		return err;
	return tsi_convert_gpu(u->device, s, &u->make, raw, count, at->shape,
			       dst);
}

static int await_event(struct tsi_gpu_event *e)
{
	struct timespec ts = { 0, LEAST_NS };
	int err;

	while ((err = tsi_gpu_event_query(e)) == TSOCK_EAGAIN) {
		nanosleep(&ts, NULL);
		if (ts.tv_nsec < MOST_NS)
			ts.tv_nsec *= 2;
	}
	return err;
}

int tsi_staging_copy(struct tsi_staging *u, struct tsi_staging_memory *own,
		     uint64_t count, void **data)
{
	uint8_t *pinned;
	int err;

	if (!own->pinned && !own->device && u->spares)
		*own = u->spare[--u->spares];
	err = make_memory(u, own);
	pinned = u->as_stored ? own->pinned : u->pinned;

	for (unsigned i = 0; i < u->nfields && !err; i++) {
		const struct layout *at = &u->layout[i];
		uint8_t *to = (uint8_t *)own->device + at->field_at;

		memcpy(pinned + at->raw_at, data[i], count * at->stored_bytes);
		data[i] = u->as_stored ? NULL : to;
		if (!u->as_stored)
			err = queue_field(u, i, count, pinned, u->scratch, to,
					  u->stream);
	}
	if (!err && !u->as_stored)
		err = tsi_gpu_event_record(u->event, u->stream);
	if (!err && !u->as_stored)
		err = await_event(u->event);
	return err;
}

int tsi_staging_write(const struct tsi_staging *u,
		      const struct tsi_staging_memory *own, uint64_t count,
		      unsigned i, void *dst, tsi_gpu_stream s)
{
	return queue_field(u, i, count, own->pinned, own->device, dst, s);
}
