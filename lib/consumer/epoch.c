/* SPDX-License-Identifier: MIT */
/*
 * epoch.c - beginning an epoch, taking its batches, leaving, and going on with
 * the next producer.
 *
 * tsock_next() with data at hand makes no system call, takes no lock,
 * allocates nothing and logs nothing; tsock.h says where it has to.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fork.h"
#include "base/log.h"
#include "consumer/await_release.h"
#include "consumer/consumer.h"

static void leave_within(struct tsock *t, int timeout_ms)
{
	struct tsi_reader *r = t->reader;
	bool recorded = t->stream.resumable;

	/* Its producer can't be told any more; the next one will be. */
	if (recorded && tsi_claim_abandoned(tsi_reader_claim(r))) {
		memcpy(t->lost.was, t->nonce, TSI_NONCE);
		recorded = false;
	}
	tsi_siblings_remove(&t->sibling);
	t->reader = NULL;
	t->phase = TSI_PHASE_IDLE;
	tsi_leave_reader(&t->left, r, recorded ? &t->address : NULL,
			 &t->requests, t->nonce, timeout_ms);
}

static int64_t deadline_of(int timeout_ms)
{
	return timeout_ms < 0 ? INT64_MAX : tsi_now_ms() + timeout_ms;
}

/* The deadline of what follows a wait that may have taken all the time. */
static int64_t when_waited(int timeout_ms)
{
	return timeout_ms < 0 ? INT64_MAX : 0;
}

/* Leave; that is confirmed later where the deadline comes before. */
static void leave_reader(struct tsock *t, int64_t deadline)
{
	int64_t left = deadline - tsi_now_ms();

	if (left > TSI_LEAVE_MS)
		left = TSI_LEAVE_MS;
	leave_within(t, left > 0 ? (int)left : 0);
}

/* Leave, and the error that is the reason stays this thread's. */
static int leave_for(struct tsock *t, int err, int64_t deadline)
{
	struct tsi_err_saved saved = tsi_err_save(err);

	leave_reader(t, deadline);
	return tsi_err_restore(&saved);
}

/* ---- a producer that is gone ---- */

static bool is_detached(const struct tsock *t)
{
	return tsi_claim_detached(tsi_reader_claim(t->reader));
}

/* A reader that was lost, and may be one again. */
enum loss {
	NOT_LOST,      /* or for good */
	DETACHED,      /* its producer makes it a reader again */
	PRODUCER_LOST, /* the next producer does */
	OUTLIVED,      /* there is nothing more: the stream ended without it */
};

static enum loss loss_by(const struct tsock *t, int err)
{
	if (err != TSOCK_ELOST)
		return NOT_LOST;
	if (!tsi_claim_abandoned(tsi_reader_claim(t->reader)))
		return is_detached(t) ? DETACHED : NOT_LOST;
	if (is_detached(t) && tsi_claim_head(tsi_reader_claim(t->reader)) >=
				      tsi_reader_end(t->reader))
		return OUTLIVED;
	return t->stream.resumable && t->opts.rejoin_ms ? PRODUCER_LOST
							: NOT_LOST;
}

/* In the middle of an epoch, or at its beginning. */
static void lose_reader(struct tsock *t, enum loss loss)
{
	t->lost.detached |= is_detached(t);
	t->lost.position = tsi_reader_pos(t->reader);
	tsi_progress_set_last(&t->progress, tsi_reader_end(t->reader));
	memcpy(t->lost.was, t->nonce, TSI_NONCE);
	tsi_siblings_remove(&t->sibling);
	if (loss == PRODUCER_LOST) {
		tsi_lost_note(&t->lost, tsock_errmsg(), t->opts.rejoin_ms);
		tsi_leave_lost(&t->left, t->reader);
	} else {
		tsi_leave_detached(&t->left, t->reader, &t->requests, t->nonce);
	}
	t->reader = NULL;
	t->phase = TSI_PHASE_LOST;
}

