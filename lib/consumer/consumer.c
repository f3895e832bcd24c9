/*
 * consumer.c - joining a stream, reading its epochs, and leaving.
 *
 * tsock_next() with data at hand makes no system call, takes no lock,
 * allocates nothing and logs nothing; tsock.h says where it has to.
 */
#include "consumer/consumer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "consumer/attach.h"
#include "consumer/gpu/negotiate.h"
#include "consumer/await_release.h"
#include "base/fork.h"
#include "wire/peer.h"

#define AGAIN_MS 20 /* while the producer prepares */
#define ATTACH_MIN_MS 250
#define ATTACH_MAX_MS 1000
#define TRIES 5 /* to connect to a producer that doesn't know the token */

/* ---- leaving ---- */

void tsi_consumer_sweep(struct tsock *t)
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

/* Stop being a reader; now, or when the last batch that holds us is back. */
static void detach(struct tsock *t)
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
	if (!tsi_peer_gone(r->producer, r->sock))
		tsi_request_leave(&t->requests, t->nonce);
	tsi_reader_unref(r);
}

/* The same, and the error that is the reason stays this thread's. */
static int detach_for(struct tsock *t, int err)
{
	struct tsi_err_saved saved = tsi_err_save(err);

	detach(t);
	return tsi_err_restore(&saved);
}

/* A join that wasn't finished. */
static void forsake(struct tsock *t)
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
	forsake(t);
	if (t->reader)
		detach(t);
	t->phase = TSI_PHASE_IDLE;
	tsi_consumer_sweep(t);
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

/* ---- joining ---- */

static int new_question(struct tsock *t)
{
	struct tsi_msg *m = &t->question;
	struct tsi_msg_join *j = &m->u.join;

	memset(m, 0, sizeof(*m));
	if (getrandom(j->nonce, sizeof(j->nonce), 0) != sizeof(j->nonce))
		return tsi_err_sys("getrandom");
	m->type = TSI_JOIN;
	m->serial = tsi_request_serial(&t->requests);
	j->pid = (uint32_t)getpid();
	j->batch_size = t->opts.batch_size;
	j->join = t->opts.join;
	j->between = t->leaves ? TSOCK_BETWEEN_LEAVE : TSOCK_BETWEEN_HOLD;
	j->staged = t->try == TSOCK_TRANSPORT_STAGED;
	j->incarnation = t->stream.incarnation;
	j->after = t->end;
	j->view = t->view;
	t->joining = true;
	return 0;
}

/* Ask until there is an offer.  EAGAIN: the same question goes on later. */
static int get_offer(struct tsock *t, int64_t deadline,
		     struct tsi_msg_offer *out)
{
	int err = t->joining ? 0 : new_question(t);

	while (!err) {
		struct tsi_msg r;
		int64_t left;

		err = tsi_request_ask(&t->requests, &t->question, deadline, &r);
		if (err == TSOCK_EAGAIN)
			return err;
		if (err)
			break;
		if (r.type == TSI_OFFER) {
			*out = r.u.offer;
			return 0;
		}
		if (r.type != TSI_WAIT) {
			err = tsi_err(TSOCK_EPROTO,
				      "the producer of '%s' answered JOIN with "
				      "a message of type %u",
				      t->address.name, r.type);
			break;
		}
		left = deadline - tsi_now_ms();
		if (left <= 0)
			return TSOCK_EAGAIN;
		poll(NULL, 0, left < AGAIN_MS ? (int)left : AGAIN_MS);
	}
	t->joining = false;
	return err;
}

static int attach(struct tsock *t, const struct tsi_msg_offer *offer,
		  int64_t deadline, uint64_t *start, uint64_t *end,
		  bool *no_gpu)
{
	int64_t left = deadline - tsi_now_ms();
	struct tsi_gpu_backend_parts gpu;
	struct tsi_attach a = {
		.address = &t->address,
		.nonce = t->question.u.join.nonce,
		.token = offer->token,
		.incarnation = t->stream.incarnation,
		.epoch_len = t->stream.epoch_len,
		.field = t->stored,
		.nfields = t->stream.nfields,
		.batch = t->opts.batch_size,
		.mode = t->opts.flags & TSOCK_WRITABLE ? TSI_MAP_PRIVATE
						       : TSI_MAP_SHARED,
		.gpu = tsi_negotiate_parts(t, offer, &gpu),
		.no_gpu = no_gpu,
		.timeout_ms = ATTACH_MAX_MS,
	};

	int err = tsi_negotiate_check(t, offer);

	if (err)
		return err;
	if (left < ATTACH_MAX_MS)
		a.timeout_ms = left > ATTACH_MIN_MS ? (int)left : ATTACH_MIN_MS;
	return tsi_attach(&a, &t->reader, start, end);
}

