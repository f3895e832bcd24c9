/*
 * handshake.c - connections on the descriptor socket: peers become readers.
 *
 * A peer with a good token gets its claim, whose true start is fixed here, and
 * its descriptors.  A peer that sends nothing keeps nobody waiting.
 */
#include "serve/control.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/err.h"
#include "base/log.h"
#include "wire/peer.h"

#define GUEST_MS 2000
#define ACCEPTED 64   /* at most, before others have their turn */
#define DESCRIPTORS 3 /* that come with a consumer, at most */
#define SHUT_MS 100   /* without descriptors */
#define SAY_MS 60000  /* that there is none: at most once in so long */

/* The claim: membership, row and tail page.  What it opened begins now. */
static int attach_reader(struct tsock_server *s, const struct tsi_offer *o,
			 struct tsi_conn *c, struct tsi_reply *a)
{
	struct tsi_join rules = tsi_offer_rules(&o->join, o->view);
	struct tsi_tail_page *page;
	struct tsi_claim claim;
	int err;

	err = tsi_memfd_create("tsock-tail", sizeof(*page), TSI_MEM_PEER_WRITES,
			       &c->tail);
	if (err)
		return err;
	tsi_server_refresh(s);
	err = tsi_membership_join(&s->membership, &rules, tsi_now_ms(), &claim);
	if (err) {
		tsi_memfd_close(&c->tail);
		return err;
	}
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (claim.opened & 1u << i)
			tsi_ring_publish(&s->view[i].ring,
					 s->membership.view[i].head);
	page = c->tail.base;
	tsi_ring_attach(&s->view[o->view].ring, claim.id, page);
	a->row = claim.id;
	a->start = claim.start;
	a->epoch_end = claim.epoch_end;
	a->incarnation = s->stream.incarnation;
	return 0;
}

static int send_fds(struct tsock_server *s, int sock, unsigned view,
		    const struct tsi_conn *c, const struct tsi_reply *a)
{
	const struct tsi_ring *r = &s->view[view].ring;
	int fds[TSI_FDPASS_FDS] = { r->header.fd, c->tail.fd, s->event };
	unsigned n = 3;

	for (unsigned i = 0; i < r->shared->nfields; i++) {
		int fd = r->on_gpu ? r->gpu[i].fd : r->data[i].fd;

		/* Legacy handles went with the offer. */
		if (fd >= 0)
			fds[n++] = fd;
	}
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
	struct tsi_offer *o = tsi_offer_of(s, peer->token), used;
	/* The hang-up tells of a death where one of us has no pidfd. */
	bool keep = peer->pidfd < 0 || peer->keep_sock;
	struct tsi_reply a = { .keep_sock = keep };
	struct tsi_conn c = { .pidfd = peer->pidfd,
			      .sock = keep ? peer->sock : -1,
			      .may_kill = peer->may_kill };
	int err;

	if (!o)
		return tsi_err(TSOCK_EAGAIN, "that token is unknown, or old");
	used = *o;
	tsi_offer_forget(s, o);
	err = attach_reader(s, &used, &c, &a);
	if (err)
		return err;
	c.pid = peer->pid ? peer->pid : used.join.pid;
	c.batch = used.join.batch_size;
	c.staged = used.join.staged;
	memcpy(c.nonce, used.join.nonce, TSI_NONCE);
	s->conn[a.row] = c;
	tsi_log(TSOCK_LOG_INFO, "consumer %u joins: batch size %u, from %llu",
		c.pid, c.batch, (unsigned long long)a.start);
	if (send_fds(s, peer->sock, used.view, &c, &a))
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

static void send_away(struct tsi_pending_conn *g)
{
	close(g->sock);
	g->sock = -1;
}

/* One whose process has the most here who say nothing; NULL if there is none.
 * So a flood by one process makes room at its own cost. */
static struct tsi_pending_conn *least_welcome(struct tsock_server *s)
{
	struct tsi_pending_conn *worst = NULL;
	unsigned most = 0;

	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++) {
		struct tsi_pending_conn *g = &s->pending[i];
		unsigned n = 0;

		for (unsigned k = 0; k < TSI_PENDING_CONNS && g->sock >= 0; k++)
			n += s->pending[k].sock >= 0 &&
			     s->pending[k].pid == g->pid;
		if (n > most ||
		    (n && n == most && g->expires_ms < worst->expires_ms)) {
			worst = g;
			most = n;
		}
	}
	return worst;
}

/* A free place. */
static struct tsi_pending_conn *place(struct tsock_server *s)
{
	struct tsi_pending_conn *g;

	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		if (s->pending[i].sock < 0)
			return &s->pending[i];
	g = least_welcome(s);
	send_away(g);
	return g;
}

/* Without descriptors accepting fails, and the socket would stay readable. */
static void pause_accepting(struct tsock_server *s, int64_t now,
			    const struct tsi_descriptors *d)
{
	s->accept_again_ms = now + SHUT_MS;
	if (s->accept_said_ms && now - s->accept_said_ms < SAY_MS)
		return;
	s->accept_said_ms = now;
	tsi_log(TSOCK_LOG_WARN,
		"%llu of %llu descriptors are in use: consumers that join have "
		"to wait; close some, or raise the producer's limit (ulimit "
		"-n)",
		(unsigned long long)d->open, (unsigned long long)d->limit);
}

/* Room for one more, if need be in the place of one that says nothing. */
static bool may_accept(struct tsock_server *s, int64_t now,
		       struct tsi_descriptors *d)
{
	struct tsi_pending_conn *g;

	/* Counted on from the last look: those who left are still in it. */
	if (!tsi_descriptors_room(d, DESCRIPTORS, 2))
		*d = tsi_descriptors();
	while (!tsi_descriptors_room(d, DESCRIPTORS, 2)) {
		g = least_welcome(s);
		if (!g) {
			pause_accepting(s, now, d);
			return false;
		}
		send_away(g);
		d->open--;
	}
	return true;
}

/* Who has its packet in its hand never waits behind those who say nothing. */
static void accept_waiting(struct tsock_server *s, int64_t now)
{
	struct tsi_descriptors d = tsi_descriptors();

	for (unsigned i = 0; i < ACCEPTED && now >= s->accept_again_ms; i++) {
		struct tsi_pending_conn *g;
		uint32_t pid = 0;
		int sock, err;

		if (!may_accept(s, now, &d))
			return;
		err = tsi_fdpass_accept(s->sockets.fdpass, &sock);
		if (err) {
			if (err != TSOCK_EAGAIN)
				pause_accepting(s, now, &d);
			return;
		}
		d.open += DESCRIPTORS;
		if (receive(s, sock))
			continue;
		tsi_peer_check(sock, &pid);
		g = place(s);
		*g = (struct tsi_pending_conn){ .sock = sock,
						.pid = pid,
						.expires_ms = now + GUEST_MS };
	}
}

void tsi_handshake_serve(struct tsock_server *s, int64_t now)
{
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++) {
		struct tsi_pending_conn *g = &s->pending[i];

		if (g->sock < 0)
			continue;
		if (receive(s, g->sock))
			g->sock = -1;
		else if (now > g->expires_ms)
			send_away(g);
	}
	accept_waiting(s, now);
}