/* In phase LOST: on where it was. */
static int rejoin(struct tsock *t, int *timeout_ms)
{
	int64_t deadline = deadline_of(*timeout_ms);
	uint64_t start, end;
	int err;

	tsi_siblings_remove(&t->sibling);
	t->goal = (struct tsi_goal){ .position = t->lost.position,
				     .end = tsi_progress_end(&t->progress) };
	err = tsi_join(t, deadline, &start, &end);
	if (!err) {
		t->phase = TSI_PHASE_READING;
		/* Other ranks may have to begin where this one did. */
		if (start < t->lost.position)
			tsi_reader_skip(t->reader, t->lost.position);
	} else if (err != TSOCK_EAGAIN) {
		t->phase = TSI_PHASE_IDLE;
	} else if (!t->lost.detached) {
		tsi_siblings_add_lost(&t->sibling, t->lost.position);
	}
	if (*timeout_ms > 0)
		*timeout_ms = tsi_now_ms() < deadline
				      ? (int)(deadline - tsi_now_ms())
				      : 0;
	return err;
}

/* ---- epochs ---- */

/* Hear what the producer has to say to all readers, if that is new. */
static void hear(struct tsock *t)
{
	struct tsi_heard_from from = { &t->requests,
				       tsi_address_name(&t->address) };

	tsi_heard_look(&t->heard, &from, t->stream.incarnation,
		       tsi_reader_claim(t->reader));
}

/* An epoch was begun, or beginning it has failed. */
static int begun(struct tsock *t, int err)
{
	if (!err)
		hear(t);
	return err;
}

static int err_ended(const struct tsock *t)
{
	return tsi_err(TSOCK_EENDED,
		       "the stream '%s' has ended after %llu "
		       "epochs",
		       tsi_address_name(&t->address),
		       (unsigned long long)t->stream.epochs);
}

/* Its producer may have decided where after the stream was opened. */
static int end_stream(struct tsock *t, int64_t deadline)
{
	struct tsi_claim *c = tsi_reader_claim(t->reader);

	if (tsi_claim_ring_state(c) == TSI_RING_STOPPED)
		return leave_for(t, tsi_claim_err_ended(c, t->waiter.stream),
				 deadline);
	t->stream.epochs = tsi_reader_end(t->reader) / t->stream.epoch_len;
	leave_reader(t, deadline);
	return err_ended(t);
}

static int miss_the_rest(struct tsock *t, int64_t deadline)
{
	t->lost.position = tsi_reader_pos(t->reader);
	tsi_join_missed(t, tsi_reader_end(t->reader));
	return end_stream(t, deadline);
}

/* On to the job's sample at block: other ranks' samples are skipped. */
static void move_to(struct tsock *t, uint64_t block)
{
	uint64_t pos;

	if (!tsi_progress_move(&t->progress, block, &pos))
		return;
	if (!t->reader)
		t->lost.position = pos;
	else if (tsi_reader_pos(t->reader) < pos)
		tsi_reader_skip(t->reader, pos);
}

static void begin_epoch(struct tsock *t, uint64_t start, uint64_t end)
{
	tsi_progress_begin(&t->progress, start, end);
	t->phase = TSI_PHASE_READING;
	move_to(t, start);
}

/* The job has had all of it: later handles of this process don't get it. */
static void note_finished(struct tsock *t)
{
	t->finished = (struct tsi_finished){
		.end = tsi_progress_end(&t->progress),
		.lineage = t->stream.lineage,
	};
}

static int end_epoch(struct tsock *t, int64_t deadline)
{
	uint64_t end = tsi_progress_end(&t->progress);
	struct tsi_reader *r = t->reader;

	hear(t);
	if (tsi_reader_end(r) < end)
		return end_stream(t, deadline);
	if (tsi_reader_pos(r) < end)
		tsi_reader_skip(r, end);
	note_finished(t);
	if (t->leaves) {
		leave_reader(t, deadline);
	} else if (tsi_reader_make_all_private(r)) {
		tsi_log(TSOCK_LOG_WARN, "%s; the stream waits for held batches",
			tsock_errmsg());
	}
	t->phase = TSI_PHASE_DONE;
	return TSOCK_EEPOCH;
}

/* We are a reader still: the next epoch starts where the last one ended. */
static int follow_stream(struct tsock *t, int64_t deadline)
{
	struct tsi_reader *r = t->reader;
	uint64_t n = t->stream.epoch_len, begin;
	int err;

	begin = tsi_progress_next_epoch(&t->progress, tsi_reader_pos(r));
	if (begin > UINT64_MAX / 2 || tsi_reader_end(r) < begin + n)
		return end_stream(t, deadline);
	err = tsi_wait_trouble(&t->waiter, tsi_now_ms());
	/* What was published before can still be read.  Pairs with the
	 * producer's release. */
	if (err &&
	    tsi_claim_head(tsi_reader_claim(r)) <=
		    tsi_progress_end(&t->progress) &&
	    !loss_by(t, err))
		return leave_for(t, err, deadline);
	begin_epoch(t, begin, begin + n);
	if (tsi_reader_pos(r) > begin &&
	    tsi_progress_ranks(&t->progress)->world == 1)
		move_to(t, tsi_reader_pos(r));
	return 0;
}

