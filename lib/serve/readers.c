/* SPDX-License-Identifier: MIT */
/*
 * readers.c - the readers of a stream, as they join, leave, or are too slow.
 */
#include "serve/readers_record.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "wire/peer.h"

void tsi_readers_init(struct tsi_readers *r, struct tsi_sync *sync,
		      struct tsi_gate *gate, struct tsi_membership *m,
		      struct tsi_offers *offers, uint64_t epoch_len)
{
	r->sync = sync;
	r->gate = gate;
	r->membership = m;
	r->offers = offers;
	tsi_jobs_init(&r->jobs, epoch_len);
	for (unsigned i = 0; i < TSI_MAX_MEMBERS; i++)
		tsi_conn_init(&r->conn[i]);
	tsi_record_init(&r->record);
}

void tsi_readers_fini(struct tsi_readers *r)
{
	tsi_jobs_fini(&r->jobs);
}

/* ---- joining and leaving ---- */

/* The rules of a join, as membership knows them. */
static struct tsi_join rules_of(const struct tsi_msg_join *join, unsigned view)
{
	struct tsi_join j = {
		.view = view,
		.join = join->join,
		.leaves = join->between == TSOCK_BETWEEN_LEAVE,
		.together = join->world > 1,
		.after = join->after,
		.from = join->from,
		.read = join->read,
		.read_here = join->read_of == TSI_READ_OF_THIS,
		.continues = join->read_of == TSI_READ_OF_CONTINUED,
		.moves = join->returns,
		.returns = join->returns && (join->after || join->epoch_end)
	};

	if (join->detached) {
		j.detached = j.moves = true;
		j.after = join->position;
		j.end = join->epoch_end;
	} else if (join->epoch_end) {
		j.exact = j.moves = true;
		j.after = join->position;
		j.end = join->epoch_end;
	}
	return j;
}

/* The same, with what is known of the joiner's job. */
static struct tsi_join rules_among(const struct tsi_readers *r,
				   const struct tsi_msg_join *join,
				   unsigned view)
{
	struct tsi_join j = rules_of(join, view);

	if (!j.from)
		return j;
	for (unsigned i = 0; tsi_membership_next(r->membership, &i); i++)
		j.ours += tsi_conn_is_of_job(&r->conn[i], join);
	j.others = tsi_jobs_kept_for_others(&r->jobs, join);
	return j;
}

/* Ranks begin together; after a restart each returns by itself. */
static bool begins_with_others(const struct tsi_msg_join *join)
{
	static const uint8_t nobody[TSI_NONCE];

	return join->world > 1 &&
	       (!join->epoch_end || !memcmp(join->was, nobody, TSI_NONCE));
}

int tsi_readers_forecast(struct tsi_readers *r, const struct tsi_msg_join *join,
			 unsigned view, uint64_t *start)
{
	struct tsi_join rules = rules_among(r, join, view);
	int err;

	if (tsi_returners_collect(&r->returners))
		return TSOCK_EAGAIN;
	err = tsi_membership_forecast(r->membership, &rules, start);
	if (err || !begins_with_others(join))
		return err;
	if (tsi_readers_returning(r))
		tsi_jobs_restart(&r->jobs, tsi_now_ms());
	return tsi_jobs_ask(&r->jobs, join, tsi_now_ms());
}

/* Where the ranks before it began. */
static int join_where_others_did(struct tsi_readers *r,
				 const struct tsi_msg_join *join,
				 const struct tsi_join *exact,
				 struct tsi_joined *out)
{
	int err = tsi_membership_join(r->membership, exact, tsi_now_ms(), out);
	char why[512];

	if (err != TSOCK_EREFUSED)
		return err;
	tsi_err_copy(why, sizeof(why));
	return tsi_err(err,
		       "rank %u can't begin at sample %llu, where other ranks "
		       "of its job have begun; start all of them again: %s",
		       join->rank, (unsigned long long)exact->after, why);
}

