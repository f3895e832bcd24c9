/* SPDX-License-Identifier: MIT */
/*
 * view.c - one view: its source, its samples, its failure.
 */
#include "serve/view.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "serve/readers.h"
#include "serve/view_table.h"

/* What a view's thread sleeps for while samples keep coming, and how long. */
#define SEVERAL 16u
#define PATIENCE_NS 2000000

void tsi_view_ready(struct tsi_view *v)
{
	v->phase = TSI_VIEW_READY;
	tsi_readers_add_ring(v->table->readers, v->id, &v->ring);
}

void tsi_view_end(struct tsi_view *v)
{
	v->phase = TSI_VIEW_ENDING;
	tsi_readers_remove_ring(v->table->readers, v->id);
}

void tsi_view_set_source(struct tsi_view *v, unsigned source,
			 enum tsi_stage_kind kind)
{
	v->source = source;
	v->kind = kind;
	tsi_membership_source(v->table->membership, v->id, source,
			      v->geometry.capacity, tsi_view_can_fall_back(v));
	if (kind == TSI_STAGE_CONVERT && v->table->commit_views)
		tsi_membership_with_base(v->table->membership, v->id);
	/* The thread of the source may wait for the view's first samples. */
	tsi_sync_wake_stages(v->table->sync);
}

bool tsi_view_can_fall_back(const struct tsi_view *v)
{
	return (v->kind == TSI_STAGE_PEER || v->kind == TSI_STAGE_BROADCAST) &&
	       !v->sending.stuck;
}

void tsi_view_publish(struct tsi_view *v, uint32_t opening, uint64_t first,
		      uint64_t head)
{
	struct tsi_view_table *t = v->table;

	if (tsi_membership_done(t->membership, v->id, opening, first, head)) {
		/* Workers may have published what follows. */
		tsi_ring_publish(&v->ring,
				 tsi_membership_head(t->membership, v->id));
		if (tsi_membership_complete(t->membership, v->id))
			tsi_ring_finish(&v->ring, TSI_RING_ENDED, NULL);
		tsi_sync_wake_stages(t->sync);
	}
	/* Its stage may have let go of samples in any case. */
	tsi_readers_wake_workers(t->readers);
}

void tsi_view_source_lost(struct tsi_view *v, const char *why)
{
	v->source_lost = true;
	snprintf(v->error, sizeof(v->error), "%s", why);
	tsi_sync_wake_stages(v->table->sync);
}

static void fail_dependents(const struct tsi_view *v, const char *why)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *d = &v->table->view[i];

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
	struct tsi_view_table *t = v->table;

	tsi_log(TSOCK_LOG_ERROR, "a view has failed: %s", why);
	if (v->phase == TSI_VIEW_READY)
		tsi_view_end(v);
	tsi_ring_finish(&v->ring, TSI_RING_FAILED, why);
	fail_dependents(v, why);
	tsi_readers_drop_view(t->readers, v->id);
	tsi_sync_wake_stages(t->sync);
}

bool tsi_view_is_part(const struct tsi_view *v)
{
	return v->part.world > 1;
}

struct tsi_view *tsi_view_nth(const struct tsi_view *v, unsigned i)
{
	return &v->table->view[i];
}

struct tsi_view *tsi_view_source(const struct tsi_view *v)
{
	return &v->table->view[v->source];
}

unsigned tsi_view_id(const struct tsi_view *v)
{
	return v->id;
}

unsigned tsi_view_device(const struct tsi_view *v)
{
	return v->device;
}

struct tsi_ring *tsi_view_ring(struct tsi_view *v)
{
	return &v->ring;
}

struct tsi_stage *tsi_view_stage(const struct tsi_view *v)
{
	return v->stage;
}

struct tsi_view_sending *tsi_view_sending(struct tsi_view *v)
{
	return &v->sending;
}

struct tsi_membership *tsi_view_membership(const struct tsi_view *v)
{
	return v->table->membership;
}

struct tsi_gpu_copies *tsi_view_copies(const struct tsi_view *v)
{
	return &v->table->copies;
}

struct tsi_sync *tsi_view_sync(const struct tsi_view *v)
{
	return v->table->sync;
}

bool tsi_view_is_filled(const struct tsi_view *v)
{
	return v->phase == TSI_VIEW_READY && !v->source_lost;
}

