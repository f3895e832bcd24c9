/* SPDX-License-Identifier: MIT */
/*
 * request.c - asking the producer, and getting an answer although messages are
 * lost.
 *
 * Never decides what an answer means.
 */
#include "consumer/request.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "wire/fdpass.h"

#define AGAIN_MS 200 /* without an answer: ask again */
#define GARBAGE 3    /* messages that make no sense, before we give up */
#define OTHERS 64    /* read in a row before we look at the clock again */

int tsi_request_open(struct tsi_requester *r, const struct tsi_address *p)
{
	*r = (struct tsi_requester){ .serial = 0 };
	snprintf(r->fdpass, sizeof(r->fdpass), "%s", tsi_address_fdpass(p));
	return tsi_zmq_connect(tsi_address_channel(p), &r->channel);
}

void tsi_request_close(struct tsi_requester *r)
{
	tsi_zmq_close(r->channel);
	r->channel = NULL;
}

uint32_t tsi_request_serial(struct tsi_requester *r)
{
	if (++r->serial == 0)
		r->serial = 1;
	return r->serial;
}

uint32_t tsi_request_under_way(struct tsi_requester *r)
{
	return r->pending ? r->pending : tsi_request_serial(r);
}

/* The answer to serial, if it is there. */
static int take_reply(struct tsi_requester *r, uint32_t serial,
		      struct tsi_msg *reply)
{
	for (unsigned i = 0; i < OTHERS; i++) {
		int err = tsi_zmq_recv(r->channel, NULL, reply);

		if (err == TSOCK_EPROTO && ++r->garbage < GARBAGE)
			continue;
		if (err)
			return err;
		r->garbage = 0;
		if (reply->serial != serial)
			continue;
		if (reply->type != TSI_ERROR)
			return 0;
		return tsi_err(reply->u.error.code, "%.*s",
			       (int)sizeof(reply->u.error.text),
			       reply->u.error.text);
	}
	return TSOCK_EAGAIN;
}

/* Send it if it is new, or was sent too long ago. */
static int send_due(struct tsi_requester *r, const struct tsi_msg *m,
		    int64_t now)
{
	if (r->pending == m->serial) {
		if (now - r->sent_ms < AGAIN_MS)
			return 0;
		/* Where this process can't tell, the producer may be there. */
		if (tsi_fdpass_listening(r->fdpass) == 0)
			return tsi_err(TSOCK_ELOST,
				       "the producer is gone: nobody listens "
				       "at %s",
				       r->fdpass);
	}
	r->pending = m->serial;
	r->sent_ms = now;
	return tsi_zmq_send(r->channel, NULL, m);
}

static int wait_ms(const struct tsi_requester *r, int64_t now, int64_t deadline)
{
	int64_t left = r->sent_ms + AGAIN_MS - now;

	if (left > deadline - now)
		left = deadline - now;
	return left > 0 ? (int)left : 0;
}

int tsi_request_ask(struct tsi_requester *r, const struct tsi_msg *question,
		    int64_t deadline_ms, struct tsi_msg *reply)
{
	for (;;) {
		int64_t now = tsi_now_ms();
		bool ready;
		int err = send_due(r, question, now);

		if (err)
			return err;
		err = take_reply(r, question->serial, reply);
		if (err != TSOCK_EAGAIN) {
			r->pending = 0;
			return err;
		}
		if (now >= deadline_ms)
			return TSOCK_EAGAIN;
		err = tsi_zmq_poll(r->channel, NULL, 0,
				   wait_ms(r, now, deadline_ms), &ready);
		if (err)
			return err;
	}
}

void tsi_request_tell(struct tsi_requester *r, struct tsi_msg *m)
{
	m->serial = tsi_request_serial(r);
	tsi_zmq_send(r->channel, NULL, m);
}

void tsi_request_leave(struct tsi_requester *r, const uint8_t *nonce,
		       int timeout_ms)
{
	r->leaving = tsi_request_serial(r);
	memcpy(r->left, nonce, TSI_NONCE);
	tsi_request_await_left(r, timeout_ms);
}

int tsi_request_await_left(struct tsi_requester *r, int timeout_ms)
{
	struct tsi_msg m = { .type = TSI_LEAVE, .serial = r->leaving }, reply;
	int64_t deadline =
		timeout_ms < 0 ? INT64_MAX : tsi_now_ms() + timeout_ms;

	if (!r->leaving)
		return 0;
	memcpy(m.u.leave.nonce, r->left, TSI_NONCE);
	if (tsi_request_ask(r, &m, deadline, &reply) == TSOCK_EAGAIN)
		return TSOCK_EAGAIN;
	r->leaving = 0;
	return 0;
}
