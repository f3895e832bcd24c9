/* SPDX-License-Identifier: MIT */
/*
 * epoch.c - the whole order of an epoch, for tsock_order().
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/sized.h"
#include "order/order.h"
#include "tsock/tsock.h"

/* What torch's generator may draw for an epoch: it takes some minutes. */
#define MOST_DRAWS (UINT64_C(1) << 40)

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
		.sharded = o.shards > 0,
		.rank = o.shard,
		.world = o.shards,
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

static int philox(const struct tsi_order_opts *o, uint64_t epoch,
		  uint32_t *item)
{
	uint32_t *dealt;
	int err;

	if (!tsi_order_is_dealt(o)) {
		tsi_order_philox(o, NULL, epoch, item);
		return 0;
	}
	dealt = malloc(tsi_order_items(o) * sizeof(*dealt));
	if (!dealt)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to deal %llu samples into segments",
			       (unsigned long long)tsi_order_items(o));
	err = tsi_order_deal(o, dealt);
	if (!err)
		tsi_order_philox(o, dealt, epoch, item);
	free(dealt);
	return err;
}

static int shuffled(const struct tsi_order_opts *o, uint64_t epoch,
		    uint64_t *index)
{
	uint64_t items = tsi_order_items(o), len = tsi_order_len(o);
	uint32_t *item = malloc(items * sizeof(*item));
	int err;

	if (!item)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for the order of %llu samples",
			       (unsigned long long)items);
	if (o->kind == TSOCK_ORDER_TORCH)
		err = torch(o, epoch, item);
	else
		err = philox(o, epoch, item);
	for (uint64_t i = 0; !err && i < len; i++)
		index[i] = item[tsi_order_item(o, i)];
	free(item);
	return err;
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
	if (o.kind != TSOCK_ORDER_SEQUENTIAL)
		return shuffled(&o, epoch, index);
	for (uint64_t i = 0; i < tsi_order_len(&o); i++)
		index[i] = tsi_order_item(&o, i);
	return 0;
}
