/* SPDX-License-Identifier: MIT */
/*
 * handshake.c - connections on the descriptor socket: peers become readers.
 *
 * A peer with an offer's token gets its claim, whose true start is fixed here,
 * and its descriptors; one with a table's token gets that one's memory.  No peer waits for another one that sends nothing.
 */
#include "serve/handshake.h"

#include <unistd.h>

#include "base/descriptors.h"
#include "base/err.h"
#include "base/log.h"
#include "wire/fdpass.h"
#include "wire/peer.h"

#define TOKEN_MS 2000 /* a peer has this time to send its token */
#define ACCEPTED 64   /* before the control thread does other work */
#define DESCRIPTORS 3 /* that come with a consumer, at most */
#define PAUSE_MS 100  /* nothing is accepted, for want of descriptors */
#define LOG_MS 60000  /* between two warnings about that */

static void refuse(int sock, int code)
{
	struct tsi_reply a = { .code = code };

	tsi_err_copy(a.text, sizeof(a.text));
	tsi_fdpass_reply(sock, &a, NULL, 0);
}

/* The reply that makes a peer a reader, with what it has to map. */
static void give_rings(struct tsi_handshake *h, const struct tsi_offer *o,
		       const struct tsi_peer *peer, const struct tsi_reply *a)
{
	int fds[TSI_FDPASS_FDS];
	unsigned n = tsi_readers_fds(h->readers, a->row, h->event, fds);

	if (tsi_fdpass_reply(peer->sock, a, fds, n))
		tsi_readers_undo(h->readers, a->row,
				 "went before it got its rings");
	else
		tsi_readers_confirm(h->readers, o, a->row);
}

/* A peer with a good token becomes a reader. */
static int accept_reader(struct tsi_handshake *h, const struct tsi_peer *peer)
{
	struct tsi_reply a = { .incarnation = h->incarnation };
	struct tsi_offer o;
	int err;

	if (!tsi_offers_take(h->offers, peer->token, &o))
		return tsi_err(TSOCK_EAGAIN, "that token is unknown, or old");
	err = tsi_readers_join(h->readers, &o, peer, &a);
	if (err)
		return err;
	/* A producer that dies from here on has it in its record. */
	tsi_readers_save_record(h->readers);
	if (tsi_readers_stands(h->readers, &o))
		give_rings(h, &o, peer, &a);
	else if (!a.keep_sock)
		refuse(peer->sock, tsi_err(TSOCK_EAGAIN,
					   "the view failed that was joined"));
	if (!a.keep_sock)
		close(peer->sock);
	tsi_readers_changed(h->readers);
	return 0;
}

/* A peer with the token of a table gets its memory; false: it has none. */
static bool give_table(struct tsi_handshake *h, const struct tsi_peer *peer)
{
	struct tsi_reply a = {
		.incarnation = h->incarnation,
		/* It needs no other sign of life; both ends close it. */
		.keep_sock = peer->pidfd < 0 || peer->keep_sock,
	};
	int fd = tsi_tables_fd(h->tables, peer->token);

	if (fd < 0)
		return false;
	tsi_fdpass_reply(peer->sock, &a, &fd, 1);
	if (peer->pidfd >= 0)
		close(peer->pidfd);
	close(peer->sock);
	return true;
}

/* True when the connection is dealt with: accepted, refused or closed. */
static bool receive(struct tsi_handshake *h, int sock)
{
	struct tsi_peer peer;
	int err = tsi_fdpass_receive(sock, &peer);

	if (err == TSOCK_EAGAIN)
		return false;
	if (!err) {
		peer.sock = sock;
		if (give_table(h, &peer))
			return true;
		err = accept_reader(h, &peer);
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
static void accept_waiting(struct tsi_handshake *h, int listener, int64_t now)
{
	struct tsi_descriptors d = tsi_descriptors();

	for (unsigned i = 0; i < ACCEPTED && now >= h->paused_ms; i++) {
		uint32_t pid = 0;
		int sock, err;

		if (!may_accept(h, now, &d))
			return;
		err = tsi_fdpass_accept(listener, &sock);
		if (err) {
			if (err != TSOCK_EAGAIN)
				pause_accepting(h, now, &d);
			return;
		}
		d.open += DESCRIPTORS;
		if (receive(h, sock))
			continue;
		tsi_peer_check(sock, &pid);
		*free_pending(h) = (struct tsi_pending_conn){
			.sock = sock, .pid = pid, .expires_ms = now + TOKEN_MS
		};
	}
}

void tsi_handshake_serve(struct tsi_handshake *h, int listener, int64_t now)
{
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++) {
		struct tsi_pending_conn *c = &h->pending[i];

		if (c->sock < 0)
			continue;
		if (receive(h, c->sock))
			c->sock = -1;
		else if (now > c->expires_ms)
			close_pending(c);
	}
	accept_waiting(h, listener, now);
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

void tsi_handshake_init(struct tsi_handshake *h, struct tsi_readers *readers,
			struct tsi_offers *offers,
			const struct tsi_tables *tables)
{
	*h = (struct tsi_handshake){ .readers = readers,
				     .offers = offers,
				     .tables = tables };
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		h->pending[i].sock = -1;
}

void tsi_handshake_begin(struct tsi_handshake *h, int event,
			 uint64_t incarnation)
{
	h->event = event;
	h->incarnation = incarnation;
}

void tsi_handshake_close(struct tsi_handshake *h)
{
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		if (h->pending[i].sock >= 0)
			close_pending(&h->pending[i]);
}
