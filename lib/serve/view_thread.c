/* SPDX-License-Identifier: MIT */
/*
 * view_thread.c - the thread of a view: it makes the ring and fills it.
 *
 * Making a ring can take a second, and no other thread should wait for that.
 * Then the thread reads samples from the view's source and writes them into the
 * view's ring, each sample once for all readers.  A view that is filled from
 * another GPU, and loses that source, goes on from the base ring.
 */
#include "serve/view_thread.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/sequence.h"
#include "base/thread.h"
#include "serve/view_broadcast.h"
#include "serve/view_neighbour.h"
#include "serve/view_table.h"

/* ---- runs of samples ---- */

/* Runs of samples under way, oldest first. */
struct runs {
	unsigned count, next; /* next: the lane of the next one */
	bool flowing;         /* there were samples after the last wait */
	struct run {
		uint64_t first;
		unsigned count;
		unsigned skips; /* of these, first, which it doesn't have */
		uint32_t opening;
	} run[TSI_STAGE_LANES];
};

/*
 * The samples that come next: how many, and how many of these the view passes
 * over, since it is a rank's and they are other ranks'.
 */
static unsigned next_run(const struct tsi_view *v, unsigned *skips)
{
	uint64_t n = tsi_ring_ident(&v->table->view[0].ring).epoch_len;
	uint64_t at = tsi_membership_claimed(v->table->membership, v->id) % n;
	uint64_t most = v->geometry.capacity, own = 0, skip = 0;
	bool is_own = true;

	*skips = 0;
	if (!tsi_view_is_part(v))
		return tsi_stage_chunk(v->stage);
	own = tsi_ranks_run(&v->part, n, at, &is_own);
	if (!is_own) {
		skip = own;
		own = at + skip < n
			      ? tsi_ranks_run(&v->part, n, at + skip, &is_own)
			      : 0;
	}
	*skips = (unsigned)min64(skip, most);
	if (!is_own)
		return *skips;
	return *skips + (unsigned)min64(own, tsi_stage_chunk(v->stage));
}

/*
 * With the lock held: samples to begin with.  Waits for some unless others are
 * under way; false: none, or the view is ending.
 */
static bool stage_take(struct tsi_view *v, struct runs *r, struct run *run)
{
	while (tsi_view_is_filled(v)) {
		unsigned want = next_run(v, &run->skips);

		run->count = tsi_membership_claim(v->table->membership, v->id,
						  want, &run->first);
		if (run->count) {
			if (run->skips > run->count)
				run->skips = run->count;
			r->flowing = true;
			return true;
		}
		if (r->count)
			break;
		if (r->flowing)
			tsi_view_wait_for_several(v);
		else
			tsi_view_wait(v);
		r->flowing = false;
	}
	return false;
}

/* The first sample that the stage reads.  (If the view ended and began again,
 * an older run may have greater numbers than a newer one.) */
static void state_reading(struct tsi_view *v, const struct runs *r)
{
	unsigned lanes = tsi_stage_lanes(v->stage);
	uint64_t least = TSI_NEVER;

	for (unsigned i = 1; i <= r->count; i++) {
		uint64_t first = r->run[(r->next + lanes - i) % lanes].first;

		if (first < least)
			least = first;
	}
	tsi_membership_reading(v->table->membership, v->id, least);
}

/* With the lock held, which it gives up while it works. */
static int stage_begin(struct tsi_view *v, struct runs *r,
		       const struct run *run)
{
	struct tsi_view_table *t = v->table;
	unsigned lane = r->next, n = run->count - run->skips;
	int err = 0;

	r->run[lane] = *run;
	r->run[lane].opening = tsi_membership_opening(t->membership, v->id);
	r->next = (lane + 1) % tsi_stage_lanes(v->stage);
	r->count++;
	state_reading(v, r);
	tsi_sync_unlock(t->sync);
	if (!v->spec.gpu)
		err = tsi_ring_make_room(&v->ring, run->first, run->count);
	if (n && !err)
		err = tsi_stage_start(v->stage, lane, run->first + run->skips,
				      n);
	tsi_sync_lock(t->sync);
	return err;
}

/* What lies on the GPU already of samples that it passed over. */
static void let_go(const struct tsi_view *v, const struct run *run)
{
	struct tsi_residents *res = v->table->residents;
	struct tsi_resident_held *held[64] = { NULL };
	unsigned n;

	for (unsigned i = 0; i < run->skips; i += n) {
		n = (unsigned)min64(run->skips - i, 64);
		tsi_residents_take(res, v->device, run->first + i, n, held);
		tsi_residents_drop(res, held, n);
	}
}

/* Likewise: wait for the end of the oldest run, and publish it. */
static int stage_end(struct tsi_view *v, struct runs *r)
{
	struct tsi_view_table *t = v->table;
	unsigned lanes = tsi_stage_lanes(v->stage);
	unsigned lane = (r->next + lanes - r->count) % lanes;
	const struct run *run = &r->run[lane];
	bool copied = run->count > run->skips;
	int err = 0;

	tsi_sync_unlock(t->sync);
	if (copied)
		err = tsi_stage_finish(v->stage, lane);
	tsi_sync_lock(t->sync);
	r->count--;
	state_reading(v, r);
	if (!err)
		tsi_view_publish(v, run->opening, run->first,
				 run->first + run->count);
	if (!err && tsi_stage_settles(v->stage)) {
		tsi_sync_unlock(t->sync);
		if (copied)
			tsi_stage_settle(v->stage, lane);
		let_go(v, run);
		tsi_sync_lock(t->sync);
	}
	return err;
}

