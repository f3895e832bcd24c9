/* SPDX-License-Identifier: MIT */
/*
 * download.c - samples in a GPU's memory, copied into a ring in host memory.
 *
 * The copy has a stream of its own, so that work which the maker of the samples
 * queues meanwhile needn't wait for it.
 */
#include "stage/resident.h"

#include "mem/gpu.h"

/* One copy for each part of a field that is one piece in the ring. */
static int queue(const struct tsi_resident *r, unsigned f, tsi_gpu_stream s,
		 const struct tsi_ring *to)
{
	uint64_t slots = tsi_ring_capacity(to), end = r->first + r->count, n;
	int err = 0;

	for (uint64_t q = r->first; q < end && !err; q += n) {
		n = slots - q % slots < end - q ? slots - q % slots : end - q;
		n = tsi_ring_in_half(to, q, n);
		err = tsi_gpu_download(r->device, s, tsi_ring_slot(to, f, q),
				       r->data[f] +
					       (q - r->first) * r->bytes[f],
				       n * r->bytes[f]);
	}
	return err;
}

/* The event is recorded behind what was queued, and reached. */
static int reach(struct tsi_gpu_event *e, tsi_gpu_stream s)
{
	int err = tsi_gpu_event_record(e, s);

	return err ? err : tsi_gpu_event_wait(e);
}

int tsi_resident_download(const struct tsi_resident *r, void *stream,
			  const struct tsi_ring *to)
{
	struct tsi_gpu_event *e = NULL;
	tsi_gpu_stream s = NULL;
	int err = tsi_gpu_event_create(r->device, &e), end;

	if (!err)
		err = tsi_gpu_stream_create(r->device, &s);
	if (!err)
		err = reach(e, stream);
	for (unsigned f = 0; f < tsi_ring_nfields(to) && !err; f++)
		if (r->data[f])
			err = queue(r, f, s, to);
	/* Also after a failure: no copy may be under way any more. */
	if (s) {
		end = reach(e, s);
		err = err ? err : end;
		tsi_gpu_stream_destroy(r->device, s);
	}
	tsi_gpu_event_destroy(e);
	return err;
}