/* Does what it said that it looks at have the blocks of this epoch? */
static int check_own(const struct tsock *t, uint64_t start, uint64_t end,
		     uint64_t block)
{
	if (!t->own || tsi_progress_on_blocks(&t->progress, start, end, block))
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "this rank of '%s' would begin at sample %llu, amid an "
		       "epoch, where ranks with another join than "
		       "TSOCK_JOIN_EPOCH began: give all ranks the same",
		       tsi_address_name(&t->address),
		       (unsigned long long)start);
}

/* Become a reader anew: of any epoch, or where the goal says. */
static int begin_anew(struct tsock *t, struct tsi_goal goal, int64_t deadline)
{
	uint64_t start, end;
	int err;

	if (t->reader)
		leave_reader(t, deadline);
	if (t->phase == TSI_PHASE_LOST) {
		tsi_siblings_remove(&t->sibling);
		t->phase = TSI_PHASE_IDLE;
	}
	t->lost.detached = false;
	t->goal = goal;
	err = tsi_join(t, deadline, &start, &end);
	if (err)
		return err;
	err = check_own(t, goal.end ? end - t->stream.epoch_len : start, end,
			goal.end ? goal.position : start);
	if (err)
		return leave_for(t, err, deadline);
	begin_epoch(t, goal.end ? end - t->stream.epoch_len : start, end);
	if (!goal.end)
		return 0;
	move_to(t, goal.position);
	start = end - t->stream.epoch_len;
	tsi_finished_go_back(t->part, start);
	if (t->finished.end > start)
		t->finished.end = start;
	return 0;
}

int tsock_begin_timed(tsock *t, int timeout_ms)
{
	struct tsi_goal any = { .end = 0 };
	int64_t deadline = deadline_of(timeout_ms);

	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_begin: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	tsi_leave_sweep(&t->left);
	/* All was taken, and only EEPOCH not yet heard. */
	if (t->phase == TSI_PHASE_READING && !tsi_progress_next(&t->progress))
		end_epoch(t, deadline);
	if (t->phase == TSI_PHASE_DONE && t->reader)
		return begun(t, follow_stream(t, deadline));
	if (t->reader)
		leave_reader(t, deadline);
	if (tsi_progress_was_last(&t->progress, t->stream.epochs))
		return err_ended(t);
	return begun(t, begin_anew(t, any, deadline));
}

/* An epoch was begun, and nothing of it was taken. */
static bool is_at_start(const struct tsock *t)
{
	return t->phase == TSI_PHASE_READING && t->reader &&
	       tsi_progress_block(&t->progress) ==
		       tsi_progress_start(&t->progress);
}

/* A rank's job may have begun an earlier epoch, by other ranks that said so. */
static int check_from(struct tsock *t, uint64_t epoch, int64_t deadline)
{
	uint64_t got = tsi_progress_epoch(&t->progress);

	if (got >= epoch)
		return 0;
	return leave_for(
		t,
		tsi_err(TSOCK_EREFUSED,
			"rank %u of '%s' has to begin epoch %llu, and other "
			"ranks of its job have begun epoch %llu: all have to "
			"ask for the same",
			t->opts.rank, tsi_address_name(&t->address),
			(unsigned long long)epoch, (unsigned long long)got),
		deadline);
}

