/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - jobs of several ranks, which begin together: a table, and no more.
 */
#include "serve/jobs_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "wire/peer.h"

#define STALE_MS 10000 /* a rank that has not asked for so long is gone */
#define TWIN_MS 2000   /* another process may have its rank before that */
#define GRACE_MS 60000 /* for all ranks to ask after a restart */

void tsi_jobs_init(struct tsi_jobs *t, uint64_t epoch_len)
{
	memset(t, 0, sizeof(*t));
	t->epoch_len = epoch_len;
}

static struct tsi_job *find_job(const struct tsi_jobs *t, const uint8_t *id)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		const struct tsi_job *k = &t->job[i];

		if (k->used && !memcmp(k->id, id, TSOCK_JOB))
			return (struct tsi_job *)(uintptr_t)k;
	}
	return NULL;
}

void tsi_jobs_restart(struct tsi_jobs *t, int64_t now_ms)
{
	t->until_ms = now_ms + GRACE_MS;
}

void tsi_jobs_forget(struct tsi_jobs *t, struct tsi_job *k)
{
	t->waiting -= is_waiting(k);
	k->used = false;
	free(k->rank);
	k->rank = NULL;
}

void tsi_jobs_fini(struct tsi_jobs *t)
{
	for (unsigned i = 0; i < TSI_JOBS; i++)
		if (t->job[i].used)
			tsi_jobs_forget(t, &t->job[i]);
}

/* A place in the table; if need be that of a job which nobody waits for. */
static struct tsi_job *make_place(struct tsi_jobs *t)
{
	struct tsi_job *begun = NULL;

	for (unsigned i = 0; i < TSI_JOBS; i++) {
		if (!t->job[i].used)
			return &t->job[i];
		if (!is_waiting(&t->job[i]))
			begun = &t->job[i];
	}
	if (begun)
		tsi_jobs_forget(t, begun);
	return begun;
}

static int add_job(struct tsi_jobs *t, const struct tsi_msg_join *j,
		   struct tsi_job **out)
{
	struct tsi_job *k = make_place(t);
	struct tsi_job_rank *rank;

	if (!k)
		return tsi_err(TSOCK_EREFUSED,
			       "ranks of %d jobs wait to join already",
			       TSI_JOBS);
	rank = calloc(j->world, sizeof(*rank));
	if (!rank)
		return tsi_err(TSOCK_ENOMEM, "no memory for a job of %u ranks",
			       j->world);
	memset(k, 0, sizeof(*k));
	k->used = true;
	t->waiting++;
	memcpy(k->id, j->job, TSOCK_JOB);
	k->world = j->world;
	k->rank = rank;
	for (unsigned r = 0; r < k->world; r++)
		k->rank[r].reader = -1;
	*out = k;
	return 0;
}

static int check_rank(const struct tsi_msg_join *j)
{
	if (j->rank >= j->world)
		return tsi_err(TSOCK_EREFUSED,
			       "rank %u of %u: ranks go from 0 to world - 1",
			       j->rank, j->world);
	if (j->world > TSI_JOB_READERS)
		return tsi_err(TSOCK_EREFUSED,
			       "%u ranks: a producer has at most %d readers; "
			       "divide the ranks among several, each of which "
			       "makes their part (--shard A-B/%u)",
			       j->world, TSI_JOB_READERS, j->world);
	return 0;
}

static int check_twin(const struct tsi_job *k, const struct tsi_msg_join *j,
		      int64_t now_ms)
{
	const struct tsi_job_rank *r = &k->rank[j->rank];

	if (k->world != j->world)
		return tsi_err(TSOCK_EREFUSED,
			       "rank %u says that its job has %u ranks, others "
			       "say %u",
			       j->rank, j->world, k->world);
	if (!r->asked_ms || now_ms - r->asked_ms > TWIN_MS ||
	    r->pid == j->pid || !memcmp(r->nonce, j->nonce, TSI_NONCE) ||
	    tsi_peer_ended(r->pid, r->born))
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "two processes, %u and %u, say that they are rank %u of "
		       "the same job",
		       r->pid, j->pid, j->rank);
}

static const struct tsi_job_returner *
find_returner(const struct tsi_jobs *t, const struct tsi_job *k, uint32_t rank)
{
	for (unsigned i = 0; i < TSI_JOB_READERS; i++)
		if (t->returner[i].used && t->returner[i].rank == rank &&
		    !memcmp(t->returner[i].id, k->id, TSOCK_JOB))
			return &t->returner[i];
	return NULL;
}

