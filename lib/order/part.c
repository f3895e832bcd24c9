/* SPDX-License-Identifier: MIT */
/*
 * part.c - which positions of an epoch's order one producer makes.
 */
#include "order/part.h"

#include "base/err.h"
#include "base/sized.h"
#include "tsock/tsock.h"

static uint64_t ranks_of(const struct tsi_part *p)
{
	return p->ranks ? p->ranks : 1;
}

static uint64_t rows_of(const struct tsi_part *p, uint64_t positions)
{
	return positions / p->world + (positions % p->world > 0);
}

/* Where the rows of an epoch begin in the whole order. */
static uint64_t start_of(const struct tsi_part *p, uint64_t epoch)
{
	return p->world && p->start && epoch == p->start_epoch ? p->start : 0;
}

static int err_beyond(const struct tsi_part *p)
{
	if (ranks_of(p) == 1)
		return tsi_err(TSOCK_EARG,
			       "rank %u of %u doesn't exist: ranks count from "
			       "0",
			       p->first, p->world);
	return tsi_err(TSOCK_EARG,
		       "ranks %u to %llu of %u: they count from 0, so the last "
		       "one is %u",
		       p->first,
		       (unsigned long long)(p->first + ranks_of(p) - 1),
		       p->world, p->world - 1);
}

int tsi_part_check(const struct tsi_part *p, uint64_t whole)
{
	if (p->world > TSI_PART_WORLD)
		return tsi_err(TSOCK_EARG,
			       "a part of %u ranks: a job has at most %u",
			       p->world, TSI_PART_WORLD);
	if (p->world && p->first + ranks_of(p) > p->world)
		return err_beyond(p);
	if (!p->world && (p->first || p->ranks > 1))
		return tsi_err(TSOCK_EARG,
			       "rank %u of a part, and no number of all ranks",
			       p->first);
	if (!p->start)
		return 0;
	if (!p->world)
		return tsi_err(TSOCK_EARG,
			       "only a part of an epoch is dealt anew: the "
			       "whole order goes on anywhere as it is");
	if (whole && p->start >= whole)
		return tsi_err(TSOCK_EARG,
			       "an epoch of %llu samples can't go on at "
			       "position %llu",
			       (unsigned long long)whole,
			       (unsigned long long)p->start);
	return 0;
}

uint64_t tsi_part_len(const struct tsi_part *p, uint64_t whole)
{
	return p->world ? ranks_of(p) * rows_of(p, whole) : whole;
}

uint64_t tsi_part_begin(const struct tsi_part *p, uint64_t whole,
			uint64_t epoch)
{
	uint64_t start = start_of(p, epoch);

	if (!start)
		return 0;
	return tsi_part_len(p, whole) - ranks_of(p) * rows_of(p, whole - start);
}

uint64_t tsi_part_padding(const struct tsi_part *p, uint64_t whole,
			  uint64_t epoch)
{
	uint64_t over, behind;

	if (!p->world)
		return 0;
	/* Ranks of the last row that have a position beyond the end: the job's
	 * last ones, some of which may be behind this part's. */
	over = (whole - start_of(p, epoch)) % p->world;
	over = over ? p->world - over : 0;
	behind = p->world - p->first - ranks_of(p);
	if (over <= behind)
		return 0;
	over -= behind;
	return over < ranks_of(p) ? over : ranks_of(p);
}

uint64_t tsi_part_last_row(const struct tsi_part *p, uint64_t whole,
			   uint64_t epoch)
{
	if (!p->world || (whole - start_of(p, epoch)) % p->world == 0)
		return 0;
	return ranks_of(p);
}

uint64_t tsi_part_at(const struct tsi_part *p, uint64_t whole, uint64_t epoch,
		     uint64_t position)
{
	uint64_t begin = tsi_part_begin(p, whole, epoch), start = 0;

	if (!p->world)
		return position;
	if (position >= begin) {
		start = start_of(p, epoch);
		position -= begin;
	}
	/* The sum is below the whole order's length + world, and can't
	 * overflow. */
	return (start + position / ranks_of(p) * p->world + p->first +
		position % ranks_of(p)) %
	       whole;
}