int tsock_begin_from(tsock *t, uint64_t epoch, int timeout_ms)
{
	int64_t deadline = deadline_of(timeout_ms);
	struct tsi_goal goal = { .end = 0 };
	int err;

	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_begin_from: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	if (epoch > UINT64_MAX / 4 / t->stream.epoch_len)
		return tsi_err(
			TSOCK_EARG,
			"tsock_begin_from: no stream comes to epoch %llu",
			(unsigned long long)epoch);
	if (is_at_start(t) && tsi_progress_epoch(&t->progress) >= epoch)
		return 0;
	tsi_leave_sweep(&t->left);
	if (t->phase == TSI_PHASE_READING && !tsi_progress_next(&t->progress))
		end_epoch(t, deadline);
	goal.from = epoch * t->stream.epoch_len;
	if (t->phase == TSI_PHASE_DONE && t->reader &&
	    tsi_progress_end(&t->progress) >= goal.from)
		return begun(t, follow_stream(t, deadline));
	if (t->reader)
		leave_reader(t, deadline);
	if (tsi_progress_was_last(&t->progress, t->stream.epochs))
		return err_ended(t);
	err = begin_anew(t, goal, deadline);
	if (!err)
		err = check_from(t, epoch, deadline);
	return begun(t, err);
}

int tsock_begin(tsock *t)
{
	return tsock_begin_timed(t, -1);
}

void tsock_rewind(tsock *t)
{
	if (t && !tsi_fork_since(t->generation) && t->phase == TSI_PHASE_IDLE)
		tsi_progress_rewind(&t->progress);
}

int tsock_skip(tsock *t, uint64_t samples)
{
	uint64_t block;

	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_skip: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	if (t->phase != TSI_PHASE_READING && t->phase != TSI_PHASE_LOST)
		return tsi_err(TSOCK_EARG, "no epoch was begun: call "
					   "tsock_begin() before tsock_skip()");
	block = tsi_progress_ahead(&t->progress, samples);
	if (t->own && !tsi_progress_on_blocks(
			      &t->progress, tsi_progress_start(&t->progress),
			      tsi_progress_end(&t->progress), block))
		return tsi_err(TSOCK_EARG,
			       "tsock_skip: %llu samples: a rank whose batches "
			       "come from a GPU's memory skips whole batches, "
			       "of %u, or to the end; tsock_resume() goes "
			       "anywhere",
			       (unsigned long long)samples, t->opts.batch_size);
	move_to(t, block);
	return 0;
}

/* ---- positions ---- */

int tsock_resume(tsock *t, uint64_t start, uint64_t samples, int timeout_ms)
{
	struct tsi_goal goal;
	uint64_t n;

	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_resume: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	n = t->stream.epoch_len;
	if (!t->stream.resumable)
		return tsi_err(TSOCK_ENOTSUP,
			       "the stream '%s' can't be gone on with at a "
			       "saved position: its producer doesn't say that "
			       "its samples are the same in every run",
			       tsi_address_name(&t->address));
	if (start > UINT64_MAX / 4 || samples > n)
		return tsi_err(
			TSOCK_EARG,
			"an epoch that begins at sample %llu, after %llu "
			"samples of it: an epoch of '%s' has %llu",
			(unsigned long long)start, (unsigned long long)samples,
			tsi_address_name(&t->address), (unsigned long long)n);
	tsi_leave_sweep(&t->left);
	if (samples == n) {
		start += n;
		samples = 0;
	}
	goal = (struct tsi_goal){ .position = start + samples,
				  .end = start + n };
	return begun(t, begin_anew(t, goal, deadline_of(timeout_ms)));
}

/* ---- reading ---- */

/* Other readers need not wait for one whose GPU, or context, is lost. */
static int leave_if_lost(struct tsock *t, int err)
{
	struct tsi_err_saved saved;

	if (tsi_backend_device(tsi_reader_backend(t->reader)) < 0 ||
	    err == TSOCK_EAGAIN || err == TSOCK_EHELD)
		return err;
	saved = tsi_err_save(err);
	if (tsi_reader_trouble(t->reader))
		leave_reader(t, 0);
	return tsi_err_restore(&saved);
}

/* Samples are there, and may be looked at. */
static bool at_hand(struct tsi_reader *r, uint64_t need)
{
	/* Pairs with the producer's release: the samples below are there. */
	if (tsi_claim_head(tsi_reader_claim(r)) < need)
		return false;
	if (tsi_claim_turned(tsi_reader_claim(r)))
		tsi_reader_enter(r, need);
	/* A reader that was given up may see its slots reused. */
	return tsi_claim_stands(tsi_reader_claim(r));
}

static int await_samples(struct tsock *t, uint64_t need, int timeout_ms)
{
	int err = tsi_wait_head(&t->waiter, need, timeout_ms);

	/* The samples are there, so it was given up. */
	if (!err && !at_hand(t->reader, need))
		err = tsi_wait_trouble(&t->waiter, tsi_now_ms());
	return err;
}

