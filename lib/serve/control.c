/* SPDX-License-Identifier: MIT */
/*
 * control.c - the control thread: consumers that join, leave, die or are slow.
 *
 * The thread answers messages (messages.c), accepts connections (handshake.c),
 * watches the consumers' processes, and reads the tails whenever a consumer
 * writes the eventfd.  It never touches a sample and never waits for a
 * consumer.
 */
#include "serve/control.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "serve/messages.h"
#include "serve/server.h"
#include "serve/view_table.h"
#include "wire/zmq.h"
#include "wire/peer.h"

#define TICK_MS 100 /* for what has time limits, and for lost wake-ups */

static void reap_dead(struct tsock_server *s)
{
	for (unsigned i = 0; tsi_membership_next(&s->membership, &i); i++)
		if (tsi_conn_gone(&s->conn[i]))
			tsi_server_drop(s, i,
					s->conn[i].killed
						? "was killed: too slow"
						: "is gone");
}

/* The heads that consumers wait for, asleep or spinning. */
static void read_wants(struct tsock_server *s)
{
	for (unsigned i = 0; tsi_membership_next(&s->membership, &i); i++)
		tsi_membership_want(&s->membership, i,
				    tsi_conn_want(&s->conn[i]));
}

static void kill_slow(struct tsock_server *s, int64_t now)
{
	int id;

	if (s->slow != TSOCK_SLOW_KILL)
		return;
	read_wants(s);
	id = tsi_membership_slowest(&s->membership, now, s->slow_ms);
	if (id >= 0)
		tsi_conn_kill(&s->conn[id]);
}

static void tick(struct tsock_server *s, int64_t now)
{
	tsi_offers_expire(&s->offers, now);
	kill_slow(s, now);
	tsi_view_table_sweep(s, now);
}

/* All that the control thread waits for, besides messages. */
static unsigned gather(struct tsock_server *s, struct pollfd *fds)
{
	unsigned n = 0;

	fds[n++] = (struct pollfd){ .fd = s->event, .events = POLLIN };
	n += tsi_handshake_poll(&s->handshake, s->sockets.fdpass, tsi_now_ms(),
				fds + n);
	for (unsigned i = 0; tsi_membership_next(&s->membership, &i); i++)
		fds[n++] = tsi_conn_poll(&s->conn[i]);
	return n;
}

/*
 * Every consumer has the eventfd and could switch it to blocking, so this read
 * asks for itself not to block.  Before Linux 5.8 an eventfd can't do that, and
 * only the poll() beforehand helps.
 */
static void drain_eventfd(int event)
{
	struct pollfd p = { .fd = event, .events = POLLIN };
	eventfd_t count;
	struct iovec iov = { &count, sizeof(count) };

	if (poll(&p, 1, 0) < 1 ||
	    preadv2(event, &iov, 1, -1, RWF_NOWAIT) >= 0 || errno == EAGAIN)
		return;
	if (eventfd_read(event, &count) && errno != EAGAIN)
		tsi_log(TSOCK_LOG_WARN, "the eventfd can't be read");
}

static void control_step(struct tsock_server *s)
{
	int64_t now = tsi_now_ms();

	reap_dead(s);
	tsi_server_refresh(s);
	tsi_handshake_serve(s, now);
	tick(s, now);
	tsi_server_changed(s);
}

static void make_sockets_again(struct tsock_server *s)
{
	int err;

	if (s->failed || s->stop)
		return;
	err = tsi_sockets_again(&s->sockets);
	if (err && err != TSOCK_EAGAIN)
		tsi_server_fail(s, tsock_errmsg());
}

static void *control_main(void *arg)
{
	struct tsock_server *s = arg;
	struct pollfd fds[2 + TSI_PENDING_CONNS + TSI_MAX_MEMBERS];
	bool mail, gone, stop = false;
	unsigned n;

	while (!stop) {
		tsi_sync_lock(&s->sync);
		n = gather(s, fds);
		tsi_sync_unlock(&s->sync);
		mail = false;
		if (tsi_zmq_poll(s->sockets.channel, fds, n, TICK_MS, &mail))
			tsi_log(TSOCK_LOG_ERROR, "the server can't wait: %s",
				tsock_errmsg());
		drain_eventfd(s->event);
		gone = tsi_sockets_gone(&s->sockets, tsi_now_ms());
		tsi_sync_lock(&s->sync);
		control_step(s);
		if (gone)
			make_sockets_again(s);
		stop = s->stop;
		tsi_sync_unlock(&s->sync);
		if (mail)
			tsi_messages_answer(s);
	}
	return NULL;
}

int tsi_control_start(struct tsock_server *s)
{
	int err = tsi_thread_start(&s->thread, control_main, s);

	if (!err)
		s->has_thread = true;
	return err;
}
