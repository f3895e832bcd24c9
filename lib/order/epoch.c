/* SPDX-License-Identifier: MIT */
/*
 * epoch.c - the order of an epoch, for tsock_order() and tsock_order_at().
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/sized.h"
#include "order/places.h"
#include "tsock/tsock.h"

/* What torch's generator may draw for an epoch: it takes some minutes. */
#define MOST_DRAWS (UINT64_C(1) << 40)

#define SOME 1024 /* places that are found at once */

static int options(const char *call, const struct tsock_order_opts *opts,
		   struct tsi_order_opts *out)
{
	struct tsock_order_opts o = TSOCK_ORDER_OPTS_INIT;
	int err = tsi_sized_read(call, &tsi_sized_order_opts, opts, &o);

	if (err)
		return err;
	if (o.kind > TSOCK_ORDER_SEQUENTIAL)
		return tsi_err(
			TSOCK_EARG,
			"%s: opts.kind is %u, and there is no such order", call,
			o.kind);
	if (o.shard && !o.shards)
		return tsi_err(TSOCK_EARG,
			       "%s: opts.shard is %u, but opts.shards, the "
			       "number of shards, is 0",
			       call, o.shard);
	*out = (struct tsi_order_opts){
		.kind = (enum tsock_order_kind)o.kind,
		.seed = o.seed,
		.count = o.count,
		.segments = o.segments,
		.part = { o.shard, o.shard_ranks, o.shards, o.start,
			  o.start_epoch },
		.repeat = o.repeat,
		.limit = o.limit,
	};
	return tsi_order_check(out);
}

uint64_t tsock_order_len(const struct tsock_order_opts *opts)
{
	struct tsi_order_opts o;

	return options("tsock_order_len", opts, &o) ? 0 : tsi_order_len(&o);
}

static int torch(const struct tsi_order_opts *o, uint64_t epoch, uint32_t *item)
{
	struct tsi_mt19937 mt;
	uint64_t at = tsi_order_torch_start(o, epoch, &mt);

	if (epoch - at > MOST_DRAWS / (2 * o->count))
		return tsi_err(TSOCK_ENOTSUP,
			       "the torch order of epoch %llu takes all that "
			       "its generator draws in the epochs before it: "
			       "more than %llu numbers",
			       (unsigned long long)epoch,
			       (unsigned long long)MOST_DRAWS);
	for (; at < epoch; at++)
		tsi_order_torch_pass(o, &mt);
	tsi_order_torch(o, &mt, item);
	return 0;
}

/* Where an epoch's places are looked up. */
struct finder {
	struct tsi_places places;
	uint32_t *item;               /* of a piece that is an array */
	struct tsi_order_piece piece; /* this one; len 0: of none yet */
	uint64_t epoch;
};

/* Fails with nothing left to release. */
static int find_in(struct finder *f, const struct tsi_order_opts *o,
		   uint64_t epoch)
{
	uint64_t n;
	int err;

	*f = (struct finder){ .epoch = epoch };
	err = tsi_places_init(&f->places, o);
	if (err)
		return err;
	n = tsi_places_longest(&f->places);
	if (!n)
		return 0;
	f->item = malloc(n * sizeof(*f->item));
	if (!f->item)
		err = tsi_err(TSOCK_ENOMEM,
			      "no memory for the order of %llu samples",
			      (unsigned long long)n);
	else if (o->kind == TSOCK_ORDER_TORCH)
		err = torch(o, epoch, f->item);
	if (err) {
		free(f->item);
		tsi_places_fini(&f->places);
	}
	return err;
}

static void look_up(struct finder *f, const struct tsi_order_piece *at,
		    uint64_t *x, unsigned n)
{
	bool other = !f->piece.len || f->piece.segment != at->segment;

	if (other && f->places.order.kind == TSOCK_ORDER_PHILOX)
		tsi_places_shuffle(&f->places, at, f->item);
	f->piece = *at;
	for (unsigned i = 0; i < n; i++)
		x[i] = f->item[x[i]];
}

/* Up to n of them; returns how many. */
static unsigned find_some(struct finder *f, const struct tsi_positions *run,
			  unsigned n, uint64_t *index)
{
	struct tsi_order_piece at =
		tsi_places_piece(&f->places, f->epoch, run->first);

	n = tsi_places_numbers(&f->places, &at, run, n, index);
	if (tsi_places_is_array(&f->places, &at))
		look_up(f, &at, index, n);
	else
		tsi_places_evaluate(&f->places, &at, index, n);
	tsi_places_indices(&f->places, &at, index, n);
	return n;
}

static unsigned at_most(uint64_t n)
{
	return n < SOME ? (unsigned)n : SOME;
}

static int shuffled(const struct tsi_order_opts *o, uint64_t epoch,
		    struct tsi_positions run, uint64_t *index, uint64_t n)
{
	struct finder f;
	int err = find_in(&f, o, epoch);

	if (err)
		return err;
	while (n) {
		unsigned some = find_some(&f, &run, at_most(n), index);

		run.first += some * run.stride;
		index += some;
		n -= some;
	}
	free(f.item);
	tsi_places_fini(&f.places);
	return 0;
}

static int write_order(const struct tsi_order_opts *o, uint64_t epoch,
		       struct tsi_positions run, uint64_t *index, uint64_t n)
{
	if (o->kind != TSOCK_ORDER_SEQUENTIAL)
		return shuffled(o, epoch, run, index, n);
	while (n) {
		unsigned some = at_most(n);

		tsi_order_run(o, epoch, &run, some, index);
		run.first += some * run.stride;
		index += some;
		n -= some;
	}
	return 0;
}

int tsock_order(const struct tsock_order_opts *opts, uint64_t epoch,
		uint64_t *index, uint64_t len)
{
	struct tsi_order_opts o;
	int err = options("tsock_order", opts, &o);

	if (err)
		return err;
	if (!index)
		return tsi_err(TSOCK_EARG, "tsock_order: index is NULL");
	if (len < tsi_order_len(&o))
		return tsi_err(TSOCK_EARG,
			       "tsock_order: index has room for %llu samples, "
			       "and an epoch has %llu",
			       (unsigned long long)len,
			       (unsigned long long)tsi_order_len(&o));
	return write_order(&o, epoch, (struct tsi_positions){ 0, 1 }, index,
			   tsi_order_len(&o));
}

static bool are_within(const struct tsi_positions *run, uint64_t n,
		       uint64_t len)
{
	if (!n)
		return true;
	if (run->first >= len)
		return false;
	return !run->stride || n - 1 <= (len - 1 - run->first) / run->stride;
}

int tsock_order_at(const struct tsock_order_opts *opts, uint64_t epoch,
		   uint64_t first, uint64_t stride, uint64_t *index, uint64_t n)
{
	const struct tsi_positions run = { first, stride };
	struct tsi_order_opts o;
	int err = options("tsock_order_at", opts, &o);

	if (err)
		return err;
	if (!index)
		return tsi_err(TSOCK_EARG, "tsock_order_at: index is NULL");
	if (!are_within(&run, n, tsi_order_len(&o)))
		return tsi_err(TSOCK_EARG,
			       "tsock_order_at: %llu positions from %llu on, "
			       "%llu apart, don't lie in an epoch of %llu "
			       "samples",
			       (unsigned long long)n, (unsigned long long)first,
			       (unsigned long long)stride,
			       (unsigned long long)tsi_order_len(&o));
	return n ? write_order(&o, epoch, run, index, n) : 0;
}