/*
 * Batches in host memory that are held are in nobody's way when there is no
 * producer: what it has published can be taken, and the next one is told where
 * this reader is.
 */
static bool held_is_no_matter(const struct tsock *t)
{
	return tsi_backend_device(tsi_reader_backend(t->reader)) < 0 &&
	       tsi_claim_abandoned(tsi_reader_claim(t->reader));
}

/* Wait for the next n samples, and take them. */
static int take_samples(struct tsock *t, uint64_t n, int *timeout_ms,
			struct tsock_batch **out)
{
	uint64_t need = tsi_reader_pos(t->reader) + n;
	int err = tsi_await_release(&t->waiter, t->reader, n, timeout_ms);

	/* Batches of an earlier claim hold the stream, too. */
	if (!err && tsi_leave_any(&t->left))
		err = tsi_leave_await(&t->left, &t->waiter, need, timeout_ms);
	if (err == TSOCK_EHELD && held_is_no_matter(t))
		err = 0;
	if (!err && !at_hand(t->reader, need))
		err = await_samples(t, need, *timeout_ms);
	if (err)
		return err;
	tsi_wait_goes_on(&t->waiter);
	return tsi_reader_acquire(t->reader, n, out);
}

static int take_next(struct tsock *t, int timeout_ms, struct tsock_batch **out)
{
	enum loss loss;
	uint64_t n;
	int err;

	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	if (t->phase == TSI_PHASE_DONE)
		return TSOCK_EEPOCH;
	if (t->phase == TSI_PHASE_IDLE)
		return tsi_err(TSOCK_EARG, "no epoch was begun: call "
					   "tsock_begin() first");
	/* Once for each producer that is lost meanwhile. */
	for (;;) {
		if (t->phase == TSI_PHASE_LOST) {
			err = rejoin(t, &timeout_ms);
			if (err)
				return err;
		}
		n = tsi_progress_next(&t->progress);
		if (!n)
			return end_epoch(t, deadline_of(timeout_ms));
		err = take_samples(t, n, &timeout_ms, out);
		if (err == TSOCK_EENDED)
			return end_stream(t, when_waited(timeout_ms));
		loss = loss_by(t, err);
		if (loss == NOT_LOST)
			break;
		if (loss == OUTLIVED)
			return miss_the_rest(t, when_waited(timeout_ms));
		lose_reader(t, loss);
	}
	if (err)
		return leave_if_lost(t, err);
	t->samples += n;
	tsi_claim_count(tsi_reader_claim(t->reader), t->samples,
			tsi_reader_pos(t->reader));
	move_to(t, tsi_progress_next_block(&t->progress));
	return 0;
}

int tsock_next(tsock *t, int timeout_ms, tsock_batch **out)
{
	int err;

	if (!t || !out)
		err = tsi_err(TSOCK_EARG, "tsock_next: %s is NULL",
			      t ? "out" : "t");
	else
		err = take_next(t, timeout_ms, out);
	if (err && out)
		*out = NULL;
	return err;
}

static void leave(struct tsock *t, int timeout_ms)
{
	/* All was taken, and only EEPOCH not heard. */
	if ((t->phase == TSI_PHASE_READING || t->phase == TSI_PHASE_LOST) &&
	    tsi_progress_is_over(&t->progress))
		note_finished(t);
	tsi_join_cancel(t);
	if (t->reader)
		leave_within(t, timeout_ms);
	else
		tsi_siblings_remove(&t->sibling);
	t->phase = TSI_PHASE_IDLE;
	tsi_open_forget(t);
	tsi_join_forgo(t, timeout_ms);
	tsi_leave_sweep(&t->left);
}

int tsock_leave_timed(tsock *t, int timeout_ms)
{
	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_leave_timed: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	leave(t, 0);
	return tsi_request_await_left(&t->requests, timeout_ms);
}

void tsock_leave(tsock *t)
{
	if (t)
		(void)tsock_leave_timed(t, TSI_LEAVE_MS);
}

void tsock_close(tsock *t)
{
	/* In a forked child all of it is the parent's. */
	if (!t || tsi_fork_since(t->generation))
		return;
	leave(t, TSI_LEAVE_MS);
	tsi_finished_note(t->part, t->finished);
	tsi_leave_drop_all(&t->left);
	tsi_request_close(&t->requests);
	tsi_meta_end(&t->meta);
	free(t);
}