bool tsi_part_to_whole(const struct tsi_part *p, uint64_t whole, uint64_t epoch,
		       uint64_t position, uint64_t *to)
{
	uint64_t begin = tsi_part_begin(p, whole, epoch);

	if (position >= tsi_part_len(p, whole)) {
		*to = whole;
		return true;
	}
	if (!p->world) {
		*to = position;
		return true;
	}
	if (position < begin || (position - begin) % ranks_of(p))
		return false;
	*to = start_of(p, epoch) + (position - begin) / ranks_of(p) * p->world;
	return true;
}

bool tsi_part_from_whole(const struct tsi_part *p, uint64_t whole,
			 uint64_t epoch, uint64_t from, uint64_t *position)
{
	uint64_t start = start_of(p, epoch);

	if (from >= whole) {
		*position = tsi_part_len(p, whole);
		return true;
	}
	if (!p->world) {
		*position = from;
		return true;
	}
	if (from < start || (from - start) % p->world)
		return false;
	*position = tsi_part_begin(p, whole, epoch) +
		    (from - start) / p->world * ranks_of(p);
	return true;
}

static int options(const char *call, const struct tsock_part_opts *opts,
		   struct tsi_part *part, uint64_t *whole)
{
	struct tsock_part_opts o = TSOCK_PART_OPTS_INIT;
	int err = tsi_sized_read(call, &tsi_sized_part_opts, opts, &o);

	if (err)
		return err;
	if (!o.whole_len || o.whole_len > TSI_PART_WHOLE)
		return tsi_err(TSOCK_EARG,
			       "%s: opts.whole_len is %llu: an epoch has 1 to "
			       "2^63 samples",
			       call, (unsigned long long)o.whole_len);
	*part = (struct tsi_part){
		.first = o.shard,
		.ranks = o.shard_ranks,
		.world = o.shards,
		.start = o.start,
		.start_epoch = o.start_epoch,
	};
	*whole = o.whole_len;
	return tsi_part_check(part, o.whole_len);
}

uint64_t tsock_part_len(const struct tsock_part_opts *opts)
{
	struct tsi_part p;
	uint64_t whole;

	if (options("tsock_part_len", opts, &p, &whole))
		return 0;
	return tsi_part_len(&p, whole);
}

uint64_t tsock_part_padding(const struct tsock_part_opts *opts, uint64_t epoch)
{
	struct tsi_part p;
	uint64_t whole;

	if (options("tsock_part_padding", opts, &p, &whole))
		return 0;
	return tsi_part_padding(&p, whole, epoch);
}

uint64_t tsock_part_last_row(const struct tsock_part_opts *opts, uint64_t epoch)
{
	struct tsi_part p;
	uint64_t whole;

	if (options("tsock_part_last_row", opts, &p, &whole))
		return 0;
	return tsi_part_last_row(&p, whole, epoch);
}

int tsock_part_position(const struct tsock_part_opts *opts, uint64_t epoch,
			uint64_t samples, uint64_t *position)
{
	struct tsi_part p;
	uint64_t whole;
	int err = options("tsock_part_position", opts, &p, &whole);

	if (err)
		return err;
	if (!position)
		return tsi_err(TSOCK_EARG,
			       "tsock_part_position: position is NULL");
	if (tsi_part_to_whole(&p, whole, epoch, samples, position))
		return 0;
	return tsi_err(
		TSOCK_EARG,
		"after %llu samples of epoch %llu the ranks of this part "
		"aren't all at the same place: a batch of each of %u "
		"ranks is read in turn",
		(unsigned long long)samples, (unsigned long long)epoch,
		p.ranks ? p.ranks : 1);
}

int tsock_part_samples(const struct tsock_part_opts *opts, uint64_t epoch,
		       uint64_t position, uint64_t *samples)
{
	struct tsi_part p;
	uint64_t whole;
	int err = options("tsock_part_samples", opts, &p, &whole);

	if (err)
		return err;
	if (!samples)
		return tsi_err(TSOCK_EARG,
			       "tsock_part_samples: samples is NULL");
	if (tsi_part_from_whole(&p, whole, epoch, position, samples))
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "position %llu of epoch %llu is between two of the "
		       "places where %u ranks divide it, so it has to be dealt "
		       "anew: start a producer with --start %llu:%llu",
		       (unsigned long long)position, (unsigned long long)epoch,
		       p.world, (unsigned long long)epoch,
		       (unsigned long long)position);
}