bool tsi_view_is_made_of(const struct tsi_view *v,
			 const struct tsi_view *source,
			 enum tsi_stage_kind kind)
{
	return v->phase != TSI_VIEW_EMPTY && v->kind == kind &&
	       v->source == source->id;
}

bool tsi_view_may_feed(const struct tsi_view *v, const struct tsi_view *to)
{
	return v->spec.gpu && tsi_view_spec_is_stored(&v->spec) &&
	       !tsi_view_is_part(v) && v->device != to->device &&
	       v->kind == TSI_STAGE_UPLOAD &&
	       (v->phase == TSI_VIEW_READY ||
		(v->phase == TSI_VIEW_MAKING && v->age < to->age));
}

bool tsi_view_await(const struct tsi_view *v, const struct tsi_view *o,
		    int64_t until_ns)
{
	uint64_t age = o->age;

	while (v->phase == TSI_VIEW_MAKING && o->phase == TSI_VIEW_MAKING &&
	       o->age == age && tsi_now_ns() < until_ns)
		tsi_sync_wait_staged(v->table->sync, until_ns);
	return v->phase == TSI_VIEW_MAKING && o->phase == TSI_VIEW_READY &&
	       o->age == age && o->kind == TSI_STAGE_UPLOAD;
}

/* The first head of the base ring that gives the view's thread a sample.  None
 * does where the view has no readers, is made of another view, or is written by
 * the workers from there on. */
static uint64_t next_input(const struct tsi_view *v)
{
	const struct tsi_membership *m = v->table->membership;
	uint64_t next = tsi_membership_claimed(m, v->id);

	if (v->source || !tsi_membership_active(m, v->id) ||
	    next >= tsi_membership_joint(m, v->id))
		return TSI_NEVER;
	return next + 1;
}

void tsi_view_wait(const struct tsi_view *v)
{
	struct tsi_view_table *t = v->table;

	/* Readers hold the view up only if the source has more. */
	if (tsi_membership_has_input(t->membership, v->id))
		tsi_readers_wait(t->readers, v->id, INT64_MAX);
	else
		tsi_sync_wait_head(t->sync, next_input(v), INT64_MAX);
}

/* Samples that are worth waking for.  A quarter of a ring leaves room for what
 * comes meanwhile. */
static uint64_t several(const struct tsi_view *base)
{
	uint64_t quarter = base->geometry.capacity / 4;

	return quarter < 1 ? 1 : quarter < SEVERAL ? quarter : SEVERAL;
}

/* The first head of the base ring that a view's reader waits for. */
static uint64_t waited_for(const struct tsi_view_table *t, uint64_t head)
{
	uint64_t least = TSI_NEVER;

	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		const struct tsi_view *v = &t->view[i];
		uint64_t want = TSI_NEVER;

		if (v->phase == TSI_VIEW_READY)
			want = tsi_ring_waited_for(&v->ring, head);
		if (want < least)
			least = want;
	}
	return least;
}

void tsi_view_wait_for_several(const struct tsi_view *v)
{
	struct tsi_view_table *t = v->table;
	uint64_t head, enough, want;

	/* What isn't made of the base ring has its samples several at once. */
	if (next_input(v) == TSI_NEVER ||
	    tsi_membership_has_input(t->membership, v->id)) {
		tsi_view_wait(v);
		return;
	}
	head = tsi_membership_head(t->membership, 0);
	enough = head + several(&t->view[0]);
	want = waited_for(t, head);
	tsi_sync_wait_head(t->sync, want < enough ? want : enough,
			   tsi_now_ns() + PATIENCE_NS);
}

bool tsi_view_pin_base(const struct tsi_view *v)
{
	return tsi_ring_pin(&v->table->pin, &v->table->view[0].ring, v->device);
}

void tsi_view_drain(const struct tsi_view *v)
{
	const struct tsi_view_table *t = v->table;

	while (!t->closing && !tsi_membership_drained(t->membership, v->id))
		tsi_sync_wait_head(t->sync,
				   tsi_membership_head(t->membership, 0) + 1,
				   INT64_MAX);
}

bool tsi_view_has_dependents(const struct tsi_view *v)
{
	const struct tsi_view_table *t = v->table;

	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (t->view[i].source == v->id && t->view[i].has_thread &&
		    !t->view[i].thread_done)
			return true;
	return false;
}
