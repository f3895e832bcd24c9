/* SPDX-License-Identifier: MIT */
/*
 * reader_room.c - the batches that are held, and making them private where they
 * are in the way of the stream.
 */
#include "base/err.h"
#include "consumer/reader.h"
#include "consumer/tail.h"

uint64_t tsi_reader_held(const struct tsi_reader *r)
{
	uint64_t at = 0, n = 0;
	struct tsock_batch *b;

	while ((b = tsi_tail_oldest(&((struct tsi_reader *)(uintptr_t)r)->tail,
				    &at)))
		n += !tsi_reader_batch_pending(b);
	return n;
}

const struct tsock_batch *tsi_reader_oldest(struct tsi_reader *r)
{
	uint64_t at = 0;

	return tsi_tail_oldest(&r->tail, &at);
}

/* Is the stream kept from sample need - 1 by this batch itself? */
static bool in_the_way(const struct tsi_reader *r, const struct tsock_batch *b,
		       uint64_t need)
{
	uint64_t first = tsi_reader_batch_first(b);

	return need > first && need - first > r->capacity - r->join_window;
}

const struct tsock_batch *tsi_reader_blocker(struct tsi_reader *r,
					     uint64_t need)
{
	const struct tsock_batch *b = tsi_reader_oldest(r);

	return b && in_the_way(r, b, need) ? b : NULL;
}

int tsi_reader_err_held(struct tsi_reader *r)
{
	uint64_t n = tsi_reader_held(r), tail = tsi_reader_tail(r);

	return tsi_err(
		TSOCK_EHELD,
		"%llu batch%s still held (samples %llu to %llu): the "
		"stream can't go on; release them, or open with %s",
		(unsigned long long)n, n == 1 ? " is" : "es are",
		(unsigned long long)tail,
		(unsigned long long)tsi_reader_pos(r) - 1,
		tsi_backend_device(r->backend) >= 0
			? "TSOCK_GPU_STORED and keep what "
			  "tsock_batch_convert() wrote"
			: "TSOCK_WRITABLE, by which batches may be kept");
}

bool tsi_reader_lets_pass(const struct tsi_reader *r, uint64_t need)
{
	uint64_t tail = tsi_reader_tail(r);

	return need <= tail || need - tail <= r->capacity - r->join_window;
}

void tsi_reader_expect_release(struct tsi_reader *r, bool expect)
{
	tsi_tail_expect(&r->tail, expect);
}

uint32_t tsi_reader_releases(struct tsi_reader *r)
{
	return tsi_tail_moves(&r->tail);
}

void tsi_reader_await_release(struct tsi_reader *r, uint32_t seen,
			      int timeout_ms)
{
	tsi_tail_wait(&r->tail, seen, timeout_ms);
}

bool tsi_reader_has_room(const struct tsi_reader *r, uint64_t n)
{
	return tsi_reader_pos(r) + n - tsi_reader_tail(r) <=
	       r->capacity - r->join_window;
}

int tsi_reader_make_room(struct tsi_reader *r, uint64_t n)
{
	uint64_t at = 0, need = tsi_reader_pos(r) + n;

	while (!tsi_reader_has_room(r, n)) {
		struct tsock_batch *b = tsi_tail_oldest(&r->tail, &at);
		int err;

		/* The others are being given back at this moment. */
		if (!b || !in_the_way(r, b, need))
			return 0;
		if (!tsi_backend_is_writable(r->backend))
			return tsi_reader_err_held(r);
		err = tsi_reader_make_private(r, b);
		if (err)
			return err;
	}
	return 0;
}

int tsi_reader_make_all_private(struct tsi_reader *r)
{
	uint64_t at = 0;
	struct tsock_batch *b;
	int err = 0;

	if (!tsi_backend_is_writable(r->backend))
		return 0;
	while (!err && (b = tsi_tail_oldest(&r->tail, &at)))
		err = tsi_reader_make_private(r, b);
	return err;
}