static void entered(struct tsock *t, const struct tsi_msg_offer *offer)
{
	static const char *const by[] = { "host memory", "GPU memory (vmm)",
					  "GPU memory (legacy)",
					  "host memory, copied to the GPU" };

	t->joining = false;
	t->stuck.on = NULL;
	tsi_reader_used_here(t->reader);
	tsi_siblings_add(t);
	t->samples = t->wait_ns = 0;
	t->transport = tsi_negotiate_transport(t, offer);
	memcpy(t->nonce, t->question.u.join.nonce, TSI_NONCE);
	tsi_log(TSOCK_LOG_DEBUG, "joined '%s': batches of %u from %s",
		t->address.name, t->opts.batch_size, by[t->transport]);
}

/* Become a reader. */
static int enter(struct tsock *t, int64_t deadline, uint64_t *start,
		 uint64_t *end)
{
	for (int tries = 1;; tries++) {
		struct tsi_msg_offer offer;
		bool no_gpu = false;
		int err = get_offer(t, deadline, &offer);

		if (err && err != TSOCK_EAGAIN)
			tsi_log(TSOCK_LOG_DEBUG, "joining '%s': %s",
				t->address.name, tsock_errmsg());
		/* The producer has nothing for that GPU. */
		if (err == TSOCK_ENOTSUP &&
		    tsi_negotiate_next(t, TSOCK_TRANSPORT_AUTO))
			continue;
		if (err)
			return err;
		err = attach(t, &offer, deadline, start, end, &no_gpu);
		if (!err) {
			entered(t, &offer);
			return 0;
		}
		if (err != TSOCK_EAGAIN)
			tsi_log(TSOCK_LOG_DEBUG, "joining '%s': try %d: %s",
				t->address.name, tries, tsock_errmsg());
		/* Whatever came of it: the next try is another connection. */
		forsake(t);
		if (no_gpu && tsi_negotiate_next(t, offer.transport))
			continue;
		if (err != TSOCK_EAGAIN &&
		    (err != TSOCK_ELOST || tries > TRIES))
			return err;
		if (tsi_now_ms() >= deadline)
			return TSOCK_EAGAIN;
		poll(NULL, 0, AGAIN_MS);
	}
}

/* ---- epochs ---- */

static int err_ended(const struct tsock *t)
{
	return tsi_err(TSOCK_EENDED,
		       "the stream '%s' has ended after %llu "
		       "epochs",
		       t->address.name, (unsigned long long)t->stream.epochs);
}

static void begin_epoch(struct tsock *t, uint64_t start, uint64_t end)
{
	t->end = end;
	t->epoch = start / t->stream.epoch_len;
	t->phase = TSI_PHASE_READING;
}

/* How many samples the next batch has; 0 at the end. */
static uint64_t next_count(const struct tsock *t)
{
	const struct tsi_reader *r = t->reader;
	uint64_t end = r->end < t->end ? r->end : t->end;
	uint64_t pos = tsi_reader_pos(r), b = t->opts.batch_size;

	if (pos >= end)
		return 0;
	if (end - pos >= b)
		return b;
	return t->opts.flags & TSOCK_DROP_LAST ? 0 : end - pos;
}

static int end_epoch(struct tsock *t)
{
	struct tsi_reader *r = t->reader;

	if (r->end < t->end) {
		detach(t);
		return err_ended(t);
	}
	if (tsi_reader_pos(r) < t->end)
		tsi_reader_skip(r, t->end);
	if (t->leaves) {
		detach(t);
	} else if (tsi_reader_make_all_private(r)) {
		tsi_log(TSOCK_LOG_WARN, "%s; the stream waits for held batches",
			tsock_errmsg());
	}
	t->phase = TSI_PHASE_DONE;
	return TSOCK_EEPOCH;
}

