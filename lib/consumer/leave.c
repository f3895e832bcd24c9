/* SPDX-License-Identifier: MIT */
/*
 * leave.c - giving up a claim, a join that is under way, and the handle.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/err.h"
#include "base/log.h"
#include "consumer/consumer.h"

void tsi_leave_sweep(struct tsock *t)
{
	struct tsi_reader **at = &t->left;

	while (*at) {
		struct tsi_reader *r = *at;

		if (!tsi_reader_claim_ended(r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		tsi_reader_unref(r);
	}
}

void tsi_leave_reader(struct tsock *t)
{
	struct tsi_reader *r = t->reader;

	tsi_siblings_remove(t);
	t->reader = NULL;
	t->phase = TSI_PHASE_IDLE;
	if (tsi_reader_make_all_private(r))
		tsi_log(TSOCK_LOG_WARN, "%s; the stream waits for held batches",
			tsock_errmsg());
	if (!tsi_reader_retire(r)) {
		r->next = t->left;
		t->left = r;
		return;
	}
	if (!tsi_claim_producer_gone(tsi_reader_claim(r)))
		tsi_request_leave(&t->requests, t->nonce);
	tsi_reader_unref(r);
}

void tsi_leave_join(struct tsock *t)
{
	struct tsi_msg m = { .type = TSI_LEAVE };

	if (!t->joining)
		return;
	t->joining = false;
	memcpy(m.u.leave.nonce, t->question.u.join.nonce, TSI_NONCE);
	tsi_request_tell(&t->requests, &m);
}

void tsock_leave(tsock *t)
{
	if (!t || tsi_fork_since(t->generation))
		return;
	tsi_leave_join(t);
	if (t->reader)
		tsi_leave_reader(t);
	t->phase = TSI_PHASE_IDLE;
	tsi_leave_sweep(t);
}

void tsock_close(tsock *t)
{
	/* In a forked child all of it is the parent's. */
	if (!t || tsi_fork_since(t->generation))
		return;
	tsock_leave(t);
	while (t->left) {
		struct tsi_reader *r = t->left;

		t->left = r->next;
		tsi_reader_unref(r);
	}
	tsi_request_close(&t->requests);
	free(t->meta);
	free(t->classes);
	free(t);
}
