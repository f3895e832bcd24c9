/* SPDX-License-Identifier: MIT */
/*
 * options.c - the options of a server: read, checked, and the ring they give.
 */
#include "serve/options.h"

#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/sequence.h"
#include "base/sized.h"
#include "serve/membership.h"
#include "view/spec.h"

static int check_pointers(const struct tsock_serve_opts *o)
{
	if (!o->fields)
		return tsi_err(TSOCK_EARG, "the options' fields are NULL");
	if (!o->classes && o->nclasses)
		return tsi_err(TSOCK_EARG,
			       "the options' classes are NULL, and nclasses is "
			       "%u",
			       o->nclasses);
	for (uint32_t i = 0; i < o->nclasses; i++)
		if (!o->classes[i])
			return tsi_err(TSOCK_EARG,
				       "the name of class %u is "
				       "NULL",
				       i);
	return 0;
}

struct tsi_part tsi_options_part(const struct tsock_serve_opts *o)
{
	return (struct tsi_part){
		.first = o->shard,
		.ranks = o->shard_ranks,
		.world = o->shards,
		.start = o->start,
		.start_epoch = o->start_epoch,
	};
}

static int check_part(const struct tsock_serve_opts *o)
{
	struct tsi_part part = tsi_options_part(o);
	int err = tsi_part_check(&part, o->whole_len);

	if (err)
		return err;
	if (o->start && !o->whole_len)
		return tsi_err(TSOCK_EARG,
			       "a stream that begins at position %llu of an "
			       "epoch has to say how long the whole epoch is",
			       (unsigned long long)o->start);
	if (o->whole_len && tsi_part_len(&part, o->whole_len) != o->epoch_len)
		return tsi_err(
			TSOCK_EARG,
			"a part of epochs of %llu samples has epochs of "
			"%llu, not of %llu",
			(unsigned long long)o->whole_len,
			(unsigned long long)tsi_part_len(&part, o->whole_len),
			(unsigned long long)o->epoch_len);
	if (o->start_epoch > TSI_LAST / 2 / o->epoch_len ||
	    (o->start && o->epochs && o->start_epoch >= o->epochs))
		return tsi_err(TSOCK_EARG,
			       "a stream of %llu epochs can't begin in epoch "
			       "%llu, counted from 0",
			       (unsigned long long)o->epochs,
			       (unsigned long long)o->start_epoch);
	return 0;
}

static int check_opts(const struct tsock_serve_opts *o)
{
	int err = check_pointers(o);

	if (err)
		return err;
	if (!o->epoch_len || o->epoch_len > (UINT64_C(1) << 48))
		return tsi_err(TSOCK_EARG,
			       "an epoch has 1 to 2^48 samples, "
			       "not %llu",
			       (unsigned long long)o->epoch_len);
	if (o->epochs > TSI_LAST / o->epoch_len)
		return tsi_err(TSOCK_EARG, "%llu epochs are too many",
			       (unsigned long long)o->epochs);
	if (o->first_epoch > TSI_LAST / 2 / o->epoch_len)
		return tsi_err(TSOCK_EARG, "no stream comes to epoch %llu",
			       (unsigned long long)o->first_epoch);
	if (o->epochs && o->first_epoch >= o->epochs)
		return tsi_err(TSOCK_EARG,
			       "a stream that ends after %llu epochs can't "
			       "begin with epoch %llu, counted from 0",
			       (unsigned long long)o->epochs,
			       (unsigned long long)o->first_epoch);
	if (o->segments > o->epoch_len)
		return tsi_err(TSOCK_EARG,
			       "%u segments don't fit an epoch of %llu samples",
			       o->segments, (unsigned long long)o->epoch_len);
	err = check_part(o);
	if (err)
		return err;
	if (o->min_consumers > TSI_MAX_MEMBERS)
		return tsi_err(TSOCK_EARG, "a stream has at most %d consumers",
			       TSI_MAX_MEMBERS);
	if (o->fanout > TSOCK_FANOUT_HOST ||
	    o->gpu_transport > TSOCK_TRANSPORT_STAGED)
		return tsi_err(TSOCK_EARG,
			       "an unknown fan-out, or transport to "
			       "GPU memory");
	if (o->resumable && (!o->identity || !o->identity[0]))
		return tsi_err(TSOCK_EARG,
			       "a stream is resumable by its identity, and "
			       "this one says none");
	if (o->slow > TSOCK_SLOW_DETACH ||
	    (o->slow != TSOCK_SLOW_BLOCK && !o->slow_ms))
		return tsi_err(TSOCK_EARG, "the policy for slow consumers is "
					   "unknown or has no time");
	if (o->slow == TSOCK_SLOW_DETACH && o->gpu_transport &&
	    o->gpu_transport != TSOCK_TRANSPORT_STAGED)
		return tsi_err(TSOCK_EARG,
			       "slow consumers can be detached from rings in "
			       "host memory alone: choose the staged transport "
			       "to GPUs, or another policy");
	for (uint32_t i = 0; o->segment_bounds && i < o->segments; i++)
		if (o->segment_bounds[i] > o->segment_bounds[i + 1] ||
		    o->segment_bounds[0] ||
		    o->segment_bounds[o->segments] != o->epoch_len)
			return tsi_err(TSOCK_EARG,
				       "segment bounds must rise from 0 to the "
				       "epoch's length");
	return 0;
}

