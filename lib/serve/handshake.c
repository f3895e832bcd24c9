/* SPDX-License-Identifier: MIT */
/*
 * handshake.c - connections on the descriptor socket: peers become readers.
 *
 * A peer with a good token gets its claim, whose true start is fixed here, and
 * its descriptors.  No peer waits for another one that sends nothing.
 */
#include "serve/handshake.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/err.h"
#include "base/log.h"
#include "serve/server.h"
#include "wire/fdpass.h"
#include "wire/peer.h"

#define TOKEN_MS 2000 /* a peer has this time to send its token */
#define ACCEPTED 64   /* before the control thread does other work */
#define DESCRIPTORS 3 /* that come with a consumer, at most */
#define PAUSE_MS 100  /* nothing is accepted, for want of descriptors */
#define LOG_MS 60000  /* between two warnings about that */

/* Membership, row and tail page.  Views that the join opened begin now. */
static int attach_reader(struct tsock_server *s, const struct tsi_offer *o,
			 struct tsi_conn *c, struct tsi_reply *a)
{
	struct tsi_join rules = tsi_server_rules(&o->join, o->view);
	struct tsi_tail_page *page;
	struct tsi_joined joined;
	int err;

	err = tsi_memfd_create("tsock-tail", sizeof(*page), TSI_MEM_PEER_WRITES,
			       &c->tail);
	if (err)
		return err;
	tsi_server_refresh(s);
	err = tsi_membership_join(&s->membership, &rules, tsi_now_ms(),
				  &joined);
	if (err) {
		tsi_memfd_close(&c->tail);
		return err;
	}
	/* A source that is lost opens too, until its view falls back. */
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (joined.opened & 1u << i && s->ring[i])
			tsi_ring_publish(
				s->ring[i],
				tsi_membership_head(&s->membership, i));
	page = tsi_memfd_base(&c->tail);
	c->ring = s->ring[o->view];
	a->reader = tsi_ring_attach(c->ring, joined.id, page);
	a->row = joined.id;
	a->start = joined.start;
	a->epoch_end = joined.epoch_end;
	a->incarnation = s->stream.incarnation;
	return 0;
}

static int send_fds(struct tsock_server *s, int sock, const struct tsi_conn *c,
		    const struct tsi_reply *a)
{
	int fds[TSI_FDPASS_FDS] = { tsi_ring_header_fd(c->ring),
				    tsi_memfd_fd(&c->tail), s->event };
	unsigned n = 3;

	/* Legacy handles went with the offer. */
	n += tsi_ring_data_fds(c->ring, fds + n);
	return tsi_fdpass_reply(sock, a, fds, n);
}

static void refuse(int sock, int code)
{
	struct tsi_reply a = { .code = code };

	tsi_err_copy(a.text, sizeof(a.text));
	tsi_fdpass_reply(sock, &a, NULL, 0);
}

/* A peer with a good token becomes a reader. */
static int accept_reader(struct tsock_server *s, const struct tsi_peer *peer)
{
	/* Without a pidfd on either side, a hang-up is what tells of a death. */
	bool keep = peer->pidfd < 0 || peer->keep_sock;
	struct tsi_reply a = { .keep_sock = keep };
	struct tsi_conn c = { .pidfd = peer->pidfd,
			      .sock = keep ? peer->sock : -1,
			      .may_kill = peer->may_kill };
	struct tsi_offer o;
	int err;

	if (!tsi_offers_take(&s->offers, peer->token, &o))
		return tsi_err(TSOCK_EAGAIN, "that token is unknown, or old");
	err = attach_reader(s, &o, &c, &a);
	if (err)
		return err;
	c.pid = peer->pid ? peer->pid : o.join.pid;
	c.batch = o.join.batch_size;
	c.staged = o.join.staged;
	memcpy(c.nonce, o.join.nonce, TSI_NONCE);
	s->conn[a.row] = c;
	tsi_log(TSOCK_LOG_INFO, "consumer %u joins: batch size %u, from %llu",
		c.pid, c.batch, (unsigned long long)a.start);
	if (send_fds(s, peer->sock, &c, &a))
		tsi_server_drop(s, a.row, "went before it got its rings");
	if (c.sock < 0)
		close(peer->sock);
	tsi_server_changed(s);
	return 0;
}

/* True when the connection is dealt with: accepted, refused or closed. */
static bool receive(struct tsock_server *s, int sock)
{
	struct tsi_peer peer;
	int err = tsi_fdpass_receive(sock, &peer);

	if (err == TSOCK_EAGAIN)
		return false;
	if (!err) {
		peer.sock = sock;
		err = accept_reader(s, &peer);
		if (!err)
			return true;
		if (peer.pidfd >= 0)
			close(peer.pidfd);
	}
	if (err != TSOCK_EPROTO)
		refuse(sock, err);
	tsi_log(TSOCK_LOG_DEBUG, "a connection was refused: %s",
		tsock_errmsg());
	close(sock);
	return true;
}

