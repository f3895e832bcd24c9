/* SPDX-License-Identifier: MIT */
/*
 * view.c - one view: its source, its samples, its failure.
 */
#include "serve/view.h"

#include <stdio.h>

#include "base/log.h"
#include "serve/server.h"

void tsi_view_ready(struct tsi_view *v)
{
	v->phase = TSI_VIEW_READY;
	tsi_gate_add_ring(&v->server->gate, v->id, &v->ring);
}

void tsi_view_end(struct tsi_view *v)
{
	v->phase = TSI_VIEW_ENDING;
	tsi_gate_remove_ring(&v->server->gate, v->id);
}

void tsi_view_set_source(struct tsi_view *v, unsigned source,
			 enum tsi_stage_kind kind)
{
	v->source = source;
	v->kind = kind;
	tsi_membership_source(&v->server->membership, v->id, source,
			      v->geometry.capacity, tsi_view_can_fall_back(v));
	/* The thread of the source may wait for the view's first samples. */
	tsi_sync_wake_stages(&v->server->sync);
}

bool tsi_view_can_fall_back(const struct tsi_view *v)
{
	return v->kind == TSI_STAGE_PEER || v->kind == TSI_STAGE_BROADCAST;
}

void tsi_view_publish(struct tsi_view *v, uint32_t opening, uint64_t first,
		      uint64_t head)
{
	struct tsock_server *s = v->server;

	tsi_sync_wake_workers(&s->sync);
	if (!tsi_membership_done(&s->membership, v->id, opening, first, head))
		return;
	tsi_ring_publish(&v->ring, head);
	if (tsi_membership_complete(&s->membership, v->id))
		tsi_ring_finish(&v->ring, TSI_RING_ENDED, NULL);
	tsi_sync_wake_stages(&s->sync);
}

void tsi_view_source_lost(struct tsi_view *v, const char *why)
{
	v->source_lost = true;
	snprintf(v->error, sizeof(v->error), "%s", why);
	tsi_sync_wake_stages(&v->server->sync);
}

static void fail_dependents(const struct tsi_view *v, const char *why)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *d = &v->server->views.view[i];

		/* Views marked source_lost were told before. */
		if (d->source != v->id || d->phase != TSI_VIEW_READY ||
		    d->source_lost)
			continue;
		if (tsi_view_can_fall_back(d))
			tsi_view_source_lost(d, why);
		else
			tsi_view_fail(d, why);
	}
}

void tsi_view_fail(struct tsi_view *v, const char *why)
{
	struct tsock_server *s = v->server;

	tsi_log(TSOCK_LOG_ERROR, "a view has failed: %s", why);
	if (v->phase == TSI_VIEW_READY)
		tsi_view_end(v);
	tsi_ring_finish(&v->ring, TSI_RING_FAILED, why);
	fail_dependents(v, why);
	tsi_readers_drop_view(&s->readers, v->id);
	tsi_sync_wake_stages(&s->sync);
}

bool tsi_view_has_dependents(const struct tsi_view *v)
{
	const struct tsock_server *s = v->server;

	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (s->views.view[i].source == v->id &&
		    s->views.view[i].has_thread &&
		    !s->views.view[i].thread_done)
			return true;
	return false;
}
