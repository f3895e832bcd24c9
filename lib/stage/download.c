/* SPDX-License-Identifier: MIT */
/*
 * download.c - samples in a GPU's memory, copied into a ring in host memory.
 *
 * The copy has a stream of its own, so that work which the maker of the samples
 * queues meanwhile needn't wait for it.  Streams and events are kept for later
 * copies.
 */
#include "stage/download.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"
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

/* A stream and an event that one copy at a time has. */
struct way {
	struct way *next;
	unsigned device;
	tsi_gpu_stream stream;
	struct tsi_gpu_event *event;
};

struct tsi_downloads {
	pthread_mutex_t lock;
	struct way *idle;
};

int tsi_downloads_create(struct tsi_downloads **out)
{
	struct tsi_downloads *d = calloc(1, sizeof(*d));

	if (!d)
		return tsi_err(TSOCK_ENOMEM, "no memory for copies from GPUs");
	pthread_mutex_init(&d->lock, NULL);
	*out = d;
	return 0;
}

static void way_free(struct way *w)
{
	if (w->stream)
		tsi_gpu_stream_destroy(w->device, w->stream);
	tsi_gpu_event_destroy(w->event);
	free(w);
}

void tsi_downloads_destroy(struct tsi_downloads *d)
{
	if (!d)
		return;
	while (d->idle) {
		struct way *w = d->idle;

		d->idle = w->next;
		way_free(w);
	}
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static struct way *way_idle(struct tsi_downloads *d, unsigned device)
{
	struct way **at, *w;

	pthread_mutex_lock(&d->lock);
	for (at = &d->idle; *at && (*at)->device != device;)
		at = &(*at)->next;
	w = *at;
	if (w)
		*at = w->next;
	pthread_mutex_unlock(&d->lock);
	return w;
}

static int way_new(unsigned device, struct way **out)
{
	struct way *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return tsi_err(TSOCK_ENOMEM, "no memory for copies from GPUs");
	w->device = device;
	err = tsi_gpu_event_create(device, true, &w->event);
	if (!err)
		err = tsi_gpu_stream_create(device, &w->stream);
	if (err)
		way_free(w);
	else
		*out = w;
	return err;
}

/* One that failed is freed; the next caller makes a new one. */
static void way_back(struct tsi_downloads *d, struct way *w, int err)
{
	if (err) {
		way_free(w);
		return;
	}
	pthread_mutex_lock(&d->lock);
	w->next = d->idle;
	d->idle = w;
	pthread_mutex_unlock(&d->lock);
}

int tsi_download(struct tsi_downloads *d, const struct tsi_resident *r,
		 void *stream, const struct tsi_ring *to)
{
	struct way *w = way_idle(d, r->device);
	int err = w ? 0 : way_new(r->device, &w), end;

	if (err)
		return err;
	err = reach(w->event, stream);
	for (unsigned f = 0; f < tsi_ring_nfields(to) && !err; f++)
		if (r->data[f])
			err = queue(r, f, w->stream, to);
	/* Also after a failure: no copy may be under way any more. */
	end = reach(w->event, w->stream);
	err = err ? err : end;
	way_back(d, w, err);
	return err;
}
