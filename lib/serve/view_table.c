/* SPDX-License-Identifier: MIT */
/*
 * view_table.c - the views that there are: found, made, freed.
 *
 * A view is made when the first consumer asks for it, and freed when it has had
 * no reader for a while.
 */
#include "serve/view_table.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "serve/readers.h"
#include "serve/view_plan.h"
#include "serve/view_thread.h"
#include "stage/download.h"

#define IDLE_MS 5000  /* a view is kept so long after its last reader */
#define RESERVE_MS 50 /* then the rest is for the next look */
/* Threads have this time to end when the server is closed. */
#define CLOSE_NS INT64_C(8000000000)

void tsi_view_table_init(struct tsi_view_table *t,
			 const struct tsock_serve_opts *o,
			 struct tsi_sync *sync, struct tsi_membership *m,
			 struct tsi_readers *readers)
{
	t->sync = sync;
	t->membership = m;
	t->readers = readers;
	t->memory = o->memory;
	t->gpu_memory = o->gpu_memory;
	t->transport = o->gpu_transport;
	t->commit_views = o->commit_views;
	t->gpus.sync = sync;
	t->copies.fanout = o->fanout;
	tsi_ring_pin_init(&t->pin);
	for (unsigned i = 0; i < TSI_VIEWS; i++) {
		t->view[i].table = t;
		t->view[i].id = i;
	}
}

int tsi_view_table_make_base(struct tsi_view_table *t,
			     const struct tsi_geometry *g,
			     const struct tsi_ring_ident *id)
{
	struct tsi_view *v = &t->view[0];
	int err = tsi_residents_create(g->capacity, &t->residents);

	if (!err)
		err = tsi_downloads_create(&t->downloads);
	if (!err)
		err = tsi_ring_create(g, id, &v->ring);
	if (err)
		return err;
	v->geometry = *g;
	tsi_view_ready(v);
	return 0;
}

void tsi_view_table_destroy_base(struct tsi_view_table *t)
{
	tsi_residents_destroy(t->residents);
	tsi_downloads_destroy(t->downloads);
	tsi_ring_pin_fini(&t->pin, &t->view[0].ring);
	tsi_ring_destroy(&t->view[0].ring);
}

int tsi_view_table_commit(struct tsi_view_table *t,
			  const struct tsock_gpu_samples *from, uint64_t first,
			  unsigned count, struct tsi_resident_held **unneeded)
{
	struct tsi_ring *base = &t->view[0].ring;
	struct tsi_resident r = { .device = from->device,
				  .first = first,
				  .count = count,
				  .release = from->release,
				  .arg = from->arg };
	int err;

	for (unsigned f = 0; f < tsi_ring_nfields(base); f++) {
		r.data[f] = from->data[f];
		r.bytes[f] = tsi_ring_bytes(base, f, 1);
	}
	tsi_ring_pin(&t->pin, base, from->device);
	err = tsi_download(t->downloads, &r, from->stream, base);
	if (!err)
		*unneeded = tsi_residents_keep(t->residents, &r);
	return err;
}

struct tsi_resident_held *tsi_view_table_written(struct tsi_view_table *t,
						 uint64_t first, unsigned count)
{
	return tsi_residents_forget(t->residents, first, count);
}

void tsi_view_table_convert(struct tsi_view_table *t, uint32_t views,
			    uint64_t s)
{
	/* The stage and the rings stay until this sample is published: the
	 * view's thread waits for that (tsi_membership_drained()). */
	for (unsigned i = 1; views >> i; i++)
		if (views >> i & 1)
			(void)tsi_stage_start(t->view[i].stage, 0, s, 1);
}

/* A ring that is being made, or destroyed, is its thread's. */
static uint64_t ring_bytes(const struct tsi_view *v)
{
	return v->geometry.bytes +
	       (v->phase == TSI_VIEW_READY ? tsi_ring_spare(&v->ring) : 0);
}

uint64_t tsi_view_table_bytes(const struct tsi_view_table *t)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < TSI_VIEWS; i++)
		if (t->view[i].phase == TSI_VIEW_READY)
			bytes += ring_bytes(&t->view[i]);
	return bytes;
}

