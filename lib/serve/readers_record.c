/* SPDX-License-Identifier: MIT */
/*
 * readers_record.c - readers whose producer dies: what is recorded of them for
 * the next producer, and how that one waits for them.
 */
#include "serve/readers_record.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "wire/peer.h"

#define MARK_MS 1000 /* between two records of the tails */

static const uint8_t nobody[TSI_NONCE];

/* Has the reader, which knew of that claim, asked for another claim since? */
static bool has_next(const struct tsi_record *k, const uint8_t *nonce)
{
	struct tsi_reader_row row;

	for (unsigned i = 0; tsi_record_next(k, &i, &row); i++)
		if (!memcmp(row.was, nonce, TSI_NONCE))
			return true;
	return false;
}

/*
 * Did the reader of that row get another row since, so that it may not know of
 * this one?  Of several rows that were asked for by the same claim it has heard
 * of at most one.
 */
static bool is_superseded(const struct tsi_record *k,
			  const struct tsi_reader_row *row)
{
	struct tsi_reader_row other;

	if (has_next(k, row->nonce))
		return true;
	if (!memcmp(row->was, nobody, TSI_NONCE))
		return false;
	for (unsigned i = 0; tsi_record_next(k, &i, &other); i++)
		if (!memcmp(other.was, row->was, TSI_NONCE) &&
		    has_next(k, other.nonce))
			return true;
	return false;
}

/* Where the readers are that have still to return. */
static void find_tails(struct tsi_readers *r)
{
	const struct tsi_reader_row *row;

	for (unsigned i = 0; (row = tsi_returners_next(&r->returners, &i)); i++)
		tsi_last_tail_find(&r->last_tail[i], row);
}

static void close_tails(struct tsi_readers *r)
{
	for (unsigned i = 0; i < TSI_RETURNERS; i++)
		tsi_last_tail_close(&r->last_tail[i]);
}

static void look_at_tails(struct tsi_readers *r, int64_t now_ms)
{
	for (unsigned i = 0; tsi_returners_next(&r->returners, &i); i++) {
		uint64_t tail;

		if (!tsi_last_tail_known(&r->last_tail[i]))
			continue;
		tail = tsi_last_tail_read(&r->last_tail[i]);
		if (tsi_membership_can_hold(r->membership, tail))
			tsi_returners_see(&r->returners, i, tail, now_ms);
	}
}

uint64_t tsi_readers_keep_record(struct tsi_readers *r, const char *folder,
				 const char *name, uint64_t stream,
				 uint64_t lineage)
{
	bool superseded[TSI_RECORD_ROWS] = { false };
	struct tsi_reader_row row;
	unsigned n = 0;

	tsi_record_open(&r->record, folder, name, stream, lineage);
	if (tsi_record_found(&r->record))
		tsi_jobs_restart(&r->jobs, tsi_now_ms());
	for (unsigned i = 0; tsi_record_next(&r->record, &i, &row); i++)
		superseded[i] = is_superseded(&r->record, &row);
	for (unsigned i = 0; tsi_record_next(&r->record, &i, &row); i++) {
		/* A damaged mark would take the stream to where none can be. */
		if (!superseded[i] &&
		    tsi_membership_can_hold(r->membership, row.mark) &&
		    tsi_returners_add(&r->returners, &row, tsi_now_ms()))
			n++;
		else
			tsi_record_drop(&r->record, row.nonce);
	}
	if (!n)
		return tsi_record_lineage(&r->record);
	find_tails(r);
	tsi_membership_hold(r->membership,
			    tsi_membership_head(r->membership, 0));
	tsi_log(TSOCK_LOG_INFO,
		"%u consumer%s read this stream when its producer ended: it "
		"goes on where they are",
		n, n == 1 ? "" : "s");
	return tsi_record_lineage(&r->record);
}

void tsi_readers_record_again(struct tsi_readers *r, const char *folder,
			      const char *name)
{
	tsi_record_again(&r->record, folder, name);
}

void tsi_readers_save_record(struct tsi_readers *r)
{
	if (!tsi_record_collect(&r->record))
		return;
	tsi_sync_unlock(r->sync);
	tsi_record_write(&r->record);
	tsi_sync_lock(r->sync);
}

void tsi_readers_leave_record(struct tsi_readers *r, bool keep)
{
	close_tails(r);
	tsi_record_close(&r->record, keep);
}

void tsi_readers_note_return(struct tsi_readers *r,
			     const struct tsi_msg_join *join)
{
	if (tsi_membership_can_hold(r->membership, join->position))
		tsi_returners_ask(&r->returners, join, tsi_now_ms());
}

/*
 * A reader's row in the record.  The one that it had stays until the reader has
 * its reply: whichever claim it knows of when this producer dies, the next one
 * finds it by.
 */
void tsi_readers_record(struct tsi_readers *r, const struct tsi_msg_join *join,
			const struct tsi_conn *c, uint64_t start, bool together)
{
	struct tsi_reader_row row = tsi_conn_row(c, start);

	/* It died while it joined, which the next producer could not see. */
	if (!row.born && tsi_conn_gone(c))
		return;
	row.together = together;
	memcpy(row.was, join->was, TSI_NONCE);
	tsi_record_put(&r->record, &row);
}

static void take_row(struct tsi_readers *r, const struct tsi_reader_row *row)
{
	uint8_t nonce[TSI_NONCE];

	memcpy(nonce, row->nonce, TSI_NONCE);
	tsi_record_drop(&r->record, nonce);
	tsi_returners_take(&r->returners, nonce);
}

