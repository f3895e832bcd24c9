/* SPDX-License-Identifier: MIT */
/*
 * stream_events.c - the streams whose work reads a batch, and whether that work
 * is done.
 */
#include "consumer/gpu/stream_events.h"

#include <stdlib.h>

#include "base/err.h"

/* CUDA has two names for its default stream. */
static tsi_gpu_stream same_name(tsi_gpu_stream s)
{
	return s == (tsi_gpu_stream)1 ? NULL : s;
}

static int grow_list(struct tsi_stream_events *u)
{
	unsigned capacity = u->capacity ? 2 * u->capacity : 2;
	struct tsi_stream_event *list =
		realloc(u->list, capacity * sizeof(*list));

	if (!list)
		return tsi_err(TSOCK_ENOMEM, "no memory to note a stream");
	u->list = list;
	u->capacity = capacity;
	return 0;
}

int tsi_stream_events_find(struct tsi_stream_events *u, unsigned device,
			   tsi_gpu_stream s, struct tsi_stream_event **out)
{
	int err = 0;

	s = same_name(s);
	for (unsigned i = 0; i < u->count; i++) {
		if (u->list[i].stream == s) {
			*out = &u->list[i];
			return 0;
		}
	}
	if (u->count == u->capacity)
		err = grow_list(u);
	if (!err && u->count == u->made) {
		err = tsi_gpu_event_create(device, false,
					   &u->list[u->made].event);
		u->made += !err;
	}
	if (err)
		return err;
	*out = &u->list[u->count];
	(*out)->stream = s;
	(*out)->covered = (*out)->done = false;
	return 0;
}

bool tsi_stream_events_named(const struct tsi_stream_events *u,
			     const struct tsi_stream_event *e)
{
	return e != &u->list[u->count] && !e->covered;
}

void tsi_stream_events_keep(struct tsi_stream_events *u,
			    const struct tsi_stream_event *e)
{
	if (e == &u->list[u->count])
		u->count++;
}

static int poll_one(struct tsi_stream_event *e)
{
	int err = 0;

	if (!e->covered) {
		err = tsi_gpu_event_record(e->event, e->stream);
		/* Being captured: nothing of ours goes into that. */
		if (err == TSOCK_ENOTSUP)
			return TSOCK_EAGAIN;
		if (err)
			return err;
		e->covered = true;
	}
	err = tsi_gpu_event_query(e->event);
	/* A capture came and went while it was recorded: again. */
	if (err == TSOCK_ENOTSUP) {
		e->covered = false;
		return TSOCK_EAGAIN;
	}
	e->done = !err;
	return err;
}

int tsi_stream_events_poll(struct tsi_stream_events *u)
{
	int result = 0;

	/* All are recorded before the first is waited for. */
	for (unsigned i = 0; i < u->count; i++) {
		int err = u->list[i].done ? 0 : poll_one(&u->list[i]);

		if (err && (!result || result == TSOCK_EAGAIN))
			result = err;
	}
	return result;
}

void tsi_stream_events_reset(struct tsi_stream_events *u)
{
	u->count = 0;
}

void tsi_stream_events_free(struct tsi_stream_events *u)
{
	for (unsigned i = 0; i < u->made; i++)
		tsi_gpu_event_destroy(u->list[i].event);
	free(u->list);
	*u = (struct tsi_stream_events){ .count = 0 };
}