/* Have all ranks asked, or joined, but for this one? */
static bool all_but(const struct tsi_jobs *t, const struct tsi_job *k,
		    uint32_t rank, int64_t now_ms)
{
	for (unsigned i = 0; i < k->world; i++)
		if (i != rank && !k->rank[i].joined &&
		    (!k->rank[i].asked_ms ||
		     now_ms - k->rank[i].asked_ms > STALE_MS) &&
		    !find_returner(t, k, i))
			return false;
	return true;
}

/* Ranks go on in an epoch that this one has not begun: it came too late, and the
 * producer that knew that has died. */
static int check_begun(const struct tsi_jobs *t, const struct tsi_msg_join *j)
{
	if (j->returns != TSI_RETURNS_UNBEGUN)
		return 0;
	for (unsigned i = 0; i < TSI_JOB_READERS; i++) {
		const struct tsi_job_returner *r = &t->returner[i];

		if (r->used && !memcmp(r->id, j->job, TSOCK_JOB) &&
		    r->epoch_end > j->after)
			return tsi_err(
				TSOCK_EREFUSED,
				"rank %u of %u came too late: other ranks of "
				"its job have begun an epoch without it, "
				"before the producer was started again; start "
				"all of them again",
				j->rank, j->world);
	}
	return 0;
}

/*
 * What is left of a job whose ranks have all gone, one of them before others
 * had begun: another run of it begins with other processes, or anew.
 */
static bool is_another_run(const struct tsi_job *k,
			   const struct tsi_msg_join *j)
{
	const struct tsi_job_rank *r = &k->rank[j->rank];

	if (!k->let_go || has_reader(k))
		return false;
	return r->joined ? j->after <= k->start : r->pid && r->pid != j->pid;
}

/* Does another rank that asks have to begin an epoch that this one has had? */
static bool others_are_behind(const struct tsi_job *k,
			      const struct tsi_msg_join *j)
{
	for (unsigned i = 0; i < k->world && !k->started; i++) {
		const struct tsi_job_rank *r = &k->rank[i];

		if (i == j->rank || !r->asked_ms || r->joined || r->resumes)
			continue;
		if (!j->epoch_end && r->after < j->after)
			return true;
	}
	return false;
}

/* Where ranks that are ahead of this one have begun; TSI_NEVER: none is. */
static uint64_t begun_by_others(const struct tsi_jobs *t,
				const struct tsi_job *k,
				const struct tsi_msg_join *j)
{
	uint64_t least = TSI_NEVER;

	if (j->epoch_end || j->own & TSI_REWOUND)
		return TSI_NEVER;
	for (unsigned i = 0; i < k->world; i++) {
		const struct tsi_job_rank *r = &k->rank[i];
		uint64_t start =
			r->rewound ? r->after : r->after - t->epoch_len;

		if (r->known && !r->resumes && r->after > j->after &&
		    start >= j->after && start < least)
			least = start;
	}
	return least;
}

/* A rank goes elsewhere: the others have to, too. */
static void begin_anew(struct tsi_jobs *t, struct tsi_job *k)
{
	t->waiting += !is_waiting(k);
	k->settled = k->let_go = k->started = k->complete = k->ready = false;
	k->since_ms = 0;
	for (unsigned i = 0; i < k->world; i++) {
		k->rank[i].joined = k->rank[i].had = false;
		k->rank[i].asked_ms = 0;
	}
}

/* until_ms: before that other ranks may know the producer before. */
static void note_question(struct tsi_job *k, const struct tsi_msg_join *j,
			  int64_t now_ms, int64_t until_ms)
{
	struct tsi_job_rank *r = &k->rank[j->rank];

	r->asked_ms = k->asked_ms = now_ms;
	if (!k->since_ms)
		k->since_ms = now_ms;
	if (memcmp(r->nonce, j->nonce, TSI_NONCE))
		r->born = tsi_peer_born(j->pid);
	r->pid = j->pid;
	memcpy(r->nonce, j->nonce, TSI_NONCE);
	r->after = j->after;
	r->resumes = j->epoch_end;
	r->known = r->asks = true;
	r->rewound = j->own & TSI_REWOUND;
	k->leaves = j->between == TSOCK_BETWEEN_LEAVE;
	k->restarts |= j->returns != TSI_RETURNS_NOT || j->epoch_end ||
		       now_ms < until_ms;
}