/* Rows of claims that it asked for as by this one, and never heard of. */
static bool take_untold(struct tsi_readers *r, const struct tsi_reader_row *own)
{
	const struct tsi_reader_row *row;
	bool any = false;

	if (!memcmp(own->was, nobody, TSI_NONCE))
		return false;
	for (unsigned i = 0; (row = tsi_returners_next(&r->returners, &i));
	     i++) {
		if (!memcmp(row->nonce, own->nonce, TSI_NONCE) ||
		    memcmp(row->was, own->was, TSI_NONCE) != 0)
			continue;
		take_row(r, row);
		any = true;
	}
	return any;
}

/*
 * One that is awaited has returned, or never will.  Producers that died while
 * it returned may each have left a row of a claim that it never heard of; these
 * go first, for without the reader's own row nobody would know that they belong
 * to it.
 */
static bool take_all(struct tsi_readers *r, const uint8_t *was)
{
	const struct tsi_reader_row *row;
	struct tsi_reader_row own;
	bool any = false;

	while ((row = tsi_returners_find(&r->returners, was))) {
		own = *row;
		if (take_untold(r, &own))
			tsi_readers_save_record(r);
		take_row(r, &own);
		any = true;
	}
	return any;
}

/* Give up readers that have ended, stopped asking, or asked too long ago. */
static void give_up_returners(struct tsi_readers *r, int64_t now_ms)
{
	const struct tsi_reader_row *row;

	tsi_returners_look(&r->returners, now_ms);
	for (unsigned i = 0; (row = tsi_returners_next(&r->returners, &i));
	     i++) {
		bool dead = tsi_peer_ended(row->pid, row->born);

		if (!dead && !tsi_returners_late(&r->returners, i, now_ms) &&
		    !tsi_returners_silent(&r->returners, i, now_ms))
			continue;
		tsi_log(TSOCK_LOG_INFO, "consumer %u %s", row->pid,
			dead ? "ended before it returned"
			     : "has not returned, and isn't waited for any "
			       "longer");
		tsi_record_drop(&r->record, row->nonce);
		tsi_returners_give_up(&r->returners, i);
	}
}

/* From that sample on, which is kept for those that have still to come. */
static void go_on_from(struct tsi_readers *r, uint64_t from)
{
	tsi_membership_hold(r->membership, from);
	tsi_gate_state_held(r->gate);
	tsi_gate_publish_base(r->gate, from);
	tsi_gate_changed(r->gate);
	tsi_log(TSOCK_LOG_INFO, "the stream goes on from sample %llu",
		(unsigned long long)from);
}

/* The readers that have still to come need no sample below it. */
static void keep_from(struct tsi_readers *r, uint64_t from)
{
	tsi_membership_follow_hold(r->membership, from);
	tsi_gate_state_held(r->gate);
	tsi_gate_changed(r->gate);
}

static void keep_no_longer(struct tsi_readers *r)
{
	close_tails(r);
	tsi_membership_give_up_hold(r->membership);
	tsi_gate_state_held(r->gate);
	tsi_gate_changed(r->gate);
}

void tsi_readers_await(struct tsi_readers *r, int64_t now_ms)
{
	enum tsi_returners_step step;
	uint64_t from = 0;

	look_at_tails(r, now_ms);
	give_up_returners(r, now_ms);
	step = tsi_returners_step(&r->returners, now_ms, &from);
	if (step == TSI_RETURNERS_HOLD)
		go_on_from(r, from);
	else if (step == TSI_RETURNERS_FOLLOW)
		keep_from(r, from);
	else if (step == TSI_RETURNERS_RELEASE)
		keep_no_longer(r);
}

/* What the next producer may need: at most a second old. */
void tsi_readers_mark(struct tsi_readers *r, int64_t now_ms)
{
	if (now_ms - r->marked_ms < MARK_MS)
		return;
	r->marked_ms = now_ms;
	for (unsigned i = 0; tsi_membership_next(r->membership, &i); i++) {
		struct tsock_stats_row row;

		tsi_membership_stats_row(r->membership, i, &row);
		tsi_record_mark(&r->record, tsi_conn_nonce(&r->conn[i]),
				row.tail, tsi_jobs_wait(&r->jobs, i));
	}
}

void tsi_readers_settle(struct tsi_readers *r, const struct tsi_msg_join *join,
			unsigned id)
{
	tsi_jobs_settle(&r->jobs, id);
	/* By the last rank no reader waits for others any more. */
	if (join->world > 1)
		r->marked_ms = 0;
	tsi_readers_mark(r, tsi_now_ms());
	/* The old row is gone from the file before the new one stands for
	 * itself. */
	if (take_all(r, join->was))
		tsi_readers_save_record(r);
	tsi_record_settle(&r->record, join->nonce);
}

void tsi_readers_withdraw(struct tsi_readers *r, const uint8_t *nonce)
{
	const struct tsi_reader_row *row =
		tsi_returners_find(&r->returners, nonce);

	/* A consumer takes its row off itself for a claim that it has heard of;
	 * otherwise it only withdraws its request. */
	if (row && (!memcmp(row->was, nobody, TSI_NONCE) ||
		    memcmp(row->nonce, nonce, TSI_NONCE) != 0 ||
		    tsi_record_has_left(&r->record, nonce)))
		take_all(r, nonce);
}
