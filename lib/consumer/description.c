/* SPDX-License-Identifier: MIT */
/*
 * description.c - what a producer says of its stream: does it make sense, and
 * has the stream the batches that are asked for?
 */
#include "consumer/description.h"

#include <stdbool.h>

#include "base/err.h"
#include "ring/geometry.h"

#define META_MAX (UINT32_C(1) << 28) /* bytes of class names */

/* Sums and products of these numbers stay below 2^64. */
static bool numbers_are_good(const struct tsi_msg_stream *s)
{
	return s->nfields && s->nfields <= TSOCK_MAX_FIELDS && s->epoch_len &&
	       s->epoch_len <= UINT64_MAX / 4 && s->meta_bytes <= META_MAX &&
	       s->nclasses <= s->meta_bytes &&
	       (!s->epochs || s->epochs <= UINT64_MAX / 4 / s->epoch_len);
}

void tsi_description_part(const struct tsi_msg_stream *s, struct tsi_part *part,
			  uint64_t *whole)
{
	*part = (struct tsi_part){
		.first = s->shard,
		.ranks = s->shard_ranks,
		.world = s->shards,
		.start = s->start,
		.start_epoch = s->start_epoch,
	};
	*whole = s->whole_len;
}

static bool part_is_good(const struct tsi_msg_stream *s)
{
	struct tsi_part part;
	uint64_t whole;

	tsi_description_part(s, &part, &whole);
	if (!whole)
		return !s->start;
	return whole <= UINT64_MAX / 4 && !tsi_part_check(&part, whole) &&
	       tsi_part_len(&part, whole) == s->epoch_len;
}

int tsi_description_check(const struct tsi_msg_stream *s, const char *name)
{
	if (!numbers_are_good(s) || !part_is_good(s))
		return tsi_err(TSOCK_EPROTO,
			       "the producer of '%s' describes its stream in a "
			       "way that makes no sense",
			       name);
	for (unsigned i = 0; i < s->nfields; i++)
		if (!tsi_geometry_field_is_good(&s->field[i]))
			return tsi_err(TSOCK_EPROTO,
				       "the producer of '%s' describes field "
				       "%u in a way that makes no sense",
				       name, i);
	return 0;
}

int tsi_description_allows(const struct tsi_msg_stream *s,
			   const struct tsock_opts *o, const char *name)
{
	if (o->batch_size <= s->max_batch)
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "batch_size %u is larger than the %u that the "
		       "stream '%s' allows: use a smaller one, or "
		       "start the producer with --max-batch %u (in Python's "
		       "tsock.serve() max_batch=%u)",
		       o->batch_size, s->max_batch, name, o->batch_size,
		       o->batch_size);
}

int tsi_description_joins(const struct tsi_msg_stream *s,
			  const struct tsock_opts *o, const char *name)
{
	struct tsi_part part;
	uint64_t whole;

	tsi_description_part(s, &part, &whole);
	if (o->join != TSOCK_JOIN_SEGMENT || !s->sequential ||
	    o->flags & TSOCK_EVEN || !whole ||
	    !tsi_part_padding(&part, whole, s->start_epoch + 1))
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "the stream '%s' is a part whose epochs are filled up "
		       "with samples of other parts, which a consumer that "
		       "begins at a segment (join=\"segment\") can't leave "
		       "out: begin at an epoch, or read them, too "
		       "(even=True, TSOCK_EVEN)",
		       name);
}

int tsi_description_fills_batch(const struct tsi_msg_stream *s,
				const struct tsock_opts *o, const char *name)
{
	uint64_t world = o->world ? o->world : 1, len = s->epoch_len, whole;
	struct tsi_part part;

	tsi_description_part(s, &part, &whole);
	if (whole)
		len -= tsi_part_last_row(&part, whole, s->start_epoch + 1);
	if (!(o->flags & TSOCK_DROP_LAST) || o->batch_size * world <= len)
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "batch_size %u%s is larger than an epoch of the stream "
		       "'%s', which has %llu samples: with drop_last "
		       "(TSOCK_DROP_LAST) no epoch would have a batch",
		       o->batch_size, world > 1 ? " for each rank" : "", name,
		       (unsigned long long)len);
}

void tsi_description_info(const struct tsi_msg_stream *s,
			  struct tsock_info *out)
{
	*out = (struct tsock_info){
		.nfields = s->nfields,
		.epoch_len = s->epoch_len,
		.dataset_len = s->dataset_len,
		.epochs = s->epochs,
		.segments = s->segments,
		.max_batch = s->max_batch,
		.capacity = s->capacity,
		.join_window = s->join_window,
		.nclasses = s->nclasses,
		.sequential = s->sequential,
		.producer_pid = s->pid,
		.shard = s->shard,
		.shards = s->shards,
		.resumable = s->resumable,
		.shard_ranks = s->shard_ranks,
		.whole_len = s->whole_len,
		.start_epoch = s->start_epoch,
		.start = s->start,
	};
}
