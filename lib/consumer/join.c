/* SPDX-License-Identifier: MIT */
/*
 * join.c - becoming a reader: JOIN is sent until the producer makes an offer,
 * and the ring that it offers is mapped (attach.h).  After a producer's death
 * the next producer is waited for first.
 */
#include "consumer/consumer.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "consumer/attach.h"
#include "consumer/gpu/negotiate.h"
#include "wire/stop_file.h"

#define AGAIN_MS 20    /* while the producer prepares */
#define LOOK_MS 50     /* between two looks for a producer */
#define SLICE_MS 1000  /* between two looks at how long that takes */
#define WHOM_MS 100    /* for the answer to whom is waited for */
#define ATTACH_MS 1000 /* for a connection, from the offer on */
#define TRIES 5 /* to connect to a producer that doesn't know the token */

static enum tsi_returns returns(const struct tsock *t)
{
	if (!t->returns)
		return TSI_RETURNS_NOT;
	return tsi_progress_rewound(&t->progress) ? TSI_RETURNS
						  : TSI_RETURNS_UNBEGUN;
}

/* A hash of name and identity: the next producer's stream has the same. */
static uint64_t stream_hash(const struct tsock *t)
{
	const char *name = tsi_address_name(&t->address);
	const char *identity = tsi_meta_identity(&t->meta);
	uint64_t n = tsi_hash(identity, strlen(identity), 0);

	return tsi_hash(name, strlen(name), n);
}

/* The rank's part of the stream, as long as a sample's number means the same. */
static uint64_t part_of(const struct tsock *t)
{
	const struct tsi_ranks *ranks = tsi_progress_ranks(&t->progress);
	const char *folder = tsi_address_folder(&t->address);
	uint64_t at[] = { stream_hash(t), ranks->rank, ranks->world,
			  t->stream.resumable ? 0 : t->stream.incarnation };

	return tsi_hash(folder, strlen(folder), tsi_hash(at, sizeof(at), 0));
}

/*
 * What this process has read before the handle begins.  Handles that read at
 * the same time are readers of their own, and know what the first of them knew.
 */
static void find_read(struct tsock *t)
{
	if (t->goal.end)
		t->read.end = 0;
	else if (!tsi_siblings_read(t->stream.incarnation, &t->read))
		t->read = tsi_finished_read(t->part);
}

static void say_read(struct tsock *t, struct tsi_msg_join *j)
{
	uint64_t part = part_of(t);

	/* It may have been another rank. */
	if (part != t->part) {
		tsi_finished_note(t->part, t->finished);
		t->finished.end = 0;
	}
	t->part = part;
	if (tsi_progress_epoch(&t->progress) != TSI_PROGRESS_NONE)
		return;
	find_read(t);
	j->read = t->read.end;
	if (t->read.lineage == t->stream.lineage)
		j->read_of = TSI_READ_OF_THIS;
	else if (t->opts.flags & TSOCK_CONTINUE)
		j->read_of = TSI_READ_OF_CONTINUED;
}

/*
 * A rank looks at its own batches alone, so a GPU needs no other samples for it.
 * That holds as long as the reader is one, which may skip blocks, and nothing
 * else; a stream that isn't resumable has no other way to get anywhere.
 */
static uint32_t own_of(const struct tsock *t)
{
	const struct tsi_progress *p = &t->progress;
	const struct tsi_ranks *ranks = tsi_progress_ranks(p);
	uint64_t start = t->goal.end - t->stream.epoch_len;
	uint64_t block = t->goal.position;

	if (t->phase == TSI_PHASE_LOST)
		block = tsi_progress_block(p);
	/* Its first epoch is filled up otherwise than all others. */
	if (t->stream.start && (ranks->once || ranks->drop_last))
		return 0;
	if (ranks->world < 2 || !tsi_negotiate_view(&t->negotiation)->gpu ||
	    t->opts.join != TSOCK_JOIN_EPOCH || !t->stream.resumable ||
	    (t->goal.end &&
	     !tsi_progress_on_blocks(p, start, t->goal.end, block)))
		return 0;
	return TSI_OWN | (ranks->drop_last ? TSI_OWN_DROP_LAST : 0) |
	       (ranks->once ? TSI_OWN_ONCE : 0);
}

