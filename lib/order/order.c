/* SPDX-License-Identifier: MIT */
/*
 * order.c - which sample of the data set has which position in an epoch.
 */
#include "order/order.h"

#include "base/err.h"
#include "order/permutation.h"
#include "order/shuffle.h"

static uint32_t times(const struct tsi_order_opts *o)
{
	return o->repeat ? o->repeat : 1;
}

uint64_t tsi_order_whole(const struct tsi_order_opts *o)
{
	uint64_t n = o->count * times(o);

	return o->limit && o->limit < n ? o->limit : n;
}

static int check_length(const struct tsi_order_opts *o)
{
	if (o->count > TSI_PART_WHOLE / times(o))
		return tsi_err(TSOCK_ENOTSUP,
			       "an epoch of %llu samples, each %u times, is "
			       "too long",
			       (unsigned long long)o->count, times(o));
	if (o->limit > o->count * times(o))
		return tsi_err(TSOCK_EARG,
			       "a limit of %llu is more than the %llu samples "
			       "that an epoch has without it",
			       (unsigned long long)o->limit,
			       (unsigned long long)(o->count * times(o)));
	if (tsi_order_is_dealt(o) && (times(o) > 1 || o->limit))
		return tsi_err(TSOCK_EARG,
			       "a shuffle whose samples are repeated or "
			       "limited can't have segments: leave them out");
	if (tsi_order_is_dealt(o) && o->part.start)
		return tsi_err(TSOCK_EARG,
			       "segments of a shuffle deal the samples once: "
			       "no epoch is dealt anew");
	return 0;
}

int tsi_order_check(struct tsi_order_opts *o)
{
	int err;

	if (o->count == 0)
		return tsi_err(TSOCK_EARG, "the data set is empty");
	o->repeat = times(o);
	err = check_length(o);
	if (err)
		return err;
	err = tsi_part_check(&o->part, tsi_order_whole(o));
	if (err)
		return err;
	if (o->segments == 0)
		o->segments = 1;
	if (o->kind == TSOCK_ORDER_TORCH && o->segments > 1)
		return tsi_err(TSOCK_EARG, "the torch order can't have "
					   "segments: it shuffles whole "
					   "epochs; use the philox order");
	if (o->segments > tsi_order_len(o))
		return tsi_err(TSOCK_EARG,
			       "%u segments are more than the epoch's %llu "
			       "samples; ask for fewer",
			       o->segments,
			       (unsigned long long)tsi_order_len(o));
	if (o->kind == TSOCK_ORDER_TORCH && o->count >= TSI_TORCH_MAX)
		return tsi_err(TSOCK_ENOTSUP,
			       "the torch order is known below %llu samples, "
			       "not for %llu; use the philox order",
			       (unsigned long long)TSI_TORCH_MAX,
			       (unsigned long long)o->count);
	if (o->kind == TSOCK_ORDER_PHILOX && o->count > TSI_PERMUTATION_MAX)
		return tsi_err(TSOCK_ENOTSUP,
			       "shuffling is made for up to %llu samples, not "
			       "%llu; use the sequential order",
			       (unsigned long long)TSI_PERMUTATION_MAX,
			       (unsigned long long)o->count);
	return 0;
}

uint64_t tsi_order_len(const struct tsi_order_opts *o)
{
	return tsi_part_len(&o->part, tsi_order_whole(o));
}

uint64_t tsi_order_bound(const struct tsi_order_opts *o, uint32_t segment)
{
	uint64_t each = tsi_order_len(o) / o->segments;
	uint64_t more = tsi_order_len(o) % o->segments;

	return segment * each + (segment < more ? segment : more);
}

static uint64_t at(const struct tsi_order_opts *o, uint64_t epoch,
		   uint64_t position)
{
	return tsi_part_at(&o->part, tsi_order_whole(o), epoch, position);
}

uint64_t tsi_order_time(const struct tsi_order_opts *o, uint64_t epoch,
			uint64_t position)
{
	return times(o) > 1 ? at(o, epoch, position) % times(o) : 0;
}

uint64_t tsi_order_item(const struct tsi_order_opts *o, uint64_t epoch,
			uint64_t position)
{
	if (tsi_order_is_dealt(o))
		return position;
	return at(o, epoch, position) / times(o);
}

void tsi_order_run(const struct tsi_order_opts *o, uint64_t epoch,
		   const struct tsi_positions *run, unsigned n, uint64_t *item)
{
	bool same = tsi_order_is_dealt(o) || (!o->part.world && times(o) == 1);

	for (unsigned i = 0; i < n; i++)
		item[i] = run->first + i * run->stride;
	for (unsigned i = 0; !same && i < n; i++)
		item[i] = tsi_order_item(o, epoch, item[i]);
}

bool tsi_order_is_dealt(const struct tsi_order_opts *o)
{
	return o->kind == TSOCK_ORDER_PHILOX && o->segments > 1;
}

uint64_t tsi_order_dealt(const struct tsi_order_opts *o, uint64_t k)
{
	/* Of an epoch that is dealt anew there are no segments. */
	return at(o, 0, k);
}

unsigned tsi_order_version(const struct tsi_order_opts *o)
{
	return o->kind == TSOCK_ORDER_PHILOX && o->count >= TSI_PERMUTATION_MIN
		       ? 2
		       : 0;
}

uint64_t tsi_order_torch_start(const struct tsi_order_opts *o, uint64_t epoch,
			       struct tsi_mt19937 *mt)
{
	uint64_t at = o->part.world ? epoch : 0;

	tsi_mt19937_seed(mt, (uint32_t)(o->seed + at));
	return at;
}

/*
 * A DataLoader's pass draws from its generator: the workers' base seed (two
 * words), the epoch's permutation, and, when RandomSampler has run dry, a
 * second permutation of which it uses nothing.  (With persistent_workers the
 * base seed is drawn in the first pass alone: another order.)
 */
void tsi_order_torch_pass(const struct tsi_order_opts *o,
			  struct tsi_mt19937 *mt)
{
	tsi_mt19937_skip(mt, 2 + 2 * (o->count - 1));
}

void tsi_order_torch(const struct tsi_order_opts *o, struct tsi_mt19937 *mt,
		     uint32_t *item)
{
	if (!o->part.world)
		tsi_mt19937_skip(mt, 2); /* the workers' base seed */
	tsi_shuffle_torch(item, o->count, mt);
}
