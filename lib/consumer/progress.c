/* SPDX-License-Identifier: MIT */
/*
 * progress.c - how far a job has come in the epoch that it reads.
 */
#include "consumer/progress.h"

/* Has this rank a batch left in the whole epoch, however long the stream is? */
static bool has_more(const struct tsi_progress *p)
{
	uint64_t first;

	return tsi_ranks_next(&p->ranks, p->end - p->block, &first);
}

void tsi_progress_init(struct tsi_progress *p, uint64_t epoch_len,
		       struct tsi_ranks ranks)
{
	*p = (struct tsi_progress){
		.ranks = ranks,
		.epoch_len = epoch_len,
		.epoch = TSI_PROGRESS_NONE,
	};
}

/* How far the epoch, or any but the one that is dealt anew, is filled up. */
static void set_padding(struct tsi_progress *p)
{
	uint64_t epoch = p->epoch;

	if (epoch == TSI_PROGRESS_NONE)
		epoch = p->part.start_epoch + 1;
	p->ranks.padding = 0;
	/* An epoch that begins at a segment ends before one, amid the order. */
	if (!p->whole || p->end % p->epoch_len)
		return;
	p->ranks.padding =
		p->ranks.drop_last
			? tsi_part_last_row(&p->part, p->whole, epoch)
			: tsi_part_padding(&p->part, p->whole, epoch);
}

void tsi_progress_set_ranks(struct tsi_progress *p, struct tsi_ranks ranks)
{
	p->ranks = ranks;
	set_padding(p);
}

void tsi_progress_set_part(struct tsi_progress *p, const struct tsi_part *part,
			   uint64_t whole)
{
	p->part = *part;
	p->whole = whole;
	set_padding(p);
}

void tsi_progress_begin(struct tsi_progress *p, uint64_t start, uint64_t end)
{
	p->start = start;
	p->end = end;
	p->epoch = start / p->epoch_len;
	set_padding(p);
	p->block = start;
}

bool tsi_progress_was_last(const struct tsi_progress *p, uint64_t epochs)
{
	return epochs && p->end >= epochs * p->epoch_len;
}

uint64_t tsi_progress_next_epoch(const struct tsi_progress *p, uint64_t pos)
{
	uint64_t n = p->epoch_len;

	return pos > p->end ? p->end + (pos - p->end) / n * n : p->end;
}

uint64_t tsi_progress_ahead(const struct tsi_progress *p, uint64_t samples)
{
	uint64_t left = p->end - p->block, world = p->ranks.world;

	/* The other ranks go on as much. */
	return p->block + (samples > left / world ? left : samples * world);
}

bool tsi_progress_on_blocks(const struct tsi_progress *p, uint64_t start,
			    uint64_t end, uint64_t block)
{
	uint64_t n = p->ranks.world * p->ranks.batch;

	return start % p->epoch_len == 0 && end == start + p->epoch_len &&
	       block >= start && (block == end || (block - start) % n == 0);
}

bool tsi_progress_is_over(const struct tsi_progress *p)
{
	return !has_more(p);
}

void tsi_progress_rewind(struct tsi_progress *p)
{
	if (p->epoch != TSI_PROGRESS_NONE && has_more(p))
		p->end = p->start;
}

uint64_t tsi_progress_miss(struct tsi_progress *p, uint64_t pos, uint64_t start)
{
	if (start <= pos)
		return 0;
	p->block = start < p->end ? start : p->end;
	return start - pos;
}

void tsi_progress_position(const struct tsi_progress *p, bool done,
			   uint64_t *start, uint64_t *samples)
{
	/* It was rewound: its epoch is still to be read. */
	if (p->end == p->start) {
		*start = p->start;
		*samples = 0;
		return;
	}
	*start = p->end - p->epoch_len;
	*samples = done || !has_more(p) ? p->epoch_len : p->block - *start;
}