/* ---- freeing; with the lock held ---- */

static bool idle(const struct tsi_view_table *t, const struct tsi_view *v)
{
	/* Another view's stage may be reading it. */
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (t->view[i].phase != TSI_VIEW_EMPTY &&
		    t->view[i].source == v->id)
			return false;
	return v->phase == TSI_VIEW_READY &&
	       !tsi_readers_need(t->readers, v->id);
}

/* Join the view's thread if it has ended: this doesn't wait. */
static void reap(struct tsi_view *v)
{
	if (!v->has_thread || !v->thread_done)
		return;
	pthread_join(v->thread, NULL);
	v->has_thread = v->thread_done = false;
	v->phase = TSI_VIEW_EMPTY;
}

void tsi_view_table_sweep(struct tsi_view_table *t, int64_t now_ms)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *v = &t->view[i];

		if (v->phase == TSI_VIEW_READY &&
		    tsi_readers_need(t->readers, v->id))
			v->idle_ms = now_ms;
		else if (idle(t, v) && now_ms - v->idle_ms > IDLE_MS)
			tsi_view_end(v);
		/* The consumer that asked for it may never ask again. */
		if (v->phase == TSI_VIEW_ENDING ||
		    (v->phase == TSI_VIEW_BROKEN &&
		     now_ms - v->idle_ms > IDLE_MS))
			reap(v);
	}
}

/* Threads that have not ended. */
static unsigned threads(const struct tsi_view_table *t)
{
	unsigned n = t->gpus.asking;

	for (unsigned i = 1; i < TSI_VIEWS; i++)
		n += t->view[i].has_thread && !t->view[i].thread_done;
	return n;
}

bool tsi_view_table_close(struct tsi_view_table *t)
{
	int64_t until = tsi_now_ns() + CLOSE_NS;
	unsigned left;

	t->closing = true;
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (t->view[i].has_thread &&
		    t->view[i].phase != TSI_VIEW_BROKEN)
			tsi_view_end(&t->view[i]);
	while ((left = threads(t)) && tsi_now_ns() < until)
		tsi_sync_wait_staged(t->sync, until);
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		reap(&t->view[i]);
	if (left)
		tsi_log(TSOCK_LOG_ERROR,
			"a GPU hangs: threads in calls to it (%u) have not "
			"returned for %d s; what they use is left behind",
			left, (int)(CLOSE_NS / 1000000000));
	return !left;
}

/* ---- finding and making; with the lock held ---- */

/* Bytes in rings on the host, or on one GPU. */
static uint64_t memory_used(const struct tsi_view_table *t, bool gpu,
			    unsigned device)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < TSI_VIEWS; i++) {
		const struct tsi_view *v = &t->view[i];

		if (v->phase != TSI_VIEW_EMPTY && (v->spec.gpu != 0) == gpu &&
		    (!gpu || v->device == device))
			bytes += ring_bytes(v);
	}
	return bytes;
}

int tsi_view_table_reserve(struct tsi_view_table *t, unsigned view)
{
	struct tsi_view *v = &t->view[view];
	uint64_t used =
		memory_used(t, false, 0) - ring_bytes(v) + v->geometry.bytes;
	int64_t until = tsi_now_ms() + RESERVE_MS;
	int err = TSOCK_EAGAIN;

	if (t->memory && used + v->geometry.bytes > t->memory)
		return tsi_err(TSOCK_EREFUSED,
			       "its ring needs %llu MiB more for that, and "
			       "%llu MiB of the %llu MiB that the producer may "
			       "use (--memory) are taken",
			       (unsigned long long)(v->geometry.bytes >> 20),
			       (unsigned long long)(used >> 20),
			       (unsigned long long)(t->memory >> 20));
	/* Others have messages to be answered, and deaths to be noticed. */
	while (err == TSOCK_EAGAIN && v->phase == TSI_VIEW_READY &&
	       tsi_now_ms() < until) {
		err = tsi_ring_reserve(&v->ring);
		tsi_sync_unlock(t->sync);
		tsi_sync_lock(t->sync);
	}
	return err == TSOCK_EAGAIN ? 0 : err;
}