static int new_question(struct tsock *t)
{
	struct tsi_msg *m = &t->question;
	struct tsi_msg_join *j = &m->u.join;
	const struct tsi_ranks *ranks = tsi_progress_ranks(&t->progress);

	memset(m, 0, sizeof(*m));
	if (getrandom(j->nonce, sizeof(j->nonce), 0) != sizeof(j->nonce))
		return tsi_err_sys("getrandom");
	m->type = TSI_JOIN;
	m->serial = tsi_request_serial(&t->requests);
	j->pid = (uint32_t)getpid();
	j->batch_size = t->opts.batch_size;
	j->join = t->opts.join;
	j->between = t->leaves ? TSOCK_BETWEEN_LEAVE : TSOCK_BETWEEN_HOLD;
	j->staged = tsi_negotiate_staged(&t->negotiation);
	j->incarnation = t->stream.incarnation;
	j->after = tsi_progress_end(&t->progress);
	j->view = *tsi_negotiate_view(&t->negotiation);
	j->rank = ranks->rank;
	j->world = ranks->world;
	memcpy(j->job, t->opts.job, TSOCK_JOB);
	j->position = t->goal.position;
	j->epoch_end = t->goal.end;
	j->returns = returns(t);
	memcpy(j->was, t->lost.was, TSI_NONCE);
	j->detached = t->lost.detached && t->goal.end;
	j->from = t->goal.from;
	j->own = own_of(t);
	if (ranks->world > 1 && tsi_progress_rewound(&t->progress))
		j->own |= TSI_REWOUND;
	say_read(t, j);
	t->joining = true;
	return 0;
}

/* When the producer is asked whom a consumer waits for, the question is about
 * the reader's wait, or about that of a join under way. */
static struct tsi_whom_asks whom_asks(struct tsock *t)
{
	return (struct tsi_whom_asks){
		.requests = &t->requests,
		.nonce = t->joining ? t->question.u.join.nonce : t->nonce,
		.stream = tsi_address_name(&t->address),
		.pid = t->stream.pid,
	};
}

/* An answer to JOIN hasn't come yet, or was WAIT. */
static void name_wait(struct tsock *t, int64_t deadline)
{
	struct tsi_whom_asks whom = whom_asks(t);
	int64_t now = tsi_now_ms(), left = deadline - now;

	whom.wait_ms = left > WHOM_MS ? WHOM_MS : left > 0 ? (int)left : 0;
	tsi_whom_look(&t->whom, &whom, TSI_WHOM_JOIN, now);
}

/* The answer to JOIN, until the deadline, which may be far. */
static int ask_to_join(struct tsock *t, int64_t deadline, struct tsi_msg *r)
{
	for (;;) {
		int64_t slice = tsi_now_ms() + SLICE_MS;
		int err =
			tsi_request_ask(&t->requests, &t->question,
					slice < deadline ? slice : deadline, r);

		if (err != TSOCK_EAGAIN)
			return err;
		name_wait(t, deadline);
		if (tsi_now_ms() >= deadline)
			return err;
	}
}

/* Ask until there is an offer.  EAGAIN: the same question goes on later. */
static int get_offer(struct tsock *t, int64_t deadline)
{
	int err = t->joining ? 0 : new_question(t);

	while (!err) {
		struct tsi_msg r;

		err = ask_to_join(t, deadline, &r);
		if (err == TSOCK_EAGAIN)
			return err;
		if (err)
			break;
		if (r.type == TSI_OFFER) {
			t->offer = r.u.offer;
			t->connect_by_ms = tsi_now_ms() + ATTACH_MS;
			return 0;
		}
		if (r.type != TSI_WAIT) {
			err = tsi_err(TSOCK_EPROTO,
				      "the producer of '%s' answered JOIN with "
				      "a message of type %u",
				      tsi_address_name(&t->address), r.type);
			break;
		}
		name_wait(t, deadline);
		if (tsi_now_ms() >= deadline)
			return TSOCK_EAGAIN;
		tsi_pause_until(deadline, AGAIN_MS);
	}
	t->joining = false;
	return err;
}