/* A rank begins where those before it began, as long as that is held. */
static int join_rank(struct tsi_readers *r, const struct tsi_msg_join *join,
		     struct tsi_join *rules, struct tsi_joined *out)
{
	struct tsi_join exact = *rules;
	uint64_t least = max64(rules->after, rules->from);
	bool started;
	int err = tsi_jobs_begin(&r->jobs, join, &started, &exact.after);

	if (err)
		return err;
	if (rules->exact && started && exact.after != rules->after)
		return tsi_err(TSOCK_EREFUSED,
			       "rank %u goes on at sample %llu, and the other "
			       "ranks of its job at %llu",
			       join->rank, (unsigned long long)rules->after,
			       (unsigned long long)exact.after);
	exact.exact = true;
	if (started && exact.after >= least)
		err = join_where_others_did(r, join, &exact, out);
	/* A consumer that leaves between epochs may go before others begin. */
	if (!started || exact.after < least ||
	    (err && rules->leaves && !tsi_jobs_had(&r->jobs, join)))
		err = tsi_membership_join(r->membership, rules, tsi_now_ms(),
					  out);
	if (!err)
		tsi_jobs_joined(&r->jobs, join, out->id, out->start);
	return err;
}

/* Where its job began, if other ranks have still to begin there. */
static bool returns_alone(struct tsi_readers *r,
			  const struct tsi_msg_join *join,
			  struct tsi_join *rules)
{
	const struct tsi_reader_row *was =
		tsi_returners_find(&r->returners, join->was);

	if (!was || !was->together || !join->epoch_end)
		return false;
	if (was->mark < rules->after)
		rules->after = was->mark;
	return true;
}

static int rejoin_job(struct tsi_readers *r, const struct tsi_msg_join *join,
		      const struct tsi_join *rules, struct tsi_joined *out)
{
	int err = tsi_membership_join(r->membership, rules, tsi_now_ms(), out);

	if (!err)
		tsi_jobs_return(&r->jobs, join, out->id, out->start,
				tsi_now_ms());
	return err;
}

static int join_membership(struct tsi_readers *r, const struct tsi_offer *o,
			   struct tsi_joined *out)
{
	struct tsi_join rules = rules_among(r, &o->join, o->view);
	int err;

	if (tsi_returners_collect(&r->returners))
		return tsi_err(TSOCK_EAGAIN, "readers are returning");
	if (returns_alone(r, &o->join, &rules))
		return rejoin_job(r, &o->join, &rules, out);
	if (begins_with_others(&o->join))
		return join_rank(r, &o->join, &rules, out);
	err = tsi_membership_join(r->membership, &rules, tsi_now_ms(), out);
	if (!err && o->join.world > 1)
		tsi_jobs_returned(&r->jobs, &o->join, out->id);
	return err;
}

/* What is kept for ranks that have still to begin. */
static void mind_kept(struct tsi_readers *r)
{
	uint64_t from = tsi_jobs_kept(&r->jobs);

	if (tsi_membership_kept(r->membership) == from)
		return;
	tsi_membership_keep(r->membership, from);
	tsi_gate_state_held(r->gate);
	tsi_gate_changed(r->gate);
}

int tsi_readers_join(struct tsi_readers *r, const struct tsi_offer *o,
		     const struct tsi_peer *peer, struct tsi_reply *a)
{
	struct tsi_joined joined;
	struct tsi_conn c;
	int err = tsi_conn_make(&c, peer, &o->join);

	if (err)
		return err;
	tsi_readers_refresh(r);
	err = join_membership(r, o, &joined);
	if (err) {
		tsi_conn_give_up(&c);
		return err;
	}
	tsi_gate_views_began(r->gate, joined.opened);
	/* At once: a GPU's ring may run ahead of its reader, and the base ring
	 * past this start before the reader has its reply. */
	mind_kept(r);
	/* Where the stream goes back, no reader may see a head of before. */
	tsi_gate_changed(r->gate);
	a->reader = tsi_conn_attach(&c, tsi_gate_ring(r->gate, o->view),
				    joined.id, joined.start);
	r->conn[joined.id] = c;
	tsi_readers_record(r, &o->join, &c, joined.start,
			   tsi_jobs_wait(&r->jobs, joined.id));
	a->keep_sock = tsi_conn_keeps_sock(&c);
	a->row = joined.id;
	a->start = joined.start;
	a->epoch_end = joined.epoch_end;
	return 0;
}

