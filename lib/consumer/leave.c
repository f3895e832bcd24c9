/* SPDX-License-Identifier: MIT */
/*
 * leave.c - giving up a claim, and the readers that were left although batches
 * still hold their claims.
 */
#include "consumer/leave.h"

#include <poll.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "consumer/wait.h"
#include "wire/fdpass.h"
#include "wire/record_file.h"

void tsi_leave_sweep(struct tsi_left *l)
{
	struct tsi_reader **at = &l->first;

	while (*at) {
		struct tsi_reader *r = *at;

		if (!tsi_reader_claim_ended(r)) {
			at = tsi_reader_next(r);
			continue;
		}
		*at = *tsi_reader_next(r);
		tsi_reader_unref(r);
	}
}

void tsi_leave_drop_all(struct tsi_left *l)
{
	while (l->first) {
		struct tsi_reader *r = l->first;

		l->first = *tsi_reader_next(r);
		tsi_reader_unref(r);
	}
}

void tsi_leave_reader(struct tsi_left *l, struct tsi_reader *r,
		      const struct tsi_address *recorded,
		      struct tsi_requester *q, const uint8_t *nonce,
		      int timeout_ms)
{
	/* Before LEAVE, which the producer may not live to read. */
	if (recorded)
		tsi_record_file_leave(recorded, nonce);
	if (tsi_reader_make_all_private(r))
		tsi_log(TSOCK_LOG_WARN, "%s; the stream waits for held batches",
			tsock_errmsg());
	if (!tsi_reader_retire(r)) {
		*tsi_reader_next(r) = l->first;
		l->first = r;
		return;
	}
	/* The message may be lost, where the producer is stopped say. */
	tsi_claim_leave(tsi_reader_claim(r));
	if (!tsi_claim_abandoned(tsi_reader_claim(r)))
		tsi_request_leave(q, nonce, timeout_ms);
	tsi_reader_unref(r);
}

void tsi_leave_detached(struct tsi_left *l, struct tsi_reader *r,
			struct tsi_requester *q, const uint8_t *nonce)
{
	*tsi_reader_gone(r) = true;
	tsi_leave_reader(l, r, NULL, q, nonce, 0);
}

void tsi_leave_lost(struct tsi_left *l, struct tsi_reader *r)
{
	*tsi_reader_gone(r) = true;
	if (tsi_reader_retire(r)) {
		tsi_reader_unref(r);
		return;
	}
	*tsi_reader_next(r) = l->first;
	l->first = r;
}

void tsi_leave_record(const struct tsi_address *a, struct tsi_requester *q,
		      const uint8_t *nonce, int timeout_ms)
{
	struct tsi_requester fresh;

	/* A producer listens before it reads the file: what is written before
	 * that look is read, and else the producer is told. */
	if (!tsi_record_file_leave(a, nonce) ||
	    tsi_fdpass_listening(tsi_address_fdpass(a)) != 1 ||
	    tsi_request_open(&fresh, a))
		return;
	tsi_request_close(q);
	*q = fresh;
	tsi_request_leave(q, nonce, timeout_ms);
}

/* Does r, which was left, hold the stream up?  EAGAIN: not for ever. */
static int check_one(struct tsi_reader *r, uint64_t need)
{
	const struct tsock_batch *b;

	if (*tsi_reader_gone(r) || tsi_reader_lets_pass(r, need))
		return 0;
	/* Nobody writes into that ring any more. */
	if (tsi_claim_abandoned(tsi_reader_claim(r))) {
		*tsi_reader_gone(r) = true;
		return 0;
	}
	b = tsi_reader_blocker(r, need);
	if (!b || tsi_reader_batch_pending(b) ||
	    tsi_reader_released_elsewhere(r))
		return TSOCK_EAGAIN;
	return tsi_err(TSOCK_EHELD,
		       "batches of an epoch that was left are still held "
		       "(%llu): the stream can't go on; release them, or open "
		       "with TSOCK_WRITABLE",
		       (unsigned long long)tsi_reader_held(r));
}

/* The wait is for this one. */
static void tell(struct tsi_waiter *w, struct tsi_reader *r, uint64_t need)
{
	const struct tsock_batch *b = tsi_reader_blocker(r, need);
	unsigned long long n = tsi_reader_held(r);
	char why[192];

	if (b && tsi_reader_batch_pending(b)) {
		tsi_wait_held_up(w, need, "work on its GPU",
				 ", which reads batches of an epoch that was "
				 "left");
		return;
	}
	snprintf(why, sizeof(why),
		 ", which hold %llu batch%s of an epoch that was left: release "
		 "them, or open with TSOCK_WRITABLE",
		 n, n == 1 ? "" : "es");
	tsi_wait_held_up(w, need, "other threads of its process", why);
}

/* The first that holds the stream up, with EAGAIN or EHELD in *err; or NULL. */
static struct tsi_reader *find_blocking(struct tsi_left *l, uint64_t need,
					int *err)
{
	tsi_leave_sweep(l);
	*err = 0;
	for (struct tsi_reader *r = l->first; r; r = *tsi_reader_next(r)) {
		*err = check_one(r, need);
		if (*err)
			return r;
	}
	return NULL;
}

int tsi_leave_await(struct tsi_left *l, struct tsi_waiter *w, uint64_t need,
		    int *timeout_ms)
{
	struct tsi_reader *r;
	int err;

	while ((r = find_blocking(l, need, &err)) && err == TSOCK_EAGAIN) {
		tell(w, r, need);
		if (!*timeout_ms)
			return err;
		poll(NULL, 0, 1);
		*timeout_ms -= *timeout_ms > 0;
	}
	return err;
}