/*
 * Half of the memory for rings of four views.  The machine's whole memory
 * counts, not what is free, so that a successor's ring has the same size.
 */
static uint64_t usual_ring_bytes(void)
{
	uint64_t most = tsi_limits_whole_memory("") / 8;

	return max64(min64(most, TSI_GEOMETRY_USUAL), 1 << 20);
}

static int make_geometry(struct tsock_serve_opts *o, struct tsi_geometry *g)
{
	struct tsi_geometry_wish wish = { .ring = o->ring,
					  .bytes = o->ring_bytes,
					  .usual = usual_ring_bytes(),
					  .least_batch = o->least_batch,
					  .join_window = o->join_window,
					  .max_batch = o->max_batch,
					  .epoch_len = o->epoch_len };
	int err;

	if (o->ring && o->ring_bytes)
		return tsi_err(TSOCK_EARG,
			       "a ring has either so many samples (%u) or so "
			       "many bytes (%llu)",
			       o->ring, (unsigned long long)o->ring_bytes);
	err = tsi_geometry_make(o->fields, o->nfields, &wish, g);
	/* What consumers are told: a batch may be larger than an epoch. */
	if (!err && !o->max_batch)
		o->max_batch = (uint32_t)(g->max_batch < o->epoch_len
						  ? g->max_batch
						  : max64(o->least_batch,
							  TSI_GEOMETRY_BATCH));
	return err;
}

int tsi_options_read(const char *call, const struct tsock_serve_opts *from,
		     struct tsock_serve_opts *o, struct tsi_geometry *g)
{
	int err;

	*o = (struct tsock_serve_opts)TSOCK_SERVE_OPTS_INIT;
	err = tsi_sized_read(call, &tsi_sized_serve_opts, from, o);
	if (!err)
		err = check_opts(o);
	if (!err)
		err = make_geometry(o, g);
	if (err || o->slow != TSOCK_SLOW_DETACH)
		return err;
	g->two_halves = true;
	o->gpu_transport = TSOCK_TRANSPORT_STAGED;
	return 0;
}

/* What the ring of a view of this dtype takes. */
static int view_bytes(const struct tsock_serve_opts *o,
		      const struct tsi_geometry *base, uint32_t dtype,
		      uint64_t *bytes)
{
	struct tsi_view_spec spec = { .dtype = dtype,
				      .layout = TSOCK_CHW,
				      .normalize = TSOCK_UNIT };
	struct tsock_field field[TSOCK_MAX_FIELDS];
	struct tsi_geometry g;
	int err;

	for (unsigned i = 0; i < o->nfields; i++)
		tsi_view_spec_field(&spec, &o->fields[i], &field[i]);
	err = tsi_geometry_like(base, field, o->nfields, base->granularity, &g);
	if (!err)
		*bytes = g.bytes;
	return err;
}

int tsock_serve_geometry(const struct tsock_serve_opts *opts,
			 struct tsock_geometry *out)
{
	static const char call[] = "tsock_serve_geometry";
	int err = tsi_sized_check(call, &tsi_sized_geometry, out);
	struct tsock_serve_opts o;
	struct tsock_geometry r;
	struct tsi_geometry g;

	memset(&r, 0, sizeof(r));
	if (!err)
		err = tsi_options_read(call, opts, &o, &g);
	if (!err)
		err = view_bytes(&o, &g, TSOCK_F32, &r.f32_bytes);
	if (!err)
		err = view_bytes(&o, &g, TSOCK_F16, &r.f16_bytes);
	if (err)
		return err;
	r.capacity = g.capacity;
	r.join_window = g.join_window;
	r.max_batch = o.max_batch;
	r.ring_bytes = g.bytes;
	tsi_sized_write(&tsi_sized_geometry, &r, out);
	return 0;
}
