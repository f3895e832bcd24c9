/*
 * query.c - what can be asked of a stream from outside, without joining it.
 *
 * A connection of its own per question, closed again at once; nothing is
 * mapped, nobody becomes a reader, and no producer is waited for that isn't
 * there.
 */
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/sized.h"
#include "consumer/running.h"
#include "tsock/tsock.h"
#include "wire/zmq.h"
#include "wire/fdpass.h"
#include "wire/address.h"

#define AGAIN_MS 200 /* every reply may be lost: ask again */
#define SERIAL 1
#define OTHERS 64 /* messages read in a row before a look at the clock */

/* Milliseconds to wait now: a slice, less near the deadline. */
static int slice_ms(int64_t deadline)
{
	int64_t left = deadline - tsi_now_ms();

	if (left <= 0)
		return 0;
	return left < AGAIN_MS ? (int)left : AGAIN_MS;
}

static int64_t deadline_of(int timeout_ms)
{
	return timeout_ms < 0 ? INT64_MAX : tsi_now_ms() + timeout_ms;
}

/* Receive until a reply to our question is there, or nothing is: EAGAIN. */
static int take_reply(struct tsi_channel *channel, uint16_t want,
		      struct tsi_msg *m)
{
	for (unsigned i = 0; i < OTHERS; i++) {
		int err = tsi_channel_recv(channel, NULL, m);

		if (err)
			return err;
		if (m->serial != SERIAL)
			continue;
		if (m->type == want)
			return 0;
		if (m->type == TSI_ERROR)
			return tsi_err(m->u.error.code, "%s", m->u.error.text);
	}
	return TSOCK_EAGAIN;
}

/* Ask at one address; TSOCK_EAGAIN when the deadline passed. */
static int ask(const struct tsi_address *p, const struct tsi_msg *question,
	       uint16_t want, int64_t deadline, struct tsi_msg *reply)
{
	struct tsi_channel *channel;
	bool ready;
	int wait, err;

	err = tsi_channel_connect(p->channel, &channel);
	if (err)
		return err;
	do {
		wait = slice_ms(deadline);
		err = tsi_channel_send(channel, NULL, question);
		if (!err)
			err = tsi_channel_poll(channel, NULL, 0, wait, &ready);
		if (!err)
			err = take_reply(channel, want, reply);
	} while (err == TSOCK_EAGAIN && wait);
	tsi_channel_close(channel);
	return err;
}

int tsock_query(const char *name, int timeout_ms, struct tsock_stats *out)
{
	struct tsi_msg question = { .type = TSI_STATS, .serial = SERIAL };
	int64_t deadline = deadline_of(timeout_ms);
	struct tsi_address address[TSI_ADDRESSES];
	struct tsi_msg reply;
	char folders[TSI_ADDRESSES * (TSI_SOCKET_PATH + 5)], running[256];
	int n, err;

	if (!name)
		return tsi_err(TSOCK_EARG, "tsock_query: name is NULL");
	err = tsi_sized_check("tsock_query", &tsi_sized_stats, out);
	if (err)
		return err;
	n = tsi_address_find(name, address, TSI_ADDRESSES);
	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		if (!tsi_fdpass_listening(address[i].fdpass))
			continue;
		err = ask(&address[i], &question, TSI_STATS_DATA, deadline,
			  &reply);
		if (err == TSOCK_EAGAIN)
			return tsi_err(
				TSOCK_ENOPROD,
				"the producer of %s didn't answer within "
				"%d ms: is it stopped?",
				name, timeout_ms);
		if (!err)
			tsi_sized_write(&tsi_sized_stats, &reply.u.stats, out);
		return err;
	}
	tsi_address_folders(address, (unsigned)n, folders, sizeof(folders));
	tsi_running(running, sizeof(running));
	return tsi_err(TSOCK_ENOPROD,
		       "no producer serves a stream called %s: nobody listens "
		       "in %s%s",
		       name, folders, running);
}

struct listing {
	void (*fn)(void *arg, const char *name, const char *folder);
	void *arg;
	int n;
};

/* A stopped producer's socket accepts connections too: it is there. */
static void list_one(void *arg, const struct tsi_address *p)
{
	struct listing *l = arg;

	if (!tsi_fdpass_listening(p->fdpass))
		return;
	l->fn(l->arg, p->name, p->folder);
	l->n++;
}

int tsock_list(void (*fn)(void *arg, const char *name, const char *folder),
	       void *arg)
{
	struct listing l = { fn, arg, 0 };
	int err;

	if (!fn)
		return tsi_err(TSOCK_EARG, "tsock_list() needs a function");
	err = tsi_address_list(list_one, &l);
	return err ? err : l.n;
}