static int stage_run(struct tsi_view *v)
{
	struct runs r = { .count = 0 };
	struct run run = { .count = 0 };
	int err = 0;

	while (!err) {
		if (r.count < tsi_stage_lanes(v->stage) &&
		    stage_take(v, &r, &run))
			err = stage_begin(v, &r, &run);
		else if (r.count)
			err = stage_end(v, &r);
		else
			return 0;
	}
	tsi_membership_reading(v->table->membership, v->id, TSI_NEVER);
	return err;
}

/* ---- a ring's life ---- */

static int make_stage(struct tsi_view *v)
{
	const struct tsi_view *from = &v->table->view[v->source];
	struct tsi_stage_parts p = { .from = &from->ring,
				     .to = &v->ring,
				     .spec = v->spec,
				     .from_device = from->device,
				     .to_device = v->device,
				     .residents = v->table->residents };

	if (v->kind == TSI_STAGE_UPLOAD)
		tsi_view_pin_base(v);
	return tsi_stage_create(v->kind, &p, &v->stage);
}

static int make_ring(struct tsi_view *v)
{
	struct tsi_ring_ident id = tsi_ring_ident(&v->table->view[0].ring);

	if (!v->spec.gpu)
		return tsi_ring_create(&v->geometry, &id, &v->ring);
	return tsi_ring_create_gpu(&v->geometry, &id, v->device,
				   v->spec.transport, &v->ring);
}

/* Memory can't be had or shared by this transport; another one may do. */
static int no_ring(struct tsi_view *v, int err)
{
	struct tsi_view_table *t = v->table;
	if (err == TSOCK_ENOMEM)
		return tsi_err(err, "no room for a ring of %.1f MiB: %s",
			       (double)v->geometry.bytes / (1 << 20),
			       tsock_errmsg());
	if (!v->spec.gpu)
		return err;
	if (err == TSOCK_ENOTSUP || err == TSOCK_ESYS) {
		tsi_sync_lock(t->sync);
		tsi_gpu_table_refuse(&t->gpus, v->spec.uuid, v->spec.transport,
				     tsock_errmsg());
		tsi_sync_unlock(t->sync);
	}
	/* The consumer can do without: it then copies by itself. */
	return tsi_err(TSOCK_ENOTSUP, "the producer can't use that GPU: %s",
		       tsock_errmsg());
}

static int make_view(struct tsi_view *v)
{
	int err = make_ring(v);

	if (err)
		return no_ring(v, err);
	if (v->spec.gpu)
		tsi_view_neighbour_find(v);
	return make_stage(v);
}

/*
 * The view's source is lost, or can't be read any more.  If the view's own GPU
 * is what has failed, the new stage fails as well.
 */
static bool fall_back_to_base(struct tsi_view *v)
{
	struct tsi_view_table *t = v->table;
	unsigned lost = t->view[v->source].device;
	int err;

	v->kind = TSI_STAGE_UPLOAD;
	tsi_sync_unlock(t->sync);
	/* After this no samples are on their way to the ring. */
	tsi_stage_destroy(v->stage);
	tsi_sync_lock(t->sync);
	v->stage = NULL;
	if (!tsi_membership_fall_back_to_base(t->membership, v->id))
		return false;
	v->source = 0;
	v->source_lost = false;
	tsi_sync_wake_stages(t->sync);
	tsi_sync_unlock(t->sync);
	err = make_stage(v);
	tsi_sync_lock(t->sync);
	if (err)
		tsi_err_copy(v->error, sizeof(v->error));
	else
		tsi_log(TSOCK_LOG_WARN,
			"GPU %u is filled from host memory from now on, not "
			"from GPU %u: %s",
			v->device, lost, v->error);
	return !err;
}

static void live(struct tsi_view *v)
{
	tsi_view_ready(v);
	v->idle_ms = tsi_now_ms();
	do {
		if (v->kind == TSI_STAGE_BROADCAST)
			tsi_view_broadcast_serve(v);
		if (stage_run(v))
			tsi_view_source_lost(v, tsock_errmsg());
		if (!v->source_lost)
			return;
	} while (tsi_view_can_fall_back(v) && fall_back_to_base(v));
	tsi_view_fail(v, v->error);
}

void *tsi_view_thread_main(void *arg)
{
	struct tsi_view *v = arg;
	struct tsi_view_table *t = v->table;
	int err;

	tsi_thread_name("tsock-view");
	err = make_view(v);
	tsi_sync_lock(t->sync);
	if (!err && v->phase == TSI_VIEW_MAKING &&
	    t->view[v->source].phase != TSI_VIEW_READY) {
		err = tsi_err(TSOCK_ESTREAM, "what it is made of has failed");
		if (tsi_view_can_fall_back(v)) {
			tsi_view_source_lost(v, tsock_errmsg());
			err = 0;
		}
	}
	if (err) {
		v->code = err;
		tsi_err_copy(v->error, sizeof(v->error));
		v->phase = TSI_VIEW_BROKEN;
	} else if (v->phase == TSI_VIEW_MAKING) {
		live(v);
	}
	/* Views that are made of this one end first. */
	while (tsi_view_has_dependents(v))
		tsi_sync_wait_staged(t->sync, INT64_MAX);
	tsi_view_drain(v);
	tsi_sync_unlock(t->sync);
	/* Freeing gigabytes takes a while, so the lock isn't held. */
	if (tsi_view_broadcast_end(v)) {
		tsi_stage_destroy(v->stage);
		tsi_ring_destroy(&v->ring);
	}
	tsi_sync_lock(t->sync);
	v->stage = NULL;
	v->thread_done = true;
	tsi_sync_wake_stages(t->sync);
	tsi_sync_unlock(t->sync);
	return NULL;
}
