/*
 * desk.c - the server's own thread: who comes, who goes, who is too slow.
 *
 * It answers messages, opens the door, watches the consumers' processes, and
 * looks at the tails whenever one of them rings.  It never touches a sample,
 * and never waits for a consumer.
 */
#include "serve/server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#define TICK_MS 100 /* safety net for lost hints, and for policies */
#define OFFER_MS 10000
#define OFFER_LEAST_MS 1000 /* then it makes room for another */
#define GUEST_MS 2000
#define GUEST_LEAST_MS 200 /* the same */
#define MAIL 64            /* messages read before others have their turn */

/* ---- messages ---- */

static void answer_error(struct tsi_msg *m, int code)
{
	const char *text = tsock_errmsg();
	size_t len = strlen(text);

	m->type = TSI_ERROR;
	memset(&m->u.error, 0, sizeof(m->u.error));
	m->u.error.code = code;
	if (len >= sizeof(m->u.error.text))
		len = sizeof(m->u.error.text) - 1;
	memcpy(m->u.error.text, text, len);
}

static void answer_meta(struct tsock_server *s, struct tsi_msg *m)
{
	uint32_t at = m->u.meta.offset, total = s->stream.meta_bytes;
	uint32_t len = at < total ? total - at : 0;

	if (len > TSI_CHUNK)
		len = TSI_CHUNK;
	m->type = TSI_META_DATA;
	memset(&m->u.meta_data, 0, sizeof(m->u.meta_data));
	m->u.meta_data.offset = at;
	m->u.meta_data.len = len;
	memcpy(m->u.meta_data.bytes, s->meta + (len ? at : 0), len);
}

static int find_member(const struct tsock_server *s, const uint8_t *nonce)
{
	for (unsigned i = 0; i < s->members.rows; i++)
		if (s->members.member[i].used &&
		    !memcmp(s->conn[i].nonce, nonce, TSI_NONCE))
			return (int)i;
	return -1;
}

static void forget_offer(struct tsock_server *s, struct tsi_offer *o)
{
	o->used = false;
	s->view[o->view].offers--;
	if (!s->members.view[o->view].active)
		s->view[o->view].idle_ms = tsi_now_ms();
}

/* A free one, or the oldest if whoever has it had time enough to come. */
static struct tsi_offer *room_for_offer(struct tsock_server *s)
{
	struct tsi_offer *o = &s->offer[0];

	for (unsigned i = 0; i < TSI_OFFERS; i++) {
		struct tsi_offer *x = &s->offer[i];

		if (!x->used)
			return x;
		if (x->expires_ms < o->expires_ms)
			o = x;
	}
	if (tsi_now_ms() < o->expires_ms - OFFER_MS + OFFER_LEAST_MS)
		return NULL;
	forget_offer(s, o);
	return o;
}

static struct tsi_offer *offer_for(struct tsock_server *s,
				   const struct tsi_msg_join *join,
				   unsigned view)
{
	struct tsi_offer *o;

	for (unsigned i = 0; i < TSI_OFFERS; i++) {
		struct tsi_offer *x = &s->offer[i];

		if (x->used && !memcmp(x->join.nonce, join->nonce, TSI_NONCE))
			return x;
	}
	o = room_for_offer(s);
	if (!o || getrandom(o->token, TSI_TOKEN, 0) != TSI_TOKEN)
		return NULL;
	o->used = true;
	o->join = *join;
	o->view = view;
	o->expires_ms = tsi_now_ms() + OFFER_MS;
	s->view[view].offers++;
	return o;
}

static struct tsi_join join_rules(const struct tsi_msg_join *join,
				  unsigned view)
{
	return (struct tsi_join){ .view = view,
				  .join = join->join,
				  .after = join->after };
}

static int check_join(const struct tsock_server *s,
		      const struct tsi_msg_join *j)
{
	if (s->failed)
		return tsi_err(TSOCK_ESTREAM, "%s", s->error);
	if (!j->batch_size || j->batch_size > s->stream.max_batch)
		return tsi_err(TSOCK_EREFUSED,
			       "batch size %u: the stream allows 1 to %u; "
			       "start the producer with a larger --max-batch",
			       j->batch_size, s->stream.max_batch);
	if (j->join > TSOCK_JOIN_NOW)
		return tsi_err(TSOCK_EREFUSED, "join mode %u is unknown",
			       j->join);
	if (find_member(s, j->nonce) >= 0)
		return tsi_err(TSOCK_EREFUSED, "that connection has joined");
	return 0;
}

