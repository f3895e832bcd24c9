/*
 * link.c - asking the producer, and getting an answer although messages are
 * lost.
 *
 * Never decides what an answer means.
 */
#include "consumer/link.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "wire/fdpass.h"

#define AGAIN_MS 200  /* without an answer: ask again */
#define LEAVE_MS 1000 /* at most, to have a farewell confirmed */
#define GARBAGE 3     /* messages that make no sense, before we give up */
#define OTHERS 64     /* read in a row before we look at the clock again */

int tsi_link_open(struct tsi_link *l, const struct tsi_address *p)
{
	*l = (struct tsi_link){ .serial = 0 };
	snprintf(l->fdpass, sizeof(l->fdpass), "%s", p->fdpass);
	return tsi_channel_connect(p->channel, &l->channel);
}

void tsi_link_close(struct tsi_link *l)
{
	tsi_channel_close(l->channel);
	l->channel = NULL;
}

uint32_t tsi_link_serial(struct tsi_link *l)
{
	if (++l->serial == 0)
		l->serial = 1;
	return l->serial;
}

/* The answer to serial, if it is there. */
static int take(struct tsi_link *l, uint32_t serial, struct tsi_msg *reply)
{
	for (unsigned i = 0; i < OTHERS; i++) {
		int err = tsi_channel_recv(l->channel, NULL, reply);

		if (err == TSOCK_EPROTO && ++l->garbage < GARBAGE)
			continue;
		if (err)
			return err;
		l->garbage = 0;
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
static int send_due(struct tsi_link *l, const struct tsi_msg *m, int64_t now)
{
	if (l->pending == m->serial) {
		if (now - l->sent_ms < AGAIN_MS)
			return 0;
		if (!tsi_fdpass_listening(l->fdpass))
			return tsi_err(TSOCK_ELOST,
				       "the producer is gone: nobody listens "
				       "at %s",
				       l->fdpass);
	}
	l->pending = m->serial;
	l->sent_ms = now;
	return tsi_channel_send(l->channel, NULL, m);
}

static int wait_ms(const struct tsi_link *l, int64_t now, int64_t deadline)
{
	int64_t left = l->sent_ms + AGAIN_MS - now;

	if (left > deadline - now)
		left = deadline - now;
	return left > 0 ? (int)left : 0;
}

int tsi_link_ask(struct tsi_link *l, const struct tsi_msg *question,
		 int64_t deadline_ms, struct tsi_msg *reply)
{
	for (;;) {
		int64_t now = tsi_now_ms();
		bool ready;
		int err = send_due(l, question, now);

		if (err)
			return err;
		err = take(l, question->serial, reply);
		if (err != TSOCK_EAGAIN) {
			l->pending = 0;
			return err;
		}
		if (now >= deadline_ms)
			return TSOCK_EAGAIN;
		err = tsi_channel_poll(l->channel, NULL, 0,
				       wait_ms(l, now, deadline_ms), &ready);
		if (err)
			return err;
	}
}

void tsi_link_tell(struct tsi_link *l, struct tsi_msg *m)
{
	m->serial = tsi_link_serial(l);
	tsi_channel_send(l->channel, NULL, m);
}

void tsi_link_leave(struct tsi_link *l, const uint8_t *nonce)
{
	struct tsi_msg m = { .type = TSI_LEAVE, .serial = tsi_link_serial(l) };
	struct tsi_msg reply;

	memcpy(m.u.leave.nonce, nonce, TSI_NONCE);
	tsi_link_ask(l, &m, tsi_now_ms() + LEAVE_MS, &reply);
}

void tsi_link_farewell(const struct tsi_address *p, const uint8_t *nonce)
{
	struct tsi_link l;

	if (tsi_link_open(&l, p))
		return;
	tsi_link_leave(&l, nonce);
	tsi_link_close(&l);
}