static void settle(struct tsi_jobs *t, struct tsi_job *k)
{
	if (k->settled || count_joined(k) < k->world)
		return;
	t->waiting -= is_waiting(k);
	k->settled = true;
	k->let_go = false;
	if (!has_reader(k))
		tsi_jobs_forget(t, k);
}

/* A rank asks while others have still to begin its job's epoch. */
static bool has_to_wait(struct tsi_jobs *t, struct tsi_job *k,
			const struct tsi_msg_join *j, int64_t now_ms)
{
	struct tsi_job_rank *r = &k->rank[j->rank];

	/* Elsewhere than where it has begun: later, with the others. */
	if (j->epoch_end && (!r->joined || j->position != k->start))
		return r->joined;
	if (j->epoch_end || j->after <= k->start) {
		/* It has looked at it, and begins it again. */
		if (r->joined)
			r->reader = -1;
		r->joined = r->had = false;
		return false;
	}
	if (!r->waits_ms)
		r->waits_ms = now_ms;
	if (!r->joined) {
		/* It has had it, with the producer before. */
		r->joined = r->had = true;
		settle(t, k);
	}
	return true;
}

static int check_missed(const struct tsi_job *k, const struct tsi_msg_join *j)
{
	if (!k->missed || !k->rank[j->rank].absent)
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "rank %u of %u came too late: other ranks of its job "
		       "have waited for it, and gone on without it; start all "
		       "of them again",
		       j->rank, j->world);
}

int tsi_jobs_ask(struct tsi_jobs *t, const struct tsi_msg_join *j,
		 int64_t now_ms)
{
	struct tsi_job *k = find_job(t, j->job);
	int err = check_rank(j);

	if (!err)
		err = check_begun(t, j);
	if (err)
		return err;
	if (k && k->world == j->world && is_another_run(k, j)) {
		tsi_jobs_forget(t, k);
		k = NULL;
	}
	if (!k)
		err = add_job(t, j, &k);
	if (!err)
		err = check_twin(k, j, now_ms);
	if (!err)
		err = check_missed(k, j);
	if (err)
		return err;
	if (j->epoch_end && k->settled)
		begin_anew(t, k);
	note_question(k, j, now_ms, t->until_ms);
	if (is_open(k) && has_to_wait(t, k, j, now_ms))
		return TSOCK_EAGAIN;
	if (!k->complete && all_but(t, k, j->rank, now_ms)) {
		k->complete = true;
		k->expires_ms = now_ms + JOIN_MS;
	}
	k->ready = k->started || k->complete || !k->restarts ||
		   now_ms - k->since_ms > GRACE_MS;
	return k->ready && !others_are_behind(k, j) ? 0 : TSOCK_EAGAIN;
}

void tsi_jobs_withdraw(struct tsi_jobs *t, const uint8_t *nonce)
{
	for (unsigned i = 0; i < TSI_JOBS; i++)
		for (unsigned r = 0; t->job[i].used && r < t->job[i].world; r++)
			if (!memcmp(t->job[i].rank[r].nonce, nonce, TSI_NONCE))
				t->job[i].rank[r].asked_ms = 0;
}

int tsi_jobs_begin(const struct tsi_jobs *t, const struct tsi_msg_join *j,
		   bool *started, uint64_t *start)
{
	const struct tsi_job *k = find_job(t, j->job);
	const struct tsi_job_rank *r;
	uint64_t others;

	if (!k || !(k->ready || k->started))
		return tsi_err(TSOCK_EAGAIN,
			       "the job's ranks came too late: all ask again");
	if (others_are_behind(k, j))
		return tsi_err(TSOCK_EAGAIN, "other ranks are behind this one");
	r = &k->rank[j->rank];
	others = begun_by_others(t, k, j);
	*started = true;
	*start = k->start;
	if (others != TSI_NEVER && (!k->started || others < k->start)) {
		*start = others;
		return 0;
	}
	/* It has begun that, and wants it again or the next one. */
	if (!is_open(k) && r->joined && !(r->unbegun && j->after <= k->start))
		*started = false;
	*started = *started && k->started;
	return 0;
}

/* Ranks that ask for a later epoch have had the one that begins now. */
static void note_those_ahead(struct tsi_job *k)
{
	for (unsigned i = 0; i < k->world; i++) {
		struct tsi_job_rank *r = &k->rank[i];

		if (r->joined || !r->asked_ms || r->resumes ||
		    r->after <= k->start)
			continue;
		r->joined = r->had = true;
	}
}

