/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting for the head, asleep or spinning.
 *
 * A dead producer wakes nobody, so a sleep is at most a slice long, and now
 * and then its process is looked at.  A stopped one is waited for.
 */
#include "consumer/wait.h"

#include "base/clock.h"
#include "base/err.h"
#include "consumer/reader.h"
#include "consumer/siblings.h"

#define SLICE_MS 100
#define SPINS 1024 /* between two looks at the clock */

int tsi_wait_trouble(struct tsi_waiter *w, int64_t now_ms)
{
	struct tsi_claim *c = tsi_reader_claim(w->reader);
	uint32_t state = tsi_claim_ring_state(c);

	if (state == TSI_RING_FAILED)
		return tsi_claim_err_stopped(c, w->stream);
	if (state == TSI_RING_STOPPED)
		return tsi_claim_err_ended(c, w->stream);
	if (state == TSI_RING_CLOSED)
		return tsi_err(TSOCK_ELOST,
			       "the producer of '%s' (pid %u) has shut down",
			       w->stream, w->pid);
	if (tsi_claim_detached(c))
		return tsi_err(TSOCK_ELOST,
			       "this consumer was detached from '%s': others "
			       "had to wait for it",
			       w->stream);
	if (!tsi_claim_stands(c))
		return tsi_err(TSOCK_ELOST,
			       "the producer of '%s' gave this consumer up; "
			       "its log says why",
			       w->stream);
	if (now_ms - w->looked_ms < SLICE_MS)
		return 0;
	if (!tsi_claim_producer_gone(c)) {
		w->looked_ms = now_ms;
		return 0;
	}
	return tsi_err(TSOCK_ELOST, "the producer of '%s' (pid %u) died",
		       w->stream, w->pid);
}

/* 0 when the head is there; else what is wrong, or EAGAIN for nothing. */
static int look_for_head(struct tsi_waiter *w, uint64_t need, int64_t now_ms)
{
	int err;

	if (tsi_claim_head(tsi_reader_claim(w->reader)) >= need)
		return 0;
	err = tsi_wait_trouble(w, now_ms);
	/* It may have published before whatever happened to it. */
	if (err && tsi_claim_head(tsi_reader_claim(w->reader)) >= need)
		return 0;
	/* Its producer may have decided meanwhile to end the stream sooner. */
	if (err != TSOCK_ESTREAM && err != TSOCK_EENDED &&
	    tsi_reader_end(w->reader) < need)
		return tsi_err(TSOCK_EENDED, "the stream '%s' has ended",
			       w->stream);
	return err ? err : TSOCK_EAGAIN;
}

/* Other readers may hold this one up: after some time the log names them. */
static void name_wait(struct tsi_waiter *w, uint64_t need, int64_t now_ms)
{
	/* What another thread of this process does was said already. */
	if (w->whom && !(w->sibling && w->sibling->stuck.said))
		tsi_whom_look(w->whom, &w->asks, need, now_ms);
}

void tsi_wait_held_up(struct tsi_waiter *w, uint64_t need, const char *who,
		      const char *why)
{
	if (w->whom)
		tsi_whom_know(w->whom, &w->asks, need, tsi_now_ms(), who, why);
}

void tsi_wait_goes_on(struct tsi_waiter *w)
{
	if (w->whom)
		tsi_whom_end(w->whom);
}

/* After a slice, and at the end: does this thread wait for itself? */
static int check_siblings(struct tsi_waiter *w, uint64_t need, int64_t now_ms,
			  int64_t deadline_ms, int64_t *looked_ms)
{
	if (now_ms - *looked_ms < SLICE_MS && now_ms < deadline_ms)
		return 0;
	*looked_ms = now_ms;
	return tsi_siblings_check(w->sibling, need, now_ms);
}

static int sleep_until(struct tsi_waiter *w, uint64_t need, int64_t begin_ms,
		       int64_t deadline_ms)
{
	struct tsi_claim *c = tsi_reader_claim(w->reader);
	int64_t looked = begin_ms;

	tsi_claim_want(c, need);
	for (;;) {
		/* Before the head: a wake after that ends the sleep at once. */
		uint32_t wakes = tsi_claim_wakes(c);
		int64_t now = tsi_now_ms(), left;
		int err = look_for_head(w, need, now);

		if (err != TSOCK_EAGAIN)
			return err;
		err = check_siblings(w, need, now, deadline_ms, &looked);
		if (err)
			return err;
		name_wait(w, need, now);
		left = deadline_ms - now;
		if (left <= 0)
			return TSOCK_EAGAIN;
		tsi_claim_sleep(c, wakes,
				left < SLICE_MS ? (int)left : SLICE_MS);
	}
}

#if defined(__x86_64__) || defined(__i386__)
static void relax(void)
{
	__builtin_ia32_pause();
}
#elif defined(__aarch64__)
static void relax(void)
{
	__asm__ volatile("yield");
}
#else
static void relax(void)
{
}
#endif

static int spin_until(struct tsi_waiter *w, uint64_t need, int64_t begin_ms,
		      int64_t deadline_ms)
{
	int64_t looked = begin_ms;

	for (;;) {
		int64_t now = tsi_now_ms();
		int err = look_for_head(w, need, now);

		if (err == TSOCK_EAGAIN &&
		    check_siblings(w, need, now, deadline_ms, &looked))
			return TSOCK_EHELD;
		if (err == TSOCK_EAGAIN)
			name_wait(w, need, now);
		if (err != TSOCK_EAGAIN || now >= deadline_ms)
			return err;
		for (unsigned i = 0; i < SPINS; i++) {
			if (tsi_claim_head(tsi_reader_claim(w->reader)) >= need)
				return 0;
			relax();
		}
	}
}

int tsi_wait_head(struct tsi_waiter *w, uint64_t need, int timeout_ms)
{
	struct tsi_claim *c = tsi_reader_claim(w->reader);
	int64_t begin = tsi_now_ns();
	int64_t begin_ms = begin / 1000000;
	int64_t deadline = timeout_ms < 0 ? INT64_MAX : begin_ms + timeout_ms;
	int err;

	if (!timeout_ms) {
		err = look_for_head(w, need, begin_ms);
		if (err == TSOCK_EAGAIN)
			name_wait(w, need, begin_ms);
		return err;
	}
	tsi_reader_used_here(w->reader);
	if (w->spins) {
		tsi_claim_spin(c, need);
		err = spin_until(w, need, begin_ms, deadline);
		tsi_claim_spin(c, 0);
	} else {
		err = sleep_until(w, need, begin_ms, deadline);
		tsi_claim_want_no_more(c);
	}
	w->wait_ns += (uint64_t)(tsi_now_ns() - begin);
	tsi_claim_count_wait(c, w->wait_ns);
	return err;
}