/* How a ring on a GPU is opened; descriptors come through the door. */
static void offer_handles(const struct tsi_view *v, struct tsi_msg_offer *out)
{
	out->path = v->spec.gpu ? v->spec.path : TSOCK_PATH_AUTO;
	if (out->path != TSOCK_PATH_LEGACY)
		return;
	out->nfields = v->geometry.nfields;
	for (unsigned i = 0; i < out->nfields; i++)
		memcpy(out->handle[i], v->ring.gpu[i].handle, TSI_GPU_HANDLE);
}

static int offer(struct tsock_server *s, const struct tsi_msg_join *j,
		 struct tsi_msg_offer *out)
{
	struct tsi_join rules;
	struct tsi_offer *o;
	unsigned view;
	int err = check_join(s, j);

	if (!err)
		err = tsi_views_find(s, &j->view, &view);
	if (err)
		return err;
	rules = join_rules(j, view);
	err = tsi_members_forecast(&s->members, &rules, &out->forecast);
	if (err)
		return err;
	o = offer_for(s, j, view);
	if (!o)
		return TSOCK_EAGAIN; /* too many at once: ask again */
	memcpy(out->token, o->token, TSI_TOKEN);
	offer_handles(&s->view[view], out);
	return 0;
}

static void answer_join(struct tsock_server *s, struct tsi_msg *m)
{
	struct tsi_msg_join j = m->u.join;
	struct tsi_msg_offer out = { .forecast = 0 };
	int err = offer(s, &j, &out);

	if (err && err != TSOCK_EAGAIN) {
		answer_error(m, err);
		return;
	}
	m->type = err ? TSI_WAIT : TSI_OFFER;
	if (!err)
		m->u.offer = out;
}

static void answer_leave(struct tsock_server *s, struct tsi_msg *m)
{
	struct tsi_msg_leave l = m->u.leave;
	int id = find_member(s, l.nonce);

	for (unsigned i = 0; i < TSI_OFFERS; i++)
		if (s->offer[i].used &&
		    !memcmp(s->offer[i].join.nonce, l.nonce, TSI_NONCE))
			forget_offer(s, &s->offer[i]);
	if (id >= 0) {
		tsi_server_refresh(s); /* its last tail counts */
		if (s->members.member[id].used)
			tsi_server_drop(s, (unsigned)id, "leaves");
	}
	m->type = TSI_LEFT;
}

static void answer_stats(struct tsock_server *s, struct tsi_msg *m)
{
	m->type = TSI_STATS_DATA;
	tsi_server_stats(s, &m->u.stats);
}

/* Turn a request into its reply; false when none is due. */
static bool answer(struct tsock_server *s, struct tsi_msg *m)
{
	switch (m->type) {
	case TSI_HELLO:
		m->type = TSI_STREAM;
		m->u.stream = s->stream;
		return true;
	case TSI_META:
		answer_meta(s, m);
		return true;
	case TSI_JOIN:
		answer_join(s, m);
		return true;
	case TSI_LEAVE:
		answer_leave(s, m);
		return true;
	case TSI_STATS:
		answer_stats(s, m);
		return true;
	default:
		return false;
	}
}

/* The bus is this thread's: without the lock, which a flood would keep. */
static void read_bus(struct tsock_server *s)
{
	struct tsi_peer peer;
	struct tsi_msg m;

	for (unsigned i = 0; i < MAIL; i++) {
		int err = tsi_bus_recv(s->bus, &peer, &m);
		bool due;

		if (err == TSOCK_EPROTO) {
			tsi_log(TSOCK_LOG_DEBUG, "a message dropped: %s",
				tsock_errmsg());
			continue;
		}
		if (err)
			return;
		pthread_mutex_lock(&s->lock);
		due = answer(s, &m);
		pthread_mutex_unlock(&s->lock);
		if (due)
			tsi_bus_send(s->bus, &peer, &m);
	}
}

/* ---- the door ---- */

static struct tsi_offer *offer_of(struct tsock_server *s, const uint8_t *token)
{
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		if (s->offer[i].used &&
		    !memcmp(s->offer[i].token, token, TSI_TOKEN))
			return &s->offer[i];
	return NULL;
}

