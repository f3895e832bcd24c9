/*
 * guests.c - the door: visitors with a good token become members.
 *
 * The claim is made here, and the true start is fixed here.  A visitor that
 * says nothing keeps nobody waiting.
 */
#include "serve/desk.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#define GUEST_MS 2000
#define GUEST_LEAST_MS 200 /* then it makes room for another */

/* The claim: membership, row and tail page.  What it opened begins now. */
static int seat(struct tsock_server *s, const struct tsi_offer *o,
		struct tsi_conn *c, struct tsi_answer *a)
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
	err = tsi_members_join(&s->members, &rules, tsi_now_ms(), &claim);
	if (err) {
		tsi_memfd_close(&c->tail);
		return err;
	}
	for (unsigned i = 1; i < TSI_VIEWS; i++)
		if (claim.opened & 1u << i)
			tsi_ring_publish(&s->view[i].ring,
					 s->members.view[i].head);
	page = c->tail.base;
	tsi_ring_seat(&s->view[o->view].ring, claim.id, claim.start, page);
	a->row = claim.id;
	a->start = claim.start;
	a->epoch_end = claim.epoch_end;
	a->incarnation = s->stream.incarnation;
	return 0;
}

static int hand_over(struct tsock_server *s, int sock, unsigned view,
		     const struct tsi_conn *c, const struct tsi_answer *a)
{
	const struct tsi_ring *r = &s->view[view].ring;
	int fds[TSI_DOOR_FDS] = { r->header.fd, c->tail.fd, s->event };
	unsigned n = 3;

	for (unsigned i = 0; i < r->shared->nfields; i++) {
		int fd = r->on_gpu ? r->gpu[i].fd : r->data[i].fd;

		/* Legacy handles went with the offer. */
		if (fd >= 0)
			fds[n++] = fd;
	}
	return tsi_door_answer(sock, a, fds, n);
}

static void refuse(int sock, int code)
{
	struct tsi_answer a = { .code = code };
	const char *text = tsock_errmsg();
	size_t len = strlen(text);

	memcpy(a.text, text, len < sizeof(a.text) ? len : sizeof(a.text) - 1);
	tsi_door_answer(sock, &a, NULL, 0);
}

/* A visitor with a good token becomes a member. */
static int admit(struct tsock_server *s, const struct tsi_visitor *v)
{
	struct tsi_offer *o = tsi_offer_of(s, v->token), used;
	/* The hang-up tells of a death where one of us has no pidfd. */
	bool keep = v->pidfd < 0 || v->keep_sock;
	struct tsi_answer a = { .keep_sock = keep };
	struct tsi_conn c = { .pidfd = v->pidfd,
			      .sock = keep ? v->sock : -1,
			      .may_kill = v->may_kill };
	int err;

	if (!o)
		return tsi_err(TSOCK_EAGAIN, "that token is unknown, or old");
	used = *o;
	tsi_offer_forget(s, o);
	err = seat(s, &used, &c, &a);
	if (err)
		return err;
	c.pid = v->pid ? v->pid : used.join.pid;
	c.batch = used.join.batch_size;
	c.staged = used.join.staged;
	memcpy(c.nonce, used.join.nonce, TSI_NONCE);
	s->conn[a.row] = c;
	tsi_log(TSOCK_LOG_INFO, "consumer %u joins: batch size %u, from %llu",
		c.pid, c.batch, (unsigned long long)a.start);
	if (hand_over(s, v->sock, used.view, &c, &a))
		tsi_server_drop(s, a.row, "went before it got its rings");
	if (c.sock < 0)
		close(v->sock);
	tsi_server_changed(s);
	return 0;
}

/* True when the visitor's socket is dealt with. */
static bool receive(struct tsock_server *s, int sock)
{
	struct tsi_visitor v;
	int err = tsi_door_receive(sock, &v);

	if (err == TSOCK_EAGAIN)
		return false;
	if (!err) {
		v.sock = sock;
		err = admit(s, &v);
		if (!err)
			return true;
		if (v.pidfd >= 0)
			close(v.pidfd);
	}
	if (err != TSOCK_EPROTO)
		refuse(sock, err);
	tsi_log(TSOCK_LOG_DEBUG, "a visitor turned away: %s", tsock_errmsg());
	close(sock);
	return true;
}

static void open_door(struct tsock_server *s)
{
	int sock;

	for (unsigned i = 0; i < TSI_VISITORS; i++) {
		struct tsi_guest *g = &s->guest[i];

		if (g->sock >= 0)
			continue;
		if (tsi_door_accept(s->door, &sock))
			return;
		g->sock = sock;
		g->expires_ms = tsi_now_ms() + GUEST_MS;
	}
}

bool tsi_guests_full(const struct tsock_server *s)
{
	for (unsigned i = 0; i < TSI_VISITORS; i++)
		if (s->guest[i].sock < 0)
			return false;
	return true;
}

void tsi_guests_serve(struct tsock_server *s, int64_t now)
{
	open_door(s);
	/* Those who say nothing keep nobody out. */
	if (tsi_guests_full(s))
		now += GUEST_MS - GUEST_LEAST_MS;
	for (unsigned i = 0; i < TSI_VISITORS; i++) {
		struct tsi_guest *g = &s->guest[i];

		if (g->sock < 0)
			continue;
		if (receive(s, g->sock)) {
			g->sock = -1;
		} else if (now > g->expires_ms) {
			close(g->sock);
			g->sock = -1;
		}
	}
}
