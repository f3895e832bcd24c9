/* SPDX-License-Identifier: MIT */
/*
 * offers.c - rows kept for consumers that asked to join.
 */
#include "serve/offers.h"

#include <string.h>
#include <sys/random.h>

#define OFFER_MS 10000
#define OFFER_LEAST_MS 1000 /* after that an offer may make room for another */

/* A free entry, or that of the oldest offer if this one has lasted enough. */
static struct tsi_offer *free_entry(struct tsi_offers *t, int64_t now_ms)
{
	struct tsi_offer *oldest = &t->offer[0];

	for (unsigned i = 0; i < TSI_OFFERS; i++) {
		struct tsi_offer *o = &t->offer[i];

		if (!o->used)
			return o;
		if (o->expires_ms < oldest->expires_ms)
			oldest = o;
	}
	return now_ms < oldest->expires_ms - OFFER_MS + OFFER_LEAST_MS ? NULL
								       : oldest;
}

const struct tsi_offer *tsi_offers_add(struct tsi_offers *t,
				       const struct tsi_msg_join *join,
				       unsigned view, int64_t now_ms)
{
	struct tsi_offer *o = free_entry(t, now_ms);

	if (!o)
		return NULL;
	o->used = false;
	if (getrandom(o->token, TSI_TOKEN, 0) != TSI_TOKEN)
		return NULL;
	o->used = true;
	o->join = *join;
	o->view = view;
	o->expires_ms = now_ms + OFFER_MS;
	return o;
}

const struct tsi_offer *tsi_offers_find(const struct tsi_offers *t,
					const uint8_t *nonce)
{
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		if (t->offer[i].used &&
		    !memcmp(t->offer[i].join.nonce, nonce, TSI_NONCE))
			return &t->offer[i];
	return NULL;
}

bool tsi_offers_take(struct tsi_offers *t, const uint8_t *token,
		     struct tsi_offer *out)
{
	for (unsigned i = 0; i < TSI_OFFERS; i++) {
		struct tsi_offer *o = &t->offer[i];

		if (!o->used || memcmp(o->token, token, TSI_TOKEN) != 0)
			continue;
		*out = *o;
		o->used = false;
		return true;
	}
	return false;
}

void tsi_offers_withdraw(struct tsi_offers *t, const uint8_t *nonce)
{
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		if (!memcmp(t->offer[i].join.nonce, nonce, TSI_NONCE))
			t->offer[i].used = false;
}

void tsi_offers_withdraw_view(struct tsi_offers *t, unsigned view)
{
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		if (t->offer[i].view == view)
			t->offer[i].used = false;
}

void tsi_offers_expire(struct tsi_offers *t, int64_t now_ms)
{
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		if (now_ms > t->offer[i].expires_ms)
			t->offer[i].used = false;
}

unsigned tsi_offers_count(const struct tsi_offers *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TSI_OFFERS; i++)
		n += t->offer[i].used;
	return n;
}

bool tsi_offers_for_view(const struct tsi_offers *t, unsigned view)
{
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		if (t->offer[i].used && t->offer[i].view == view)
			return true;
	return false;
}
