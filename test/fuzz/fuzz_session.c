/* SPDX-License-Identifier: MIT */
/*
 * fuzz_session.c - whatever comes in whatever order, a producer's membership
 * and offers keep their promises.
 *
 * An input is a list of events: messages that come, come twice or not at all,
 * connections with tokens of any age, tails with any number in them, deaths,
 * claims and publications.  The events of eight consumers are mixed.
 */
#include "corpus.h"
#include "serve/membership.h"
#include "serve/offers.h"

#define CONSUMERS 8
#define N 24 /* samples in an epoch */
#define C 32
#define OFFER_MS 10000

static struct tsi_membership m;
static struct tsi_offers offers;
static struct consumer {
	uint8_t nonce[TSI_NONCE], token[TSI_TOKEN];
	bool offered, in, liar;
	unsigned id;
	uint64_t start, tail;
} who[CONSUMERS];
static int64_t now;
static unsigned joins;

static struct tsi_join rules_of(const struct tsi_msg_join *j)
{
	return (struct tsi_join){ .join = j->join % 3,
				  .leaves = j->between & 1,
				  .after = j->after,
				  .read = j->read,
				  .read_here = j->read_of == 1,
				  .continues = j->read_of == 2 };
}

static void on_join(struct consumer *q, struct bytes *b)
{
	struct tsi_msg_join j = { .join = (uint32_t)take(b, 1),
				  .between = (uint32_t)take(b, 1),
				  .after = take(b, 1) * N };
	struct tsi_join rules;
	const struct tsi_offer *o;
	uint64_t start;

	j.read_of = (j.between >> 1) % 3;
	j.read = (j.between >> 3) * N;
	rules = rules_of(&j);
	memcpy(j.nonce, q->nonce, TSI_NONCE);
	if (q->in || tsi_membership_forecast(&m, &rules, &start))
		return;
	o = tsi_offers_find(&offers, q->nonce);
	if (!o)
		o = tsi_offers_add(&offers, &j, 0, now);
	if (!o)
		return;
	memcpy(q->token, o->token, TSI_TOKEN);
	q->offered = true;
}

static void on_connect(struct consumer *q)
{
	struct tsi_offer o;
	struct tsi_join rules;
	struct tsi_joined c;
	bool taken = tsi_offers_take(&offers, q->token, &o);

	/* An offer that was never made, or was taken, opens nothing. */
	never(taken && (!q->offered || q->in));
	if (!taken)
		return;
	never(tsi_offers_take(&offers, q->token, &o));
	rules = rules_of(&o.join);
	q->offered = false;
	if (tsi_membership_join(&m, &rules, now, &c))
		return;
	tsi_membership_apply_jump(&m);
	never(c.epoch_end <= c.start || c.start < o.join.after);
	for (unsigned i = 0; i < CONSUMERS; i++)
		never(who[i].in && who[i].id == c.id);
	q->in = true;
	q->liar = false;
	q->id = c.id;
	q->start = q->tail = c.start;
}

static void leave(struct consumer *q)
{
	tsi_offers_withdraw(&offers, q->nonce);
	if (q->in)
		tsi_membership_leave(&m, q->id);
	tsi_membership_apply_jump(&m);
	q->in = false;
	q->offered = false;
	/* The next join is another one. */
	joins++;
	memcpy(q->nonce + 1, &joins, sizeof(joins));
}

static void on_tail(struct consumer *q, uint64_t tail)
{
	if (!q->in)
		return;
	if (tsi_membership_tail(&m, q->id, tail, now)) {
		leave(q);
		return;
	}
	/* Below its start nothing was written yet. */
	tail = tail > q->start ? tail : q->start;
	never(tail < q->tail);
	q->tail = tail;
}

static void claim(unsigned want)
{
	uint64_t first, limit = tsi_membership_limit(&m, 0);
	unsigned n = tsi_membership_claim(&m, 0, want, &first);

	never(n > want || (n && first + n > limit));
	for (uint64_t s = first; n && s < first + n; s++)
		for (unsigned i = 0; i < CONSUMERS; i++)
			never(who[i].in && who[i].tail <= s &&
			      s >= who[i].tail + C);
}

static void publish(unsigned n)
{
	uint64_t head = tsi_membership_head(&m, 0);
	uint64_t claimed = tsi_membership_claimed(&m, 0);

	if (head < claimed)
		tsi_membership_published(&m, 0,
					 head + 1 + n % (claimed - head));
	tsi_membership_apply_jump(&m);
}

static void event(struct bytes *b)
{
	uint64_t what = take(b, 1);
	struct consumer *q = &who[what >> 4 & 7];

	switch (what & 15) {
	case 0:
	case 1:
		on_join(q, b);
		break;
	case 2:
	case 3:
		on_connect(q);
		break;
	case 4:
		leave(q);
		break;
	case 5:
		on_tail(q, take(b, 8));
		break;
	case 6:
	case 7:
	case 8:
		on_tail(q, q->tail + take(b, 1));
		break;
	case 9:
		now += (int64_t)take(b, 2);
		tsi_offers_expire(&offers, now);
		break;
	case 10:
	case 11:
	case 12:
		claim(1 + (unsigned)take(b, 1) % 16);
		break;
	default:
		publish((unsigned)take(b, 1));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };
	static const uint64_t bounds[2] = { 0, N };
	struct tsi_membership_config config = { .epoch_len = N,
						.join_window = 8,
						.capacity = C,
						.segments = 1,
						.bounds = bounds,
						.min_members = 1 };

	config.end = take(&b, 1) & 1 ? 3 * N : TSI_NEVER;
	tsi_membership_init(&m, &config);
	memset(&offers, 0, sizeof(offers));
	memset(who, 0, sizeof(who));
	now = 1;
	for (unsigned i = 0; i < CONSUMERS; i++)
		who[i].nonce[0] = (uint8_t)(i + 1);
	while (b.left)
		event(&b);
	for (unsigned i = 0; i < CONSUMERS; i++)
		leave(&who[i]);
	tsi_offers_expire(&offers, now + OFFER_MS + 1);
	never(tsi_offers_count(&offers) || m.count);
	return 0;
}
