/* SPDX-License-Identifier: MIT */
/*
 * membership_world.c - a model of a stream: its rings, workers and stages.
 */
#include "test/lib/membership_world.h"

#include <string.h>

struct world world;

uint64_t world_random(uint64_t below)
{
	world.rng ^= world.rng << 13;
	world.rng ^= world.rng >> 7;
	world.rng ^= world.rng << 17;
	return world.rng % below;
}

static void make_membership(void)
{
	struct tsi_membership_config config;

	memset(world.slot[world.producer % PRODUCERS], 0xff,
	       sizeof(world.slot[0]));
	config = (struct tsi_membership_config){ .epoch_len = world.n,
						 .join_window = world.w,
						 .capacity = world.c,
						 .end = world.end,
						 .segments = world.segments,
						 .bounds = world.bounds,
						 .min_members = 1 };
	tsi_membership_init(&world.m, &config);
	/* Two views of the base, one made of the second; one of the first that
	 * may lose it, and one made of that. */
	tsi_membership_source(&world.m, 1, 0, world.cap[1], false);
	tsi_membership_source(&world.m, 2, 0, world.cap[2], false);
	tsi_membership_source(&world.m, 3, 2, world.cap[3], false);
	tsi_membership_source(&world.m, 4, 1, world.cap[4], true);
	tsi_membership_source(&world.m, 5, 4, world.cap[5], false);
	for (unsigned v = 1; v <= 2; v++)
		if (world.with_base & 1u << v)
			tsi_membership_with_base(&world.m, v);
}

void world_make(uint64_t seed, bool detaches, unsigned with_base)
{
	memset(&world, 0, sizeof(world));
	world.seed = seed;
	world.detaches = detaches;
	world.with_base = with_base;
	world.rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	world.c = 8 + world_random(MOST_C - 8);
	world.w = 1 + world_random(world.c / 2);
	world.n = 1 + world_random(world_random(2) ? 40 : 200);
	world.end =
		world_random(4) ? TSI_NEVER : world.n * (1 + world_random(6));
	world.people = 1 + (unsigned)world_random(PEOPLE);
	world.segments = world.n >= 4 && world_random(2) ? 4 : 1;
	for (unsigned i = 0; i <= world.segments; i++)
		world.bounds[i] = world.n * i / world.segments;
	for (unsigned v = 0; v < RINGS; v++) {
		world.cap[v] =
			world.c +
			(v && world_random(3) == 0 ? world_random(8) : 0);
		world.lanes[v] = 1 + (unsigned)world_random(2);
	}
	make_membership();
}

void world_restart(uint64_t from)
{
	world.producer++;
	make_membership();
	world.npending = 0;
	memset(world.nruns, 0, sizeof(world.nruns));
	world.spare = false;
	world.alone = NULL;
	tsi_membership_hold(&world.m, from);
}

static uint64_t *slot(uint64_t producer, unsigned view, uint32_t generation,
		      uint64_t since, uint64_t s)
{
	unsigned half = (generation - 1) & 1;

	return &world.slot[producer % PRODUCERS][view]
			  [s >= since ? half : !half][s % world.cap[view]];
}

uint64_t *world_slot(unsigned view, uint64_t s)
{
	const struct tsi_view_state *v = &world.m.view[view];

	return slot(world.producer, view, v->generation, v->since, s);
}

uint64_t *world_slot_of(const struct person *q, uint64_t s)
{
	return slot(q->producer, q->view, q->generation, q->since, s);
}

bool world_outlives(const struct person *q)
{
	return q->producer != world.producer;
}

bool world_forgets(const struct person *q)
{
	return world.producer - q->producer + 1 >= PRODUCERS;
}

/* Nor what a detached reader may be looking at. */
static void check_abandoned(unsigned view, uint64_t s)
{
	for (unsigned i = 0; i < PEOPLE; i++) {
		const struct person *q = &world.who[i];

		if (!q->detached || q->view != view)
			continue;
		for (uint64_t k = q->tail; k < q->held; k++)
			check(world_slot_of(q, k) != world_slot(view, s));
	}
}

/* Writing s must not hit what a reader of that view still needs. */
static void check_overwrite(unsigned view, uint64_t s)
{
	for (unsigned i = 0; i < PEOPLE; i++) {
		struct person *q = &world.who[i];

		if (q->in && q->view == view && q->tail <= s)
			check(s < q->tail + world.cap[view]);
	}
	check_abandoned(view, s);
	for (unsigned v = 1; v < RINGS; v++)
		if (world.m.view[v].source == view && world.m.view[v].active &&
		    world.m.view[v].head <= s)
			check(s < world.m.view[v].head + world.cap[view]);
}