static void close_pending(struct tsi_pending_conn *c)
{
	close(c->sock);
	c->sock = -1;
}

/*
 * A silent connection of the process that has most of them; NULL: there is
 * none.  So a flood by one process makes room at this process's own cost.
 */
static struct tsi_pending_conn *worst_pending(struct tsi_handshake *h)
{
	struct tsi_pending_conn *worst = NULL;
	unsigned most = 0;

	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++) {
		struct tsi_pending_conn *c = &h->pending[i];
		unsigned n = 0;

		for (unsigned k = 0; k < TSI_PENDING_CONNS && c->sock >= 0; k++)
			n += h->pending[k].sock >= 0 &&
			     h->pending[k].pid == c->pid;
		if (n > most ||
		    (n && n == most && c->expires_ms < worst->expires_ms)) {
			worst = c;
			most = n;
		}
	}
	return worst;
}

static struct tsi_pending_conn *free_pending(struct tsi_handshake *h)
{
	struct tsi_pending_conn *c;

	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		if (h->pending[i].sock < 0)
			return &h->pending[i];
	c = worst_pending(h);
	close_pending(c);
	return c;
}

/* Without descriptors accepting fails, and the socket would stay readable. */
static void pause_accepting(struct tsi_handshake *h, int64_t now,
			    const struct tsi_descriptors *d)
{
	h->paused_ms = now + PAUSE_MS;
	if (h->logged_ms && now - h->logged_ms < LOG_MS)
		return;
	h->logged_ms = now;
	tsi_log(TSOCK_LOG_WARN,
		"%llu of %llu descriptors are in use: consumers that join have "
		"to wait; close some, or raise the producer's limit (ulimit "
		"-n)",
		(unsigned long long)d->open, (unsigned long long)d->limit);
}

/* Descriptors for one more, if need be in place of a silent connection. */
static bool may_accept(struct tsi_handshake *h, int64_t now,
		       struct tsi_descriptors *d)
{
	struct tsi_pending_conn *c;

	/* d counts on from the last look, and misses what was closed since. */
	if (!tsi_descriptors_room(d, DESCRIPTORS, 2))
		*d = tsi_descriptors();
	while (!tsi_descriptors_room(d, DESCRIPTORS, 2)) {
		c = worst_pending(h);
		if (!c) {
			pause_accepting(h, now, d);
			return false;
		}
		close_pending(c);
		d->open--;
	}
	return true;
}

/* A peer whose token is there at once never waits behind silent ones. */
static void accept_waiting(struct tsock_server *s, int64_t now)
{
	struct tsi_descriptors d = tsi_descriptors();
	struct tsi_handshake *h = &s->handshake;

	for (unsigned i = 0; i < ACCEPTED && now >= h->paused_ms; i++) {
		uint32_t pid = 0;
		int sock, err;

		if (!may_accept(h, now, &d))
			return;
		err = tsi_fdpass_accept(s->sockets.fdpass, &sock);
		if (err) {
			if (err != TSOCK_EAGAIN)
				pause_accepting(h, now, &d);
			return;
		}
		d.open += DESCRIPTORS;
		if (receive(s, sock))
			continue;
		tsi_peer_check(sock, &pid);
		*free_pending(h) = (struct tsi_pending_conn){
			.sock = sock, .pid = pid, .expires_ms = now + TOKEN_MS
		};
	}
}

void tsi_handshake_serve(struct tsock_server *s, int64_t now)
{
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++) {
		struct tsi_pending_conn *c = &s->handshake.pending[i];

		if (c->sock < 0)
			continue;
		if (receive(s, c->sock))
			c->sock = -1;
		else if (now > c->expires_ms)
			close_pending(c);
	}
	accept_waiting(s, now);
}

unsigned tsi_handshake_poll(const struct tsi_handshake *h, int listener,
			    int64_t now_ms, struct pollfd *fds)
{
	unsigned n = 0;

	/* While accepting is paused, a connection would wake us all the time. */
	fds[n++] =
		(struct pollfd){ .fd = listener,
				 .events = now_ms < h->paused_ms ? 0 : POLLIN };
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		if (h->pending[i].sock >= 0)
			fds[n++] = (struct pollfd){ .fd = h->pending[i].sock,
						    .events = POLLIN };
	return n;
}

void tsi_handshake_init(struct tsi_handshake *h)
{
	*h = (struct tsi_handshake){ .paused_ms = 0 };
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		h->pending[i].sock = -1;
}

void tsi_handshake_close(struct tsi_handshake *h)
{
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		if (h->pending[i].sock >= 0)
			close_pending(&h->pending[i]);
}