static int budget(const struct tsi_view_table *t,
		  const struct tsi_view_spec *spec, unsigned device,
		  const struct tsi_geometry *g)
{
	uint64_t used = memory_used(t, spec->gpu, device);
	uint64_t most = spec->gpu ? t->gpu_memory : t->memory;

	if (!most || used + g->bytes <= most)
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "this dtype, layout and normalisation need a ring of "
		       "%llu MiB; %llu MiB of the %llu MiB that the producer "
		       "may use (%s) are taken",
		       (unsigned long long)(g->bytes >> 20),
		       (unsigned long long)(used >> 20),
		       (unsigned long long)(most >> 20),
		       spec->gpu ? "--gpu-memory" : "--memory");
}

/* Make room by ending views without readers: true if there will be room. */
static bool end_idle(struct tsi_view_table *t)
{
	bool any = false;

	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		if (idle(t, &t->view[i]))
			tsi_view_end(&t->view[i]);
		any |= t->view[i].phase == TSI_VIEW_ENDING;
	}
	return any;
}

static int make_view(struct tsi_view *v, const struct tsi_view_plan *p,
		     const struct tsi_ranks *part, const struct tsi_geometry *g,
		     unsigned source)
{
	int err;

	v->spec = p->spec;
	v->part = *part;
	v->geometry = *g;
	v->device = p->device;
	v->phase = TSI_VIEW_MAKING;
	v->thread_done = v->source_lost = false;
	v->sending = (struct tsi_view_sending){ .busy = false };
	v->idle_ms = tsi_now_ms();
	v->age = v->table->made++;
	tsi_view_set_source(v, source, p->kind);
	err = tsi_thread_start(&v->thread, tsi_view_thread_main, v);
	if (err) {
		v->phase = TSI_VIEW_EMPTY;
		return err;
	}
	v->has_thread = true;
	return 0;
}

/* This consumer gets the error; for the next one the view is made anew. */
static int broken(struct tsi_view_table *t, struct tsi_view *v)
{
	int code = tsi_err(v->code, "%s", v->error);

	if (code == TSOCK_ENOMEM && end_idle(t))
		code = TSOCK_EAGAIN;
	v->phase = TSI_VIEW_ENDING;
	reap(v);
	return code;
}

static const struct tsi_ranks all = { .world = 1 };

static bool same_part(const struct tsi_ranks *a, const struct tsi_ranks *b)
{
	if (a->world <= 1 || b->world <= 1)
		return a->world <= 1 && b->world <= 1;
	return a->rank == b->rank && a->world == b->world &&
	       a->once == b->once && a->drop_last == b->drop_last &&
	       a->batch == b->batch;
}

static struct tsi_view *same_view(struct tsi_view_table *t,
				  const struct tsi_view_spec *spec,
				  const struct tsi_ranks *part)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++) {
		struct tsi_view *v = &t->view[i];

		if (v->phase != TSI_VIEW_EMPTY && v->phase != TSI_VIEW_ENDING &&
		    tsi_view_spec_equal(spec, &v->spec) &&
		    same_part(part, &v->part))
			return v;
	}
	return NULL;
}

static struct tsi_view *free_view(struct tsi_view_table *t)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (t->view[i].phase == TSI_VIEW_EMPTY)
			return &t->view[i];
	return NULL;
}

/* A view that doesn't exist yet: EAGAIN while it, or its source, is made. */
static int begin_view(struct tsi_view_table *t, const struct tsi_view_plan *p,
		      const struct tsi_ranks *part)
{
	struct tsi_geometry g;
	struct tsi_view *v;
	unsigned source = 0;
	int err = 0;

	if (p->has_source)
		err = tsi_view_table_find(t, &p->source, part, &source);
	if (!err)
		err = tsi_view_plan_geometry(p, &t->view[0].geometry, &g);
	if (err)
		return err;
	v = free_view(t);
	err = v ? budget(t, &p->spec, p->device, &g)
		: tsi_err(TSOCK_EREFUSED,
			  "the stream has %d different views in use already; "
			  "share a dtype, layout and normalisation with "
			  "another consumer",
			  TSI_VIEWS - 1);
	if (err)
		return end_idle(t) ? TSOCK_EAGAIN : err;
	err = make_view(v, p, part, &g, source);
	return err ? err : TSOCK_EAGAIN;
}

