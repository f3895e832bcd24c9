/* SPDX-License-Identifier: MIT */
/*
 * warnings.c - what the producer has to say to all readers of its stream.
 */
#include "consumer/warnings.h"

#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "tsock/tsock.h"

#define ASK_MS 100 /* when an epoch begins or ends */

/* The next producer may have the same to say. */
static bool was_said(struct tsi_heard *h, const char *text)
{
	uint64_t hash = tsi_hash(text, strlen(text), 0);

	for (unsigned i = 0; i < TSI_WARNINGS && i < h->nsaid; i++)
		if (h->said[i] == hash)
			return true;
	h->said[h->nsaid++ % TSI_WARNINGS] = hash;
	return false;
}

static void hear(struct tsi_heard *h, const struct tsi_msg_warning_data *w,
		 const char *stream)
{
	if (was_said(h, w->text))
		return;
	tsi_log(TSOCK_LOG_WARN, "'%s': %s", stream, w->text);
	/* A program that never asks gets the last ones, if it does. */
	if (h->nkept == TSI_HEARD) {
		h->first = (h->first + 1) % TSI_HEARD;
		h->nkept--;
	}
	h->kept[(h->first + h->nkept++) % TSI_HEARD] = *w;
}

void tsi_heard_ask(struct tsi_heard *h, const struct tsi_heard_from *from,
		   int timeout_ms)
{
	int64_t deadline =
		timeout_ms < 0 ? INT64_MAX : tsi_now_ms() + timeout_ms;
	struct tsi_msg m = { .type = TSI_WARNING }, reply;
	struct tsi_err_saved saved = tsi_err_save(0);

	while (h->n < h->there) {
		m.serial = tsi_request_serial(from->requests);
		m.u.warning = (struct tsi_msg_warning){ h->incarnation, h->n };
		if (tsi_request_ask(from->requests, &m, deadline, &reply) ||
		    reply.type != TSI_WARNING_DATA ||
		    reply.u.warning_data.number != h->n)
			break;
		h->n++;
		hear(h, &reply.u.warning_data, from->stream);
	}
	tsi_err_restore(&saved);
}

void tsi_heard_look(struct tsi_heard *h, const struct tsi_heard_from *from,
		    uint64_t incarnation, const struct tsi_claim *c)
{
	uint32_t there = tsi_claim_warnings(c);

	if (h->incarnation != incarnation) {
		h->incarnation = incarnation;
		h->n = 0;
	}
	h->there = there < TSI_WARNINGS ? there : TSI_WARNINGS;
	if (h->n < h->there && !tsi_claim_abandoned(c))
		tsi_heard_ask(h, from, ASK_MS);
}

const char *tsi_heard_take(struct tsi_heard *h, uint32_t *kind)
{
	const struct tsi_msg_warning_data *w = &h->kept[h->first];

	if (!h->nkept)
		return NULL;
	*kind = w->kind;
	memcpy(h->text, w->text, sizeof(h->text));
	h->first = (h->first + 1) % TSI_HEARD;
	h->nkept--;
	return h->text;
}
