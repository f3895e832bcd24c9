/* SPDX-License-Identifier: MIT */
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
#include "consumer/request.h"
#include "consumer/running.h"
#include "tsock/tsock.h"
#include "wire/fdpass.h"
#include "wire/address.h"

/* Ask at one address; TSOCK_EAGAIN when the deadline passed. */
static int ask_stats(const struct tsi_address *p, int64_t deadline,
		     struct tsock_stats *out)
{
	struct tsi_msg m = { .type = TSI_STATS }, reply;
	struct tsi_requester r;
	int err = tsi_request_open(&r, p);

	if (err)
		return err;
	m.serial = tsi_request_serial(&r);
	err = tsi_request_ask(&r, &m, deadline, &reply);
	tsi_request_close(&r);
	if (!err && reply.type != TSI_STATS_DATA)
		err = tsi_err(TSOCK_EPROTO,
			      "the producer of '%s' answered STATS with a "
			      "message of type %u",
			      tsi_address_name(p), reply.type);
	if (!err)
		*out = reply.u.stats;
	return err;
}

int tsock_query(const char *name, int timeout_ms, struct tsock_stats *out)
{
	int64_t deadline =
		timeout_ms < 0 ? INT64_MAX : tsi_now_ms() + timeout_ms;
	struct tsi_address address[TSI_ADDRESSES];
	struct tsock_stats stats;
	char folders[TSI_ADDRESSES * (TSI_SOCKET_PATH + 5)], running[256];
	int n, err, there;

	if (!name)
		return tsi_err(TSOCK_EARG, "tsock_query: name is NULL");
	err = tsi_sized_check("tsock_query", &tsi_sized_stats, out);
	if (err)
		return err;
	n = tsi_address_find(name, address, TSI_ADDRESSES);
	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		there = tsi_fdpass_listening(tsi_address_fdpass(&address[i]));
		if (there < 0)
			return there;
		if (!there)
			continue;
		err = ask_stats(&address[i], deadline, &stats);
		/* It went away in between. */
		if (err == TSOCK_ELOST)
			continue;
		if (err == TSOCK_EAGAIN)
			return tsi_err(
				TSOCK_ENOPROD,
				"the producer of %s didn't answer within "
				"%d ms: is it stopped?",
				name, timeout_ms);
		if (!err)
			tsi_sized_write(&tsi_sized_stats, &stats, out);
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

	if (tsi_fdpass_listening(tsi_address_fdpass(p)) <= 0)
		return;
	l->fn(l->arg, tsi_address_name(p), tsi_address_folder(p));
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