static int plan_for(struct tsi_view_table *t, const struct tsi_view_spec *spec,
		    struct tsi_view_plan *p)
{
	struct tsi_gpu_entry *gpu = NULL;
	int err = 0;

	if (spec->gpu)
		err = tsi_gpu_table_find(&t->gpus, spec->uuid, &gpu);
	if (!err)
		err = tsi_view_plan_make(spec, gpu, t->transport, p);
	if (!err && gpu && !spec->transport && !t->transport)
		tsi_gpu_table_tell(gpu, p->spec.transport);
	return err;
}

/* What the view and the one that it is made of need, as far as they are new. */
static int need(struct tsi_view_table *t, const struct tsi_view_plan *p,
		uint64_t *bytes, unsigned *views)
{
	struct tsi_view_plan source;
	struct tsi_geometry g;
	int err = tsi_view_plan_geometry(p, &t->view[0].geometry, &g);

	if (err)
		return err;
	*bytes += g.bytes;
	++*views;
	if (!p->has_source || same_view(t, &p->source, &all))
		return 0;
	err = plan_for(t, &p->source, &source);
	return err ? err : need(t, &source, bytes, views);
}

/* Do ranks with another part of the same read here? */
static bool other_part(const struct tsi_view_table *t,
		       const struct tsi_view_spec *spec)
{
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (tsi_view_spec_equal(spec, &t->view[i].spec) &&
		    t->view[i].phase == TSI_VIEW_READY &&
		    tsi_readers_need(t->readers, i))
			return true;
	return false;
}

/*
 * May the ranks on this GPU have a view of their own?  Only if one of all
 * samples has room beside it: nobody that comes later is refused for it.
 */
static bool room_for_part(struct tsi_view_table *t,
			  const struct tsi_view_plan *p)
{
	uint64_t used = memory_used(t, true, p->device), bytes = 0;
	unsigned views = 0, empty = 0;

	for (unsigned i = 1; i < TSI_VIEWS; i++)
		empty += t->view[i].phase == TSI_VIEW_EMPTY;
	return !need(t, p, &bytes, &views) && empty >= 2 * views &&
	       (!t->gpu_memory || used + 2 * bytes <= t->gpu_memory);
}

/* The view if it is there; and which part the one that is to be made has. */
static struct tsi_view *find_view(struct tsi_view_table *t,
				  const struct tsi_view_plan *p,
				  const struct tsi_ranks **part)
{
	struct tsi_view *v = same_view(t, &p->spec, &all);

	if (v || !p->spec.gpu || (*part)->world <= 1) {
		*part = &all;
		return v;
	}
	v = same_view(t, &p->spec, *part);
	/* Jobs that differ share one of all samples: two rings, not one each. */
	if (!v && (other_part(t, &p->spec) || !room_for_part(t, p)))
		*part = &all;
	return v;
}

int tsi_view_table_find(struct tsi_view_table *t,
			const struct tsi_view_spec *spec,
			const struct tsi_ranks *part, unsigned *view)
{
	struct tsi_view_plan p;
	struct tsi_view *v;
	int err;

	*view = 0;
	if (tsi_view_spec_is_base(spec))
		return 0;
	err = plan_for(t, spec, &p);
	if (err)
		return err;
	v = find_view(t, &p, &part);
	if (!v)
		return begin_view(t, &p, part);
	*view = v->id;
	if (v->phase == TSI_VIEW_BROKEN)
		return broken(t, v);
	return v->phase == TSI_VIEW_READY ? 0 : TSOCK_EAGAIN;
}