/* Another epoch: ranks that read on have begun it, or will.  A rank whose JOIN
 * came before its former reader's LEAVE doesn't read on. */
static void begin_round(struct tsi_jobs *t, struct tsi_job *k, uint64_t start)
{
	t->waiting += !is_waiting(k);
	k->settled = k->let_go = k->returned = false;
	/* When all have asked they have ten seconds to begin that one. */
	if (k->started)
		k->complete = false;
	k->started = true;
	k->start = start;
	k->left_ms = 0;
	for (unsigned i = 0; i < k->world; i++) {
		struct tsi_job_rank *r = &k->rank[i];
		const struct tsi_job_returner *was = find_returner(t, k, i);

		k->missed |= r->absent;
		r->joined = r->absent ||
			    (r->reader >= 0 && !r->asks && !k->leaves) ||
			    (was && !was->leaves);
		r->had = r->unbegun = false;
		r->waits_ms = 0;
	}
}

void tsi_jobs_joined(struct tsi_jobs *t, const struct tsi_msg_join *j,
		     unsigned reader, uint64_t start)
{
	struct tsi_job *k = find_job(t, j->job);
	struct tsi_job_rank *r;

	if (!k)
		return;
	r = &k->rank[j->rank];
	if (!k->started || start > k->start)
		begin_round(t, k, start);
	r->joined = start == k->start;
	r->had = r->unbegun = r->absent = r->asks = false;
	r->waits_ms = 0;
	r->reader = (int)reader;
	if (r->pid != j->pid)
		r->born = tsi_peer_born(j->pid);
	r->pid = j->pid;
	r->block = (uint64_t)j->world * j->batch_size;
	note_those_ahead(k);
}

void tsi_jobs_settle(struct tsi_jobs *t, unsigned reader)
{
	struct tsi_job_rank *r;
	struct tsi_job *k = find_reader(t, reader, &r);

	if (k)
		settle(t, k);
}

void tsi_jobs_undo(struct tsi_jobs *t, unsigned reader)
{
	struct tsi_job_rank *r;
	struct tsi_job *k = find_reader(t, reader, &r);

	if (!k)
		return;
	r->joined = false;
	r->reader = -1;
	k->started = k->returned || count_joined(k) > 0;
}

void tsi_jobs_return(struct tsi_jobs *t, const struct tsi_msg_join *j,
		     unsigned reader, uint64_t start, int64_t now_ms)
{
	struct tsi_job *k = find_job(t, j->job);

	if (check_rank(j))
		return;
	if (!k && add_job(t, j, &k))
		return;
	k->asked_ms = now_ms;
	if (!k->complete && all_but(t, k, j->rank, now_ms)) {
		k->complete = true;
		k->expires_ms = now_ms + JOIN_MS;
	}
	k->leaves = j->between == TSOCK_BETWEEN_LEAVE;
	tsi_jobs_joined(t, j, reader, k->started ? k->start : start);
	k->returned = true;
}

void tsi_jobs_returned(struct tsi_jobs *t, const struct tsi_msg_join *j,
		       unsigned reader)
{
	struct tsi_job_returner *r = &t->returner[reader];

	*r = (struct tsi_job_returner){
		.used = true,
		.leaves = j->between == TSOCK_BETWEEN_LEAVE,
		.rank = j->rank,
		.epoch_end = j->epoch_end,
	};
	memcpy(r->id, j->job, TSOCK_JOB);
}

bool tsi_jobs_had(const struct tsi_jobs *t, const struct tsi_msg_join *j)
{
	const struct tsi_job *k = find_job(t, j->job);

	return k && (was_had(k) || begun_by_others(t, k, j) != TSI_NEVER);
}

void tsi_jobs_left(struct tsi_jobs *t, unsigned reader, uint64_t tail)
{
	struct tsi_job_rank *r;
	struct tsi_job *k = find_reader(t, reader, &r);

	t->returner[reader].used = false;
	if (!k)
		return;
	r->reader = -1;
	r->unbegun = r->joined && tail <= k->start;
	r->had = r->joined && tail > k->start &&
		 tail + r->block > k->start + t->epoch_len;
	if (!has_reader(k) && (k->settled || (k->let_go && !was_had(k))))
		tsi_jobs_forget(t, k);
}
