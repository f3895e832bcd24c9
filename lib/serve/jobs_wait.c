/* SPDX-License-Identifier: MIT */
/*
 * jobs_wait.c - which ranks of a job are waited for, and for how long.
 */
#include "serve/jobs_parts.h"

#include <string.h>

#include "wire/peer.h"

#define LEFT_MS 60000 /* for ranks whose others have begun, and left */

bool tsi_jobs_wait(struct tsi_jobs *t, unsigned reader)
{
	struct tsi_job_rank *r;
	const struct tsi_job *k;

	/* Asked for each reader whenever tails are read. */
	if (!t->waiting)
		return false;
	k = find_reader(t, reader, &r);
	return k && is_open(k) && r->joined;
}

static bool keeps_start(const struct tsi_job *k)
{
	/* Who returned to it, and could not be told, may be gone. */
	return k->used && is_open(k) && (!k->returned || count_joined(k));
}

uint64_t tsi_jobs_kept(const struct tsi_jobs *t)
{
	uint64_t least = TSI_NEVER;

	for (unsigned i = 0; t->waiting && i < TSI_JOBS; i++) {
		const struct tsi_job *k = &t->job[i];

		if (keeps_start(k) && k->start < least)
			least = k->start;
	}
	return least;
}

bool tsi_jobs_kept_for_others(const struct tsi_jobs *t,
			      const struct tsi_msg_join *j)
{
	for (unsigned i = 0; t->waiting && i < TSI_JOBS; i++)
		if (keeps_start(&t->job[i]) &&
		    (j->world < 2 || memcmp(t->job[i].id, j->job, TSOCK_JOB)))
			return true;
	return false;
}

bool tsi_jobs_asks(const struct tsi_jobs *t, const uint8_t *nonce)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		const struct tsi_job *k = &t->job[i];

		for (unsigned r = 0; k->used && r < k->world; r++)
			if (k->rank[r].asked_ms &&
			    !memcmp(k->rank[r].nonce, nonce, TSI_NONCE))
				return true;
	}
	return false;
}

/* Has it a rank that has begun, and reads? */
static bool is_read(const struct tsi_job *k)
{
	for (unsigned i = 0; i < k->world; i++)
		if (k->rank[i].joined && k->rank[i].reader >= 0)
			return true;
	return false;
}

/* Have all of its processes ended that are known? */
static bool is_dead(const struct tsi_job *k)
{
	bool any = false;

	for (unsigned i = 0; i < k->world; i++) {
		const struct tsi_job_rank *r = &k->rank[i];

		if (r->pid && !tsi_peer_ended(r->pid, r->born))
			return false;
		any = any || r->pid;
	}
	return any;
}

/* Have those of all ranks that have not begun? */
static bool missing_have_ended(const struct tsi_job *k)
{
	bool any = false;

	for (unsigned i = 0; i < k->world; i++) {
		const struct tsi_job_rank *r = &k->rank[i];

		if (r->joined)
			continue;
		if (!r->pid || !tsi_peer_ended(r->pid, r->born))
			return false;
		any = true;
	}
	return any;
}

/* Does a rank ask, since long, for the next epoch? */
static bool is_urged(const struct tsi_job *k, int64_t now_ms)
{
	for (unsigned i = 0; i < k->world; i++)
		if (k->rank[i].waits_ms &&
		    now_ms - k->rank[i].waits_ms > JOIN_MS)
			return true;
	return false;
}

/* Are the ranks that have still to begin waited for no longer? */
static bool is_over(struct tsi_job *k, int64_t now_ms)
{
	bool dead = !has_reader(k) && is_dead(k);

	/* Ranks may be through, and end, before the others are heard of. */
	if (dead && (k->complete || !was_had(k)))
		return true;
	if (k->complete)
		return now_ms > k->expires_ms;
	if (!k->started || k->returned)
		return now_ms - k->asked_ms > JOIN_MS;
	if (missing_have_ended(k))
		return true;
	if (is_read(k)) {
		k->left_ms = 0;
		return false;
	}
	if (!k->left_ms)
		k->left_ms = now_ms;
	return now_ms - k->left_ms >
		       (was_had(k) && !dead ? LEFT_MS : JOIN_MS) ||
	       is_urged(k, now_ms);
}

static void let_go(struct tsi_jobs *t, struct tsi_job *k)
{
	if (!k->started || (!has_reader(k) && !was_had(k))) {
		tsi_jobs_forget(t, k);
		return;
	}
	k->let_go = true;
	t->waiting--;
	for (unsigned i = 0; i < k->world; i++)
		k->rank[i].absent = !k->rank[i].joined;
}

void tsi_jobs_expire(struct tsi_jobs *t, int64_t now_ms)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		struct tsi_job *k = &t->job[i];

		if (k->used && is_waiting(k) && is_over(k, now_ms))
			let_go(t, k);
		else if (k->used && k->let_go && !has_reader(k) && is_dead(k))
			tsi_jobs_forget(t, k);
	}
}

static struct tsi_job *find_nonce(struct tsi_jobs *t, const uint8_t *nonce,
				  struct tsi_job_rank **rank)
{
	for (unsigned i = 0; i < TSI_JOBS; i++) {
		struct tsi_job *k = &t->job[i];

		for (unsigned r = 0; k->used && r < k->world; r++)
			if (k->rank[r].asked_ms &&
			    !memcmp(k->rank[r].nonce, nonce, TSI_NONCE)) {
				*rank = &k->rank[r];
				return k;
			}
	}
	return NULL;
}

static void add_missing(struct tsi_job_missing *to, const struct tsi_job *k,
			unsigned rank)
{
	const struct tsi_job_rank *r = &k->rank[rank];

	if (to->count < TSI_MISSING)
		to->rank[to->count] = rank;
	to->count++;
	if (!to->pid && (r->asked_ms || r->reader >= 0))
		to->pid = r->pid;
}

bool tsi_jobs_missing(struct tsi_jobs *t, int reader, const uint8_t *nonce,
		      struct tsi_job_missing *out)
{
	struct tsi_job_missing found = { .count = 0 };
	struct tsi_job_rank *me, *r;
	struct tsi_job *k = reader >= 0 ? find_reader(t, (unsigned)reader, &me)
					: find_nonce(t, nonce, &me);

	for (unsigned i = 0; k && i < k->world; i++) {
		r = &k->rank[i];
		if (r != me && !r->joined &&
		    (k->started || !r->asked_ms || r->after < me->after))
			add_missing(&found, k, i);
	}
	if (!found.count)
		return false;
	found.world = k->world;
	found.begun = k->started;
	found.epoch = t->epoch_len ? k->start / t->epoch_len : 0;
	*out = found;
	return true;
}