/* A reader is no more: its row, its connection and its membership end. */
static void drop_reader(struct tsi_readers *r, unsigned id, const char *why)
{
	tsi_conn_detach(&r->conn[id], id, why);
	if (tsi_membership_is_detached(r->membership, id)) {
		tsi_membership_let_go(r->membership, id);
		tsi_conn_close(&r->conn[id]);
		return;
	}
	tsi_jobs_left(&r->jobs, id, tsi_conn_tail(&r->conn[id]));
	mind_kept(r);
	tsi_membership_leave(r->membership, id);
	tsi_record_drop(&r->record, tsi_conn_nonce(&r->conn[id]));
	tsi_conn_close(&r->conn[id]);
	tsi_gate_changed(r->gate);
}

void tsi_readers_confirm(struct tsi_readers *r, const struct tsi_offer *o,
			 unsigned id)
{
	tsi_readers_settle(r, &o->join, id);
	mind_kept(r);
}

void tsi_readers_undo(struct tsi_readers *r, unsigned id, const char *why)
{
	tsi_jobs_undo(&r->jobs, id);
	mind_kept(r);
	drop_reader(r, id, why);
}

unsigned tsi_readers_fds(const struct tsi_readers *r, unsigned id, int event,
			 int *fds)
{
	return tsi_conn_fds(&r->conn[id], event, fds);
}

int tsi_readers_find(const struct tsi_readers *r, const uint8_t *nonce)
{
	for (unsigned i = 0; tsi_membership_next_row(r->membership, &i); i++)
		if (tsi_conn_is(&r->conn[i], nonce))
			return (int)i;
	return -1;
}

bool tsi_readers_has(const struct tsi_readers *r, const uint8_t *nonce)
{
	return tsi_readers_find(r, nonce) >= 0;
}

bool tsi_readers_stands(const struct tsi_readers *r, const struct tsi_offer *o)
{
	return tsi_readers_has(r, o->join.nonce);
}

/* Also while its job waits for other ranks, whose samples are kept: nobody will
 * read this tail later. */
static void count_last_tail(struct tsi_readers *r, unsigned id, uint64_t tail)
{
	if (!tsi_membership_is_detached(r->membership, id))
		(void)tsi_membership_tail(r->membership, id, tail,
					  tsi_now_ms());
}

void tsi_readers_leave(struct tsi_readers *r, const uint8_t *nonce)
{
	int id;

	tsi_jobs_withdraw(&r->jobs, nonce);
	/* It may have been a reader of the producer before. */
	tsi_readers_withdraw(r, nonce);
	tsi_readers_refresh(r);
	id = tsi_readers_find(r, nonce);
	if (id < 0)
		return;
	count_last_tail(r, (unsigned)id, tsi_conn_tail(&r->conn[id]));
	drop_reader(r, (unsigned)id, "leaves");
}

void tsi_readers_changed(struct tsi_readers *r)
{
	tsi_gate_changed(r->gate);
}

void tsi_readers_wake_workers(struct tsi_readers *r)
{
	tsi_gate_wake_workers(r->gate);
}

void tsi_readers_drop_all(struct tsi_readers *r, const char *why)
{
	for (unsigned i = 0; tsi_membership_next_row(r->membership, &i); i++)
		drop_reader(r, i, why);
}

void tsi_readers_drop_view(struct tsi_readers *r, unsigned view)
{
	tsi_offers_withdraw_view(r->offers, view);
	for (unsigned i = 0; tsi_membership_next_row(r->membership, &i); i++)
		if (tsi_membership_has(r->membership, i, view))
			drop_reader(r, i, "lost its view");
}

void tsi_readers_add_ring(struct tsi_readers *r, unsigned view,
			  struct tsi_ring *ring)
{
	tsi_gate_add_ring(r->gate, view, ring);
}

