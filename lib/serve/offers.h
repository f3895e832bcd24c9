/* SPDX-License-Identifier: MIT */
/*
 * offers.h - rows kept for consumers that asked to join.
 *
 * An offer is made in the answer to a JOIN message, and lasts until the
 * consumer connects with its token, or for ten seconds.  A table, and no more.
 */
#ifndef TSI_SERVE_OFFERS_H
#define TSI_SERVE_OFFERS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/msg.h"

#define TSI_OFFERS 64

struct tsi_offer {
	bool used;
	uint8_t token[TSI_TOKEN];
	struct tsi_msg_join join; /* as it was asked for */
	unsigned view;
	int64_t expires_ms;
};

struct tsi_offers {
	struct tsi_offer offer[TSI_OFFERS];
};

/*
 * An offer with a new token.  If the table is full, the oldest offer makes room
 * when its consumer has had time enough to connect; NULL if it hasn't.
 */
const struct tsi_offer *tsi_offers_add(struct tsi_offers *t,
				       const struct tsi_msg_join *join,
				       unsigned view, int64_t now_ms);

/* The offer that was made to this connection; NULL: none. */
const struct tsi_offer *tsi_offers_find(const struct tsi_offers *t,
					const uint8_t *nonce);

/* Take the offer with this token out of the table.  False: there is no such
 * offer. */
bool tsi_offers_take(struct tsi_offers *t, const uint8_t *token,
		     struct tsi_offer *out);

/* The connection's offers are no longer needed. */
void tsi_offers_withdraw(struct tsi_offers *t, const uint8_t *nonce);

/* The view has failed: the consumers that were offered it ask again. */
void tsi_offers_withdraw_view(struct tsi_offers *t, unsigned view);

void tsi_offers_expire(struct tsi_offers *t, int64_t now_ms);

unsigned tsi_offers_count(const struct tsi_offers *t);
bool tsi_offers_for_view(const struct tsi_offers *t, unsigned view);

#endif
