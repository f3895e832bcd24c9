/* SPDX-License-Identifier: MIT */
/*
 * returners.c - the readers of the producer before: a table, and no more.
 */
#include "serve/returners.h"

#include <string.h>

#define COLLECT_MS 500 /* for those that wait for a producer already */
#define ASKED_MS 10000 /* one that asked, and asks no longer, is gone */
#define STOOD_MS 1000  /* between two looks: nobody could be heard */

bool tsi_returners_add(struct tsi_returners *t,
		       const struct tsi_reader_row *row, int64_t now_ms)
{
	for (unsigned i = 0; i < TSI_RETURNERS; i++) {
		if (t->returner[i].used)
			continue;
		t->returner[i] = (struct tsi_returner){ .used = true,
							.row = *row,
							.moved_ms = now_ms };
		t->count++;
		t->phase = TSI_RETURNING_COLLECTED;
		t->since_ms = t->looked_ms = now_ms;
		return true;
	}
	return false;
}

static bool goes_by(const struct tsi_reader_row *row, const uint8_t *was)
{
	return !memcmp(row->nonce, was, TSI_NONCE) ||
	       !memcmp(row->was, was, TSI_NONCE);
}

static struct tsi_returner *find_returner(struct tsi_returners *t,
					  const uint8_t *was)
{
	static const uint8_t nobody[TSI_NONCE];

	if (!memcmp(was, nobody, TSI_NONCE))
		return NULL;
	for (unsigned i = 0; t->count && i < TSI_RETURNERS; i++)
		if (t->returner[i].used && goes_by(&t->returner[i].row, was))
			return &t->returner[i];
	return NULL;
}

bool tsi_returners_ask(struct tsi_returners *t, const struct tsi_msg_join *j,
		       int64_t now_ms)
{
	struct tsi_returner *r = j->epoch_end ? find_returner(t, j->was) : NULL;

	if (!r)
		return false;
	r->asked = true;
	r->asked_ms = now_ms;
	r->position = j->position;
	return true;
}

bool tsi_returners_collect(const struct tsi_returners *t)
{
	return t->phase == TSI_RETURNING_COLLECTED;
}

static void forget(struct tsi_returners *t, struct tsi_returner *r)
{
	r->used = false;
	t->count--;
}

const struct tsi_reader_row *tsi_returners_find(const struct tsi_returners *t,
						const uint8_t *was)
{
	struct tsi_returner *r =
		find_returner((struct tsi_returners *)(uintptr_t)t, was);

	return r ? &r->row : NULL;
}

bool tsi_returners_take(struct tsi_returners *t, const uint8_t *was)
{
	struct tsi_returner *r = find_returner(t, was);

	if (r)
		forget(t, r);
	return r;
}

const struct tsi_reader_row *tsi_returners_next(const struct tsi_returners *t,
						unsigned *i)
{
	for (; t->count && *i < TSI_RETURNERS; ++*i)
		if (t->returner[*i].used)
			return &t->returner[*i].row;
	return NULL;
}

void tsi_returners_give_up(struct tsi_returners *t, unsigned i)
{
	if (t->returner[i].used)
		forget(t, &t->returner[i]);
}

bool tsi_returners_silent(const struct tsi_returners *t, unsigned i,
			  int64_t now_ms)
{
	const struct tsi_returner *r = &t->returner[i];

	return r->used && r->asked && now_ms - r->asked_ms > ASKED_MS;
}

void tsi_returners_look(struct tsi_returners *t, int64_t now_ms)
{
	int64_t gap = now_ms - t->looked_ms;

	t->looked_ms = now_ms;
	if (!t->count || gap <= STOOD_MS)
		return;
	t->since_ms += gap;
	for (unsigned i = 0; i < TSI_RETURNERS; i++) {
		t->returner[i].asked_ms += gap;
		t->returner[i].moved_ms += gap;
	}
}

void tsi_returners_see(struct tsi_returners *t, unsigned i, uint64_t tail,
		       int64_t now_ms)
{
	struct tsi_returner *r = &t->returner[i];

	if (!r->used || tail <= r->tail)
		return;
	r->tail = tail;
	r->moved_ms = now_ms;
}

bool tsi_returners_late(const struct tsi_returners *t, unsigned i,
			int64_t now_ms)
{
	const struct tsi_returner *r = &t->returner[i];

	return r->used && now_ms - r->moved_ms >= TSI_RETURNERS_GRACE_MS;
}

/* The reader is there or further on. */
static uint64_t place_of(const struct tsi_returner *r)
{
	/* Ranks of its job will begin there. */
	if (r->row.together)
		return r->row.mark;
	if (r->asked)
		return r->position;
	return r->tail > r->row.mark ? r->tail : r->row.mark;
}

/* Where all of them are or further on; how many haven't asked. */
static uint64_t least(const struct tsi_returners *t, unsigned *silent)
{
	uint64_t from = UINT64_MAX;

	*silent = 0;
	for (unsigned i = 0; i < TSI_RETURNERS; i++) {
		const struct tsi_returner *r = &t->returner[i];

		if (!r->used)
			continue;
		*silent += !r->asked;
		if (place_of(r) < from)
			from = place_of(r);
	}
	return from;
}

enum tsi_returners_step tsi_returners_step(struct tsi_returners *t,
					   int64_t now_ms, uint64_t *from)
{
	enum tsi_returners_step step;
	unsigned silent;
	uint64_t at;

	if (t->phase == TSI_RETURNING_NOBODY)
		return TSI_RETURNERS_WAIT;
	if (!t->count) {
		t->phase = TSI_RETURNING_NOBODY;
		return TSI_RETURNERS_RELEASE;
	}
	at = least(t, &silent);
	if (t->phase == TSI_RETURNING_HELD && at <= t->held)
		return TSI_RETURNERS_WAIT;
	if (t->phase == TSI_RETURNING_COLLECTED && silent &&
	    now_ms - t->since_ms < COLLECT_MS)
		return TSI_RETURNERS_WAIT;
	step = t->phase == TSI_RETURNING_HELD ? TSI_RETURNERS_FOLLOW
					      : TSI_RETURNERS_HOLD;
	t->phase = TSI_RETURNING_HELD;
	*from = t->held = at;
	return step;
}