/* We are a reader still: the next epoch starts where the last one ended. */
static int go_on(struct tsock *t)
{
	struct tsi_reader *r = t->reader;
	uint64_t n = t->stream.epoch_len;
	int err;

	if (r->end - t->end < n || t->end > UINT64_MAX / 2) {
		detach(t);
		return err_ended(t);
	}
	err = tsi_consumer_trouble(t, tsi_now_ms());
	/* What was published before can still be read.  Pairs with the
	 * producer's release. */
	if (err && atomic_load_explicit(&r->shared->head,
					memory_order_acquire) <= t->end)
		return detach_for(t, err);
	begin_epoch(t, t->end, t->end + n);
	return 0;
}

int tsock_begin_timed(tsock *t, int timeout_ms)
{
	int64_t deadline =
		timeout_ms < 0 ? INT64_MAX : tsi_now_ms() + timeout_ms;
	uint64_t start, end;
	int err;

	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_begin: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	tsi_consumer_sweep(t);
	/* All was taken, and only EEPOCH not yet heard. */
	if (t->phase == TSI_PHASE_READING && !next_count(t))
		end_epoch(t);
	if (t->phase == TSI_PHASE_DONE && t->reader)
		return go_on(t);
	if (t->reader)
		detach(t);
	if (t->stream.epochs &&
	    t->end >= t->stream.epochs * t->stream.epoch_len)
		return err_ended(t);
	err = enter(t, deadline, &start, &end);
	if (err)
		return err;
	begin_epoch(t, start, end);
	return 0;
}

int tsock_begin(tsock *t)
{
	return tsock_begin_timed(t, -1);
}

/* ---- reading ---- */

/* Other readers need not wait for one whose GPU, or context, is lost. */
static int leave_if_lost(struct tsock *t, int err)
{
	struct tsi_err_saved saved;

	if (t->reader->backend->device < 0 || err == TSOCK_EAGAIN ||
	    err == TSOCK_EHELD)
		return err;
	saved = tsi_err_save(err);
	if (tsi_reader_trouble(t->reader))
		detach(t);
	return tsi_err_restore(&saved);
}

/* Samples are there, and may be looked at. */
static bool at_hand(const struct tsi_reader *r, uint64_t need)
{
	/* Pairs with the producer's release: the samples below are there. */
	if (atomic_load_explicit(&r->shared->head, memory_order_acquire) < need)
		return false;
	/* A reader that was given up may see its slots reused. */
	return atomic_load_explicit(&r->shared->row[r->row].state,
				    memory_order_acquire) == TSI_ROW_READER;
}

static int err_given_up(struct tsock *t)
{
	uint32_t state = atomic_load(&t->reader->shared->state);

	/* Then nothing is written any more. */
	if (state != TSI_RING_OPEN)
		return 0;
	return tsi_consumer_trouble(t, tsi_now_ms());
}

static int await(struct tsock *t, uint64_t need, int timeout_ms)
{
	int err = tsi_consumer_wait(t, need, timeout_ms);

	if (!err && !at_hand(t->reader, need))
		err = err_given_up(t);
	return err;
}

static int next(struct tsock *t, int timeout_ms, struct tsock_batch **out)
{
	uint64_t n, need;
	int err;

	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	if (t->phase == TSI_PHASE_DONE)
		return TSOCK_EEPOCH;
	if (t->phase == TSI_PHASE_IDLE)
		return tsi_err(TSOCK_EARG, "no epoch was begun: call "
					   "tsock_begin() first");
	n = next_count(t);
	if (!n)
		return end_epoch(t);
	need = tsi_reader_pos(t->reader) + n;
	err = tsi_await_release(t, n, need, &timeout_ms);
	if (!err && !at_hand(t->reader, need))
		err = await(t, need, timeout_ms);
	if (!err)
		err = tsi_reader_acquire(t->reader, n, out);
	if (err)
		return leave_if_lost(t, err);
	t->samples += n;
	/* A counter, for people. */
	atomic_store_explicit(&t->reader->tail->samples, t->samples,
			      memory_order_relaxed);
	return 0;
}

int tsock_next(tsock *t, int timeout_ms, tsock_batch **out)
{
	int err;

	if (!t || !out)
		err = tsi_err(TSOCK_EARG, "tsock_next: %s is NULL",
			      t ? "out" : "t");
	else
		err = next(t, timeout_ms, out);
	if (err && out)
		*out = NULL;
	return err;
}

int tsock_transport(tsock *t)
{
	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_transport: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	return (int)t->transport;
}