/* The claim: membership, row and tail page.  What it opened begins now. */
static int seat(struct tsock_server *s, const struct tsi_offer *o,
		struct tsi_conn *c, struct tsi_answer *a)
{
	struct tsi_join rules = join_rules(&o->join, o->view);
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
	struct tsi_offer *o = offer_of(s, v->token), used;
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
	forget_offer(s, o);
	err = seat(s, &used, &c, &a);
	if (err)
		return err;
	c.pid = v->pid ? v->pid : used.join.pid;
	c.batch = used.join.batch_size;
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

static bool house_full(const struct tsock_server *s)
{
	for (unsigned i = 0; i < TSI_VISITORS; i++)
		if (s->guest[i].sock < 0)
			return false;
	return true;
}

static void serve_guests(struct tsock_server *s, int64_t now)
{
	/* Those who say nothing keep nobody out. */
	if (house_full(s))
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

/* ---- deaths, the slow, and the loop ---- */

static void bury(struct tsock_server *s)
{
	for (unsigned i = 0; i < s->members.rows; i++)
		if (s->members.member[i].used &&
		    tsi_peer_gone(s->conn[i].pidfd, s->conn[i].sock))
			tsi_server_drop(s, i,
					s->conn[i].killed
						? "was killed: too slow"
						: "is gone");
}

static void kill_slow(struct tsock_server *s, int64_t now)
{
	for (unsigned i = 0; s->slow == TSOCK_SLOW_KILL && i < TSI_VIEWS; i++) {
		struct tsi_conn *c;
		int id;

		if (!s->members.view[i].active || !s->view[i].blocked_ms)
			continue;
		id = tsi_members_slowest(&s->members, i, s->view[i].blocked_ms,
					 now, s->slow_ms);
		if (id < 0 || s->conn[id].killed)
			continue;
		c = &s->conn[id];
		c->killed = true;
		if (!c->may_kill)
			tsi_log(TSOCK_LOG_WARN,
				"consumer %u is too slow, but this kernel "
				"can't tell for certain who it is: not killed",
				c->pid);
		else
			syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL,
				0);
	}
}

static void tick(struct tsock_server *s, int64_t now)
{
	for (unsigned i = 0; i < TSI_OFFERS; i++)
		if (s->offer[i].used && now > s->offer[i].expires_ms)
			forget_offer(s, &s->offer[i]);
	kill_slow(s, now);
	tsi_views_sweep(s, now);
}

static unsigned gather(struct tsock_server *s, struct pollfd *fds)
{
	unsigned n = 0;

	fds[n++] = (struct pollfd){ .fd = s->event, .events = POLLIN };
	/* Nobody else fits in: don't wake up for them. */
	fds[n++] = (struct pollfd){ .fd = s->door,
				    .events = house_full(s) ? 0 : POLLIN };
	for (unsigned i = 0; i < TSI_VISITORS; i++)
		if (s->guest[i].sock >= 0)
			fds[n++] = (struct pollfd){ .fd = s->guest[i].sock,
						    .events = POLLIN };
	for (unsigned i = 0; i < s->members.rows; i++) {
		const struct tsi_conn *c = &s->conn[i];

		if (s->members.member[i].used)
			fds[n++] = (struct pollfd){
				.fd = c->pidfd >= 0 ? c->pidfd : c->sock,
				.events = c->pidfd >= 0 ? POLLIN : POLLRDHUP,
			};
	}
	return n;
}

/*
 * Every consumer has the eventfd, and can make it one that blocks: so ask for
 * this read alone not to.  Before Linux 5.8 only a look beforehand helps.
 */
static void hear_bell(int event)
{
	struct pollfd p = { .fd = event, .events = POLLIN };
	eventfd_t rung;
	struct iovec iov = { &rung, sizeof(rung) };

	if (poll(&p, 1, 0) < 1 ||
	    preadv2(event, &iov, 1, -1, RWF_NOWAIT) >= 0 || errno == EAGAIN)
		return;
	if (eventfd_read(event, &rung) && errno != EAGAIN)
		tsi_log(TSOCK_LOG_WARN, "the eventfd can't be read");
}

static void desk_work(struct tsock_server *s)
{
	int64_t now = tsi_now_ms();

	bury(s);
	tsi_server_refresh(s);
	open_door(s);
	serve_guests(s, now);
	tick(s, now);
	tsi_server_changed(s);
}

static void *desk_main(void *arg)
{
	struct tsock_server *s = arg;
	struct pollfd fds[2 + TSI_VISITORS + TSI_MAX_ROWS];
	bool mail, stop = false;
	unsigned n;

	while (!stop) {
		pthread_mutex_lock(&s->lock);
		n = gather(s, fds);
		pthread_mutex_unlock(&s->lock);
		mail = false;
		if (tsi_bus_poll(s->bus, fds, n, TICK_MS, &mail))
			tsi_log(TSOCK_LOG_ERROR, "the server can't wait: %s",
				tsock_errmsg());
		hear_bell(s->event);
		pthread_mutex_lock(&s->lock);
		desk_work(s);
		stop = s->stop;
		pthread_mutex_unlock(&s->lock);
		if (mail)
			read_bus(s);
	}
	return NULL;
}

int tsi_desk_start(struct tsock_server *s)
{
	int err = tsi_thread_start(&s->thread, desk_main, s);

	if (!err)
		s->has_thread = true;
	return err;
}