/* ---- the producer ---- */

/* What is published in a view is there, as far as it can't be overwritten. */
static void check_view(unsigned v)
{
	const struct tsi_view_state *view = &world.m.view[v];

	for (uint64_t s = view->base; view->active && s < view->head; s++)
		if (s + world.cap[v] >= view->claimed)
			check(*world_slot(v, s) == s);
}

/* Do workers write this sample into the view? */
static bool is_joint(unsigned v, uint64_t s)
{
	return s >= tsi_membership_joint(&world.m, v);
}

/* From now on a worker may write it, into the views that it is told of. */
static unsigned begin_views(uint64_t s)
{
	unsigned views = 0;

	for (unsigned v = 1; v < RINGS; v++) {
		if (!is_joint(v, s))
			continue;
		check_overwrite(v, s);
		*world_slot(v, s) = SPOILT;
		views |= 1u << v;
	}
	return views;
}

/*
 * A worker has written it.  A view may have ended since the sample was handed
 * out, and begun again: then the worker may know that, or not, or have known it
 * too late.
 */
static void write_views(uint64_t s, unsigned views)
{
	for (unsigned v = 1; v < RINGS; v++) {
		if (views & 1u << v && is_joint(v, s)) {
			*world_slot(v, s) = s;
		} else if (views & 1u << v && world_random(2)) {
			check(!tsi_membership_drained(&world.m, v));
			check_abandoned(v, s);
			*world_slot(v, s) = SPOILT;
			check_view(v);
		} else {
			check(!is_joint(v, s));
		}
	}
}

void world_claim(void)
{
	uint64_t first;
	unsigned n = tsi_membership_claim(
		&world.m, 0, 1 + (unsigned)world_random(4), &first);
	bool needed = false;

	for (unsigned i = 0; i < n; i++) {
		check_overwrite(0, first + i);
		*world_slot(0, first + i) = first + i;
		world.views[world.npending] = begin_views(first + i);
		world.pending[world.npending] = first + i;
		world.written[world.npending++] = false;
	}
	for (unsigned i = 0; i < PEOPLE; i++)
		needed |= world.who[i].in;
	/* Nothing is made for nobody. */
	if (n)
		check(needed);
}

void world_publish(void)
{
	unsigned done = 0, i;

	if (!world.npending)
		return;
	i = (unsigned)world_random(world.npending);
	if (!world.written[i])
		write_views(world.pending[i], world.views[i]);
	world.written[i] = true;
	while (done < world.npending && world.written[done])
		done++;
	if (done) {
		tsi_membership_published(&world.m, 0,
					 world.pending[done - 1] + 1);
		world.npending -= done;
		memmove(world.pending, world.pending + done,
			world.npending * sizeof(world.pending[0]));
		memmove(world.written, world.written + done,
			world.npending * sizeof(world.written[0]));
		memmove(world.views, world.views + done,
			world.npending * sizeof(world.views[0]));
	}
	tsi_membership_apply_jump(&world.m);
	for (unsigned v = 1; v < RINGS; v++)
		check_view(v);
}

void world_state_reading(unsigned v)
{
	uint64_t least = TSI_NEVER;

	for (unsigned i = 0; i < world.nruns[v]; i++)
		least = min64(least, world.run[v][i].first);
	tsi_membership_reading(&world.m, v, least);
}

void world_stage_begin(unsigned v)
{
	struct run *r = &world.run[v][world.nruns[v]];

	if (world.nruns[v] == world.lanes[v] || !world.m.view[v].active)
		return;
	r->n = tsi_membership_claim(&world.m, v, 1 + (unsigned)world_random(4),
				    &r->first);
	r->opening = world.m.view[v].opening;
	for (uint64_t s = r->first; s < r->first + r->n; s++) {
		check(s < world.m.view[world.m.view[v].source].head);
		check_overwrite(v, s);
		*world_slot(v, s) = SPOILT;
	}
	world.nruns[v] += r->n > 0;
	world_state_reading(v);
}

void world_stage_end(unsigned v)
{
	struct run r = world.run[v][0];
	bool live =
		world.m.view[v].active && world.m.view[v].opening == r.opening;

	if (!world.nruns[v])
		return;
	for (uint64_t s = r.first; s < r.first + r.n; s++) {
		/* One of before the view ended may read anything. */
		check(!live || *world_slot(world.m.view[v].source, s) == s);
		*world_slot(v, s) = *world_slot(world.m.view[v].source, s);
	}
	world.run[v][0] = world.run[v][1];
	world.nruns[v]--;
	world_state_reading(v);
	(void)tsi_membership_done(&world.m, v, r.opening, r.first,
				  r.first + r.n);
	check_view(v);
}
