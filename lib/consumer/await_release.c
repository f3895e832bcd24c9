/* SPDX-License-Identifier: MIT */
/*
 * await_release.c - waiting until enough batches were released for the stream
 * to go on.
 *
 * Nobody knows which thread holds a batch, but it is known which threads
 * released the earlier ones.  As soon as a thread other than the acquiring one
 * did so, releases are waited for as long as the caller wants.  Before that
 * they are waited for a while: the first batches may be in the hands of
 * threads that are still at work.
 */
#include "consumer/await_release.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "consumer/reader.h"
#include "consumer/wait.h"

#define SLICE_MS 100
#define LONG_MS 10000 /* then it is given up */

/* What is left of a time that began to run then; -1 has no end. */
static void spend(int *timeout_ms, int64_t begin)
{
	int64_t left = begin + *timeout_ms - tsi_now_ms();

	if (*timeout_ms > 0)
		*timeout_ms = left > 0 ? (int)left : 0;
}

/* 0: look again.  The message of EHELD is this thread's. */
static int give_up(const struct tsi_reader *r, int64_t waited_ms, int64_t left)
{
	if (!tsi_reader_released_elsewhere(r))
		return left <= 0 || waited_ms >= LONG_MS ? TSOCK_EHELD : 0;
	return left <= 0 ? TSOCK_EAGAIN : 0;
}

/* The wait is for other threads. */
static void tell(struct tsi_waiter *w, const struct tsi_reader *r, uint64_t n)
{
	unsigned long long held = tsi_reader_held(r);
	char why[192];

	snprintf(why, sizeof(why),
		 ", which hold %llu batch%s: release them, or open with "
		 "TSOCK_WRITABLE, by which batches may be kept",
		 held, held == 1 ? "" : "es");
	tsi_wait_held_up(w, tsi_reader_pos(r) + n,
			 "other threads of its process", why);
}

static int await_others(struct tsi_waiter *w, struct tsi_reader *r, uint64_t n,
			int64_t deadline)
{
	int64_t begin = tsi_now_ms();

	for (;;) {
		/* Before looking: what comes back later ends the sleep. */
		uint32_t seen = tsi_reader_releases(r);
		int err = tsi_reader_make_room(r, n);
		int64_t now = tsi_now_ms(), left = deadline - now;

		if (err != TSOCK_EHELD)
			return err;
		if (tsi_reader_released_elsewhere(r))
			tell(w, r, n);
		err = give_up(r, now - begin, left);
		if (err)
			return err;
		/* Nobody comes any more whom a sleep could wait for. */
		if (!tsi_reader_released_elsewhere(r) &&
		    tsi_wait_trouble(w, now))
			return tsi_reader_err_held(r);
		tsi_reader_await_release(
			r, seen, left < SLICE_MS ? (int)left : SLICE_MS);
	}
}

static int on_host(struct tsi_waiter *w, struct tsi_reader *r, uint64_t n,
		   int *timeout_ms)
{
	int err = tsi_reader_make_room(r, n);
	int64_t begin;

	if (err != TSOCK_EHELD)
		return err;
	begin = tsi_now_ms();
	tsi_reader_expect_release(r, true);
	err = await_others(w, r, n,
			   *timeout_ms < 0 ? INT64_MAX : begin + *timeout_ms);
	tsi_reader_expect_release(r, false);
	spend(timeout_ms, begin);
	return err;
}

int tsi_await_release(struct tsi_waiter *w, struct tsi_reader *r, uint64_t n,
		      int *timeout_ms)
{
	struct tsi_backend *k = tsi_reader_backend(r);

	return tsi_backend_makes_room(k)
		       ? tsi_backend_make_room(k, r, n, timeout_ms)
		       : on_host(w, r, n, timeout_ms);
}