/* A batch ends where its epoch does, so that none is larger. */
static uint64_t largest_batch(const struct tsock *t)
{
	return t->opts.batch_size < t->stream.epoch_len ? t->opts.batch_size
							: t->stream.epoch_len;
}

/* EAGAIN with t->connecting.open: it goes on later. */
static int attach(struct tsock *t, int64_t deadline, uint64_t *start,
		  uint64_t *end, bool *no_gpu)
{
	const struct tsi_msg_offer *offer = &t->offer;
	int64_t until =
		deadline < t->connect_by_ms ? deadline : t->connect_by_ms;
	int64_t left = until - tsi_now_ms();
	struct tsi_gpu_backend_parts gpu;
	struct tsi_attach a = {
		.address = &t->address,
		.nonce = t->question.u.join.nonce,
		.token = offer->token,
		.incarnation = t->stream.incarnation,
		.epoch_len = t->stream.epoch_len,
		.position = t->goal.end ? t->goal.position : 0,
		.field = tsi_negotiate_stored(&t->negotiation),
		.nfields = t->stream.nfields,
		.batch = largest_batch(t),
		.mode = t->opts.flags & TSOCK_WRITABLE ? TSI_MAP_PRIVATE
						       : TSI_MAP_SHARED,
		.gpu = tsi_negotiate_parts(&t->negotiation, offer, &gpu),
		.no_gpu = no_gpu,
		.connecting = &t->connecting,
		.timeout_ms = left > 0 ? (int)left : 0,
	};

	int err = tsi_negotiate_check(&t->negotiation, offer,
				      tsi_address_name(&t->address));

	if (err)
		return err;
	return tsi_attach(&a, &t->reader, start, end);
}

/* The reader's part in what is known of all readers of this process. */
static void add_sibling(struct tsock *t)
{
	const struct tsi_view_spec *v = tsi_negotiate_view(&t->negotiation);

	t->sibling = (struct tsi_sibling){
		.reader = t->reader,
		.stream = tsi_address_name(&t->address),
		.batch_size = t->opts.batch_size,
		.incarnation = t->stream.incarnation,
		.epoch_len = t->stream.epoch_len,
		.base_capacity = t->stream.capacity,
		.base = !v->dtype && !v->gpu,
		.gpu = v->gpu,
		.stream_hash = stream_hash(t),
		.read = t->read,
		.returns = t->stream.resumable && t->opts.rejoin_ms,
		.tries = t->sibling.tries + 1,
	};
	tsi_siblings_add(&t->sibling);
}

static void prepare_wait(struct tsock *t)
{
	struct tsi_waiter *w = &t->waiter;

	w->reader = t->reader;
	w->sibling = &t->sibling;
	w->stream = tsi_address_name(&t->address);
	w->pid = t->stream.pid;
	w->spins = t->opts.flags & TSOCK_SPIN;
	w->wait_ns = 0;
	w->asks = whom_asks(t);
	w->whom = &t->whom;
	tsi_whom_end(w->whom);
}

static void entered(struct tsock *t)
{
	static const char *const by[] = { "host memory", "GPU memory (vmm)",
					  "GPU memory (legacy)",
					  "host memory, copied to the GPU" };

	t->joining = t->unopened = false;
	t->own = t->question.u.join.own & ~(uint32_t)TSI_REWOUND;
	memcpy(t->nonce, t->question.u.join.nonce, TSI_NONCE);
	tsi_reader_used_here(t->reader);
	add_sibling(t);
	prepare_wait(t);
	t->samples = 0;
	tsi_progress_set_last(&t->progress, tsi_reader_end(t->reader));
	t->transport = tsi_negotiate_transport(&t->negotiation, &t->offer);
	tsi_log(TSOCK_LOG_DEBUG, "joined '%s': batches of %u from %s",
		tsi_address_name(&t->address), t->opts.batch_size,
		by[t->transport]);
}

/*
 * A join that has failed may have become a claim in the producer's record, and
 * the producer may have died since.  The next join says so, unless it is known
 * by the claim of before, or says where it goes on.
 */
