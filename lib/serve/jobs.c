/* SPDX-License-Identifier: MIT */
/*
 * jobs.c - jobs of several ranks, which begin together: a table, and no more.
 */
#include "serve/jobs.h"

#include <string.h>

#include "base/err.h"
#include "wire/peer.h"

#define STALE_MS 10000 /* a rank that has not asked for so long is gone */
#define TWIN_MS 2000   /* another process may have its rank before that */
#define JOIN_MS 10000  /* for all ranks to join when all have asked */

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

/* A rank asks that has joined already: for an epoch after that one. */
static bool begins_anew(const struct tsi_job *k, const struct tsi_msg_join *j)
{
	return k->complete && k->rank[j->rank].joined;
}

static void forget(struct tsi_jobs *t, struct tsi_job *k)
{
	if (!k->let_go)
		t->waiting--;
	k->used = false;
}

/* A place in the table; if need be that of a job which nobody waits for. */
static struct tsi_job *make_place(struct tsi_jobs *t)
{
	struct tsi_job *begun = NULL;

	for (unsigned i = 0; i < TSI_JOBS; i++) {
		if (!t->job[i].used)
			return &t->job[i];
		if (t->job[i].let_go)
			begun = &t->job[i];
	}
	if (begun)
		forget(t, begun);
	return begun;
}

static struct tsi_job *add_job(struct tsi_jobs *t, const struct tsi_msg_join *j)
{
	struct tsi_job *k = make_place(t);

	if (!k)
		return NULL;
	memset(k, 0, sizeof(*k));
	k->used = true;
	t->waiting++;
	memcpy(k->id, j->job, TSOCK_JOB);
	k->world = j->world;
	for (unsigned r = 0; r < TSOCK_MAX_RANKS; r++)
		k->rank[r].reader = -1;
	return k;
}

static bool has_reader(const struct tsi_job *k)
{
	for (unsigned i = 0; i < k->world; i++)
		if (k->rank[i].reader >= 0)
			return true;
	return false;
}

static int check_rank(const struct tsi_msg_join *j)
{
	if (j->world <= TSOCK_MAX_RANKS && j->rank < j->world)
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "rank %u of %u: ranks go from 0 to world - 1, and world "
		       "is at most %d",
		       j->rank, j->world, TSOCK_MAX_RANKS);
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

/* Have all ranks asked, or joined, but for this one? */
static bool all_but(const struct tsi_job *k, uint32_t rank, int64_t now_ms)
{
	for (unsigned i = 0; i < k->world; i++)
		if (i != rank && !k->rank[i].joined &&
		    (!k->rank[i].asked_ms ||
		     now_ms - k->rank[i].asked_ms > STALE_MS))
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
	return r->joined ? j->after <= k->start : r->pid != j->pid;
}

/* Does another rank that asks have to begin an epoch that this one has had? */
static bool others_are_behind(const struct tsi_job *k,
			      const struct tsi_msg_join *j)
{
	for (unsigned i = 0; i < k->world && !k->started; i++)
		if (i != j->rank && k->rank[i].asked_ms && !k->rank[i].joined &&
		    k->rank[i].after < j->after)
			return true;
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

		if (r->asked_ms && r->after > j->after && start >= j->after &&
		    start < least)
			least = start;
	}
	return least;
}

int tsi_jobs_ask(struct tsi_jobs *t, const struct tsi_msg_join *j,
		 int64_t now_ms)
{
	struct tsi_job *k = find_job(t, j->job);
	struct tsi_job_rank *r;
	int err = check_rank(j);

	if (!err)
		err = check_begun(t, j);
	if (err)
		return err;
	if (k && k->world == j->world && is_another_run(k, j)) {
		forget(t, k);
		k = NULL;
	}
	/* The ranks that have not joined yet do so without this one's help. */
	if (k && begins_anew(k, j))
		return TSOCK_EAGAIN;
	if (!k)
		k = add_job(t, j);
	if (!k)
		return tsi_err(TSOCK_EREFUSED,
			       "ranks of %d jobs wait to join already",
			       TSI_JOBS);
	err = check_twin(k, j, now_ms);
	if (err)
		return err;
	r = &k->rank[j->rank];
	r->asked_ms = k->asked_ms = now_ms;
	if (memcmp(r->nonce, j->nonce, TSI_NONCE))
		r->born = tsi_peer_born(j->pid);
	r->pid = j->pid;
	memcpy(r->nonce, j->nonce, TSI_NONCE);
	r->after = j->after;
	r->rewound = j->own & TSI_REWOUND;
	if (!k->complete && all_but(k, j->rank, now_ms)) {
		k->complete = true;
		k->expires_ms = now_ms + JOIN_MS;
	}
	return k->complete && !others_are_behind(k, j) ? 0 : TSOCK_EAGAIN;
}

bool tsi_jobs_asks(const struct tsi_jobs *t, const uint8_t *nonce)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		const struct tsi_job *k = &t->job[i];

		for (unsigned r = 0; k->used && r < k->world; r++)
			if (k->rank[r].asked_ms && !k->rank[r].joined &&
			    !memcmp(k->rank[r].nonce, nonce, TSI_NONCE))
				return true;
	}
	return false;
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

	if (!k || !k->complete)
		return tsi_err(TSOCK_EAGAIN,
			       "the job's ranks came too late: all ask again");
	if (!k->started && others_are_behind(k, j))
		return tsi_err(TSOCK_EAGAIN, "other ranks are behind this one");
	*started = k->started;
	*start = k->start;
	if (k->started)
		return 0;
	*start = begun_by_others(t, k, j);
	*started = *start != TSI_NEVER;
	return 0;
}