void tsi_readers_remove_ring(struct tsi_readers *r, unsigned view)
{
	tsi_gate_remove_ring(r->gate, view);
}

bool tsi_readers_need(const struct tsi_readers *r, unsigned view)
{
	return tsi_membership_active(r->membership, view) ||
	       tsi_membership_has_detached(r->membership, view) ||
	       tsi_offers_for_view(r->offers, view);
}

/* ---- tails ---- */

void tsi_readers_refresh(struct tsi_readers *r)
{
	int64_t now = tsi_now_ms();

	for (unsigned i = 0; tsi_membership_next(r->membership, &i); i++)
		if (!tsi_jobs_wait(&r->jobs, i) &&
		    tsi_membership_tail(r->membership, i,
					tsi_conn_tail(&r->conn[i]), now))
			drop_reader(r, i, tsock_errmsg());
}

/* Say which tails the view's writers wait for, and read all tails. */
static void look_at_tails(struct tsi_readers *r, unsigned view)
{
	tsi_gate_state_wants(r->gate, view);
	/* Pairs with the consumer's fence between its tail and its look at
	 * gate_want: either it sees what we want, or we see its tail. */
	atomic_thread_fence(memory_order_seq_cst);
	tsi_readers_refresh(r);
}

void tsi_readers_wait(struct tsi_readers *r, unsigned view, int64_t until_ns)
{
	look_at_tails(r, view);
	tsi_gate_sleep(r->gate, view, until_ns);
}

void tsi_readers_mind_sleepers(struct tsi_readers *r)
{
	if (!tsi_sync_sleepers(r->sync))
		return;
	if (!tsi_membership_may_claim(r->membership, 0))
		look_at_tails(r, 0);
	if (tsi_membership_may_claim(r->membership, 0))
		tsi_gate_wake_workers(r->gate);
}

bool tsi_readers_over(struct tsi_readers *r)
{
	if (r->over || !tsi_membership_ended(r->membership))
		return r->over;
	/* A consumer that has an offer was told that it can join. */
	if (tsi_offers_count(r->offers))
		return false;
	r->over = true;
	return true;
}

/* ---- the control thread ---- */

/* Those that the first sample waits for may never come. */
static void start_at_last(struct tsi_readers *r, int64_t now_ms)
{
	if (!r->min_wait_ms || !tsi_membership_lacks_members(r->membership)) {
		r->lacks_since_ms = now_ms;
		return;
	}
	if (now_ms - r->lacks_since_ms >= r->min_wait_ms)
		tsi_membership_start(r->membership);
}

void tsi_readers_set_min_wait(struct tsi_readers *r, uint32_t min_wait_ms)
{
	r->min_wait_ms = min_wait_ms;
}

void tsi_readers_expire(struct tsi_readers *r, int64_t now_ms)
{
	start_at_last(r, now_ms);
	tsi_offers_expire(r->offers, now_ms);
	tsi_jobs_expire(&r->jobs, now_ms);
	mind_kept(r);
	tsi_readers_await(r, now_ms);
	tsi_readers_mark(r, now_ms);
}

unsigned tsi_readers_poll(const struct tsi_readers *r, struct pollfd *fds)
{
	unsigned n = 0;

	for (unsigned i = 0; tsi_membership_next_row(r->membership, &i); i++)
		fds[n++] = tsi_conn_poll(&r->conn[i]);
	return n;
}

/* By its page: LEAVE may still be on its way, or never come. */
static void let_leave(struct tsi_readers *r, unsigned id)
{
	uint8_t nonce[TSI_NONCE];

	memcpy(nonce, tsi_conn_nonce(&r->conn[id]), TSI_NONCE);
	tsi_readers_leave(r, nonce);
}

/* What it has taken is nowhere any more: a batch may have come to its process's
 * end without being given back, as on a GPU. */