static void note_claim(struct tsock *t)
{
	static const uint8_t nobody[TSI_NONCE];

	if (!t->goal.end && !memcmp(t->lost.was, nobody, TSI_NONCE))
		memcpy(t->lost.was, t->question.u.join.nonce, TSI_NONCE);
}

/*
 * The GPU's memory couldn't be opened: because it can't be here, or because its
 * producer has died, whose memory goes a moment before the kernel says so.  One
 * that is asked once more, and answers, hasn't.
 */
static bool try_gpu_again(struct tsock *t)
{
	t->unopened = !t->unopened;
	return t->unopened ||
	       tsi_negotiate_next(&t->negotiation, t->offer.transport);
}

static int join_this(struct tsock *t, int64_t deadline, uint64_t *start,
		     uint64_t *end)
{
	/* A join with another goal was under way. */
	if (t->joining && (t->question.u.join.position != t->goal.position ||
			   t->question.u.join.epoch_end != t->goal.end ||
			   t->question.u.join.from != t->goal.from))
		tsi_join_cancel(t);
	for (int tries = 1;; tries++) {
		bool no_gpu = false;
		int err = t->connecting.open ? 0 : get_offer(t, deadline);

		if (err && err != TSOCK_EAGAIN)
			tsi_log(TSOCK_LOG_DEBUG, "joining '%s': %s",
				tsi_address_name(&t->address), tsock_errmsg());
		/* The producer has nothing for that GPU. */
		if (err == TSOCK_ENOTSUP &&
		    tsi_negotiate_next(&t->negotiation, TSOCK_TRANSPORT_AUTO))
			continue;
		if (err)
			return err;
		err = attach(t, deadline, start, end, &no_gpu);
		if (!err) {
			entered(t);
			return 0;
		}
		if (t->connecting.open && tsi_now_ms() < t->connect_by_ms)
			return err;
		if (err != TSOCK_EAGAIN)
			tsi_log(TSOCK_LOG_DEBUG, "joining '%s': try %d: %s",
				tsi_address_name(&t->address), tries,
				tsock_errmsg());
		/* It made an offer, and was gone before we could connect. */
		if (err == TSOCK_ENOPROD)
			err = tsi_err(TSOCK_ELOST,
				      "the producer of '%s' is gone",
				      tsi_address_name(&t->address));
		/* Whatever came of it: the next try is another connection. */
		note_claim(t);
		tsi_join_cancel(t);
		if (no_gpu && try_gpu_again(t))
			continue;
		if (err != TSOCK_EAGAIN &&
		    (err != TSOCK_ELOST || tries > TRIES))
			return err;
		if (tsi_now_ms() >= deadline)
			return TSOCK_EAGAIN;
		tsi_pause_until(deadline, AGAIN_MS);
	}
}

void tsi_join_cancel(struct tsock *t)
{
	struct tsi_msg m = { .type = TSI_LEAVE };

	if (!t->joining)
		return;
	t->joining = false;
	tsi_fdpass_abandon(&t->connecting);
	memcpy(m.u.leave.nonce, t->question.u.join.nonce, TSI_NONCE);
	tsi_request_tell(&t->requests, &m);
}

void tsi_join_forgo(struct tsock *t, int timeout_ms)
{
	static const uint8_t nobody[TSI_NONCE];
	struct tsi_err_saved saved = tsi_err_save(0);

	if (memcmp(t->lost.was, nobody, TSI_NONCE) != 0)
		tsi_leave_record(&t->address, &t->requests, t->lost.was,
				 timeout_ms);
	tsi_lost_forget(&t->lost);
	tsi_err_restore(&saved);
}

/* ---- with this producer, or one that comes later ---- */

/* TSOCK_EENDED: somebody has stopped the stream since the handle was opened. */
static int check_stopped(const struct tsock *t)
{
	char who[TSI_STOP_WHO];

	if (!tsi_stop_file_since(&t->address, t->opened_ns, who))
		return 0;
	return tsi_stop_file_err(&t->address, who);
}