/* Ranks that ask for a later epoch have had the one that begins now. */
static void note_those_ahead(struct tsi_job *k)
{
	for (unsigned i = 0; i < k->world; i++) {
		struct tsi_job_rank *r = &k->rank[i];

		if (r->joined || !r->asked_ms || r->after <= k->start)
			continue;
		r->joined = r->had = true;
	}
}

void tsi_jobs_joined(struct tsi_jobs *t, const struct tsi_msg_join *j,
		     unsigned reader, uint64_t start)
{
	struct tsi_job *k = find_job(t, j->job);

	if (!k)
		return;
	if (!k->started)
		k->start = start;
	k->started = true;
	k->rank[j->rank].joined = true;
	k->rank[j->rank].had = false;
	k->rank[j->rank].reader = (int)reader;
	k->rank[j->rank].block = (uint64_t)j->world * j->batch_size;
	note_those_ahead(k);
}

/* The job that a reader began with, and its rank; NULL: all have joined. */
static struct tsi_job *find_reader(struct tsi_jobs *t, unsigned reader,
				   struct tsi_job_rank **rank)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		struct tsi_job *k = &t->job[i];

		for (unsigned r = 0; k->used && r < k->world; r++)
			if (k->rank[r].reader == (int)reader) {
				*rank = &k->rank[r];
				return k;
			}
	}
	return NULL;
}

static unsigned count_joined(const struct tsi_job *k)
{
	unsigned n = 0;

	for (unsigned i = 0; i < k->world; i++)
		n += k->rank[i].joined;
	return n;
}

void tsi_jobs_settle(struct tsi_jobs *t, unsigned reader)
{
	struct tsi_job_rank *r;
	struct tsi_job *k = find_reader(t, reader, &r);

	if (k && count_joined(k) == k->world)
		forget(t, k);
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
	if (!k)
		k = add_job(t, j);
	if (!k)
		return;
	k->asked_ms = now_ms;
	if (!k->complete && all_but(k, j->rank, now_ms)) {
		k->complete = true;
		k->expires_ms = now_ms + JOIN_MS;
	}
	tsi_jobs_joined(t, j, reader, start);
	k->returned = true;
}

void tsi_jobs_returned(struct tsi_jobs *t, const struct tsi_msg_join *j,
		       unsigned reader)
{
	struct tsi_job_returner *r = &t->returner[reader];

	*r = (struct tsi_job_returner){ .used = true,
					.epoch_end = j->epoch_end };
	memcpy(r->id, j->job, TSOCK_JOB);
}

bool tsi_jobs_wait(struct tsi_jobs *t, unsigned reader)
{
	struct tsi_job_rank *r;
	const struct tsi_job *k;

	/* Asked for each reader whenever tails are read. */
	if (!t->waiting)
		return false;
	k = find_reader(t, reader, &r);
	return k && !k->let_go;
}

static bool was_had(const struct tsi_job *k)
{
	for (unsigned i = 0; i < k->world; i++)
		if (k->rank[i].had)
			return true;
	return false;
}

bool tsi_jobs_had(const struct tsi_jobs *t, const struct tsi_msg_join *j)
{
	const struct tsi_job *k = find_job(t, j->job);

	return k && (was_had(k) || begun_by_others(t, k, j) != TSI_NEVER);
}

uint64_t tsi_jobs_kept(const struct tsi_jobs *t)
{
	uint64_t least = TSI_NEVER;

	for (unsigned i = 0; t->waiting && i < TSI_JOBS; i++) {
		const struct tsi_job *k = &t->job[i];

		if (k->used && !k->let_go && k->started && was_had(k) &&
		    k->start < least)
			least = k->start;
	}
	return least;
}

void tsi_jobs_left(struct tsi_jobs *t, unsigned reader, uint64_t tail)
{
	struct tsi_job_rank *r;
	struct tsi_job *k = find_reader(t, reader, &r);

	t->returner[reader].used = false;
	if (!k)
		return;
	r->reader = -1;
	r->had = tail > k->start && tail + r->block > k->start + t->epoch_len;
	if (k->let_go && !has_reader(k) && !was_had(k))
		forget(t, k);
}

void tsi_jobs_expire(struct tsi_jobs *t, int64_t now_ms)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		struct tsi_job *k = &t->job[i];

		if (!k->used || k->let_go ||
		    (k->complete ? now_ms <= k->expires_ms
				 : now_ms - k->asked_ms <= JOIN_MS))
			continue;
		if (!k->complete || (!has_reader(k) && !was_had(k))) {
			forget(t, k);
			continue;
		}
		k->let_go = true;
		t->waiting--;
	}
}

static struct tsi_job *find_nonce(struct tsi_jobs *t, const uint8_t *nonce)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		struct tsi_job *k = &t->job[i];

		for (unsigned r = 0; k->used && r < k->world; r++)
			if (k->rank[r].asked_ms &&
			    !memcmp(k->rank[r].nonce, nonce, TSI_NONCE))
				return k;
	}
	return NULL;
}

bool tsi_jobs_missing(struct tsi_jobs *t, int reader, const uint8_t *nonce,
		      struct tsi_job_missing *out)
{
	struct tsi_job_rank *me;
	const struct tsi_job *k =
		reader >= 0 ? find_reader(t, (unsigned)reader, &me)
			    : find_nonce(t, nonce);

	for (unsigned i = 0; k && i < k->world; i++) {
		const struct tsi_job_rank *r = &k->rank[i];

		if (r->joined || (!k->started && r->asked_ms))
			continue;
		*out = (struct tsi_job_missing){
			.rank = i,
			.world = k->world,
			.begun = k->started,
			.epoch = t->epoch_len ? k->start / t->epoch_len : 0,
			.pid = r->asked_ms ? r->pid : 0,
		};
		return true;
	}
	return false;
}