static void let_die(struct tsi_readers *r, unsigned id)
{
	uint64_t tail = tsi_conn_tail(&r->conn[id]);
	uint64_t taken = tsi_conn_taken(&r->conn[id]);

	if (taken > tail)
		tail = taken;
	count_last_tail(r, id, tail);
	drop_reader(r, id, tsi_conn_why_gone(&r->conn[id]));
}

void tsi_readers_reap(struct tsi_readers *r)
{
	for (unsigned i = 0; tsi_membership_next_row(r->membership, &i); i++) {
		if (tsi_conn_left(&r->conn[i]))
			let_leave(r, i);
		else if (tsi_conn_gone(&r->conn[i]))
			let_die(r, i);
	}
}

/* A process may have several connections. */
static bool is_first_of_process(const struct tsi_readers *r, unsigned id)
{
	for (unsigned i = 0; tsi_membership_next(r->membership, &i) && i < id;
	     i++)
		if (tsi_conn_pid(&r->conn[i]) == tsi_conn_pid(&r->conn[id]))
			return false;
	return true;
}

unsigned tsi_readers_names(const struct tsi_readers *r, char *buf, size_t size)
{
	unsigned n = 0, told = 0;
	char name[TSI_CONN_WHO];
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned i = 0; tsi_membership_next(r->membership, &i); i++) {
		if (!is_first_of_process(r, i))
			continue;
		n++;
		tsi_conn_who(&r->conn[i], name);
		/* Room is kept to say how many more there are. */
		if (told + 1 < n || len + strlen(name) + 24 > size)
			continue;
		len += (size_t)snprintf(buf + len, size - len, "%s%s",
					told ? ", " : "", name);
		told++;
	}
	if (told < n)
		snprintf(buf + len, size - len, " and %u more", n - told);
	return n;
}

/* ---- for whom readers wait ---- */

const struct tsi_conn *tsi_readers_conn(const struct tsi_readers *r,
					unsigned id)
{
	return &r->conn[id];
}

bool tsi_readers_waits_for_ranks(struct tsi_readers *r, unsigned id)
{
	return tsi_jobs_wait(&r->jobs, id);
}

bool tsi_readers_asks_as_rank(const struct tsi_readers *r, const uint8_t *nonce)
{
	return tsi_jobs_asks(&r->jobs, nonce);
}

bool tsi_readers_missing(struct tsi_readers *r, int id, const uint8_t *nonce,
			 struct tsi_job_missing *out)
{
	return tsi_jobs_missing(&r->jobs, id, nonce, out);
}

bool tsi_readers_returning(const struct tsi_readers *r)
{
	unsigned i = 0;

	return tsi_returners_next(&r->returners, &i);
}

bool tsi_readers_collects(const struct tsi_readers *r)
{
	return tsi_returners_collect(&r->returners);
}

uint32_t tsi_readers_awaited(const struct tsi_readers *r)
{
	unsigned i = 0;
	const struct tsi_reader_row *row =
		tsi_returners_next(&r->returners, &i);

	return row ? row->pid : 0;
}

/* ---- the statistics ---- */

static void stats_row(const struct tsi_readers *r, unsigned id,
		      struct tsock_stats_row *row)
{
	tsi_conn_stats(&r->conn[id], row);
	tsi_membership_stats_row(r->membership, id, row);
}

/* The row whose reader has come furthest. */
static struct tsock_stats_row *furthest(struct tsock_stats *st)
{
	struct tsock_stats_row *far = &st->row[0];

	for (uint32_t i = 1; i < st->nrows; i++)
		if (st->row[i].tail > far->tail)
			far = &st->row[i];
	return far;
}

void tsi_readers_stats(const struct tsi_readers *r, struct tsock_stats *st)
{
	st->detached = r->detached;
	for (unsigned i = 0; tsi_membership_next(r->membership, &i); i++) {
		struct tsock_stats_row row = { .pid = 0 }, *far;

		stats_row(r, i, &row);
		if (st->nrows < TSOCK_STATS_ROWS) {
			st->row[st->nrows++] = row;
			continue;
		}
		/* Without space for all, the readers that are behind count. */
		far = furthest(st);
		if (row.tail < far->tail)
			*far = row;
	}
}