/* Until there is a producer of the same stream.  EAGAIN: not yet. */
static int await_producer(struct tsock *t, int64_t deadline)
{
	int64_t last = tsi_lost_last_ms(&t->lost, t->opts.rejoin_ms);
	int64_t until = last < deadline ? last : deadline;

	while (!t->lost.met) {
		int64_t now = tsi_now_ms();
		int err = check_stopped(t);

		if (!err)
			err = tsi_open_again(t, until);
		if (err && err != TSOCK_EAGAIN)
			return err;
		if (!err) {
			t->lost.met = t->returns = true;
			return 0;
		}
		if (now >= last)
			return tsi_lost_err(&t->lost, t->opts.rejoin_ms);
		if (now >= deadline)
			return TSOCK_EAGAIN;
		tsi_pause_until(until, LOOK_MS);
	}
	return 0;
}

/* Its epoch may be over: then the job has nothing more of that. */
void tsi_join_missed(struct tsock *t, uint64_t start)
{
	uint64_t from = t->lost.position, end = tsi_progress_end(&t->progress);
	uint64_t missed = tsi_progress_miss(&t->progress, from, start);

	if (!missed)
		return;
	t->missed += missed;
	tsi_log(TSOCK_LOG_WARN,
		"'%s': this consumer was detached, since others had to wait "
		"for it: it missed %llu samples, %llu to %llu%s",
		tsi_address_name(&t->address), (unsigned long long)missed,
		(unsigned long long)from, (unsigned long long)start - 1,
		start < end ? "" : ", and with them the rest of its epoch");
}

/* What a join that succeeded, or found the stream at its end, means for it. */
static void learn_what_was_missed(struct tsock *t, int err, uint64_t start)
{
	uint64_t last = tsi_progress_last(&t->progress);

	/* The end was decided since: the rest of the epoch at least. */
	if (last == TSI_NEVER)
		last = tsi_progress_end(&t->progress);
	if (t->lost.detached && (!err || err == TSOCK_EENDED))
		tsi_join_missed(t, err ? last : start);
}

/* Joins have a deadline of their own, since the next producer may have to
 * prepare a lot. */
int tsi_join(struct tsock *t, int64_t deadline, uint64_t *start, uint64_t *end)
{
	bool may = t->stream.resumable && t->opts.rejoin_ms;
	char why[128];

	for (;;) {
		int err = tsi_lost_waits(&t->lost) ? await_producer(t, deadline)
						   : 0;

		if (err) {
			if (err != TSOCK_EAGAIN) {
				tsi_open_forget(t);
				tsi_join_forgo(t, 0);
			}
			return err;
		}
		err = join_this(t, deadline, start, end);
		if (err == TSOCK_EAGAIN)
			return err;
		if (err == TSOCK_ELOST && check_stopped(t))
			err = TSOCK_EENDED;
		if (!err)
			tsi_lost_log_rejoined(&t->lost,
					      tsi_address_name(&t->address),
					      *start);
		learn_what_was_missed(t, err, *start);
		/* A producer that lives, and loses joins for ever, is no better
		 * than none. */
		if (err != TSOCK_ELOST || !may ||
		    tsi_lost_waited_enough(&t->lost, t->opts.rejoin_ms)) {
			if (err)
				tsi_join_forgo(t, 0);
			tsi_lost_forget(&t->lost);
			return err;
		}
		snprintf(why, sizeof(why), "the producer of '%s' is gone",
			 tsi_address_name(&t->address));
		tsi_lost_note(&t->lost, why, t->opts.rejoin_ms);
	}
}

int tsock_waits_for(tsock *t, int timeout_ms, char *buf, size_t size)
{
	struct tsi_whom_asks asks;

	if (!t || !buf || !size)
		return tsi_err(TSOCK_EARG, "tsock_waits_for: %s",
			       !t    ? "t is NULL"
			       : buf ? "size is 0"
				     : "buf is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	if (tsi_lost_lacks_producer(&t->lost)) {
		snprintf(buf, size, "another producer of the stream '%s'",
			 tsi_address_name(&t->address));
		return 0;
	}
	asks = whom_asks(t);
	tsi_whom_tell(&t->whom, &asks,
		      timeout_ms < 0 ? INT64_MAX : tsi_now_ms() + timeout_ms,
		      buf, size);
	return 0;
}
