/* SPDX-License-Identifier: MIT */
/*
 * protocol_around.h - what lib/serve calls in a program that has no sockets, no
 * other processes and no time but those of protocol.h.
 *
 * For one program: functions of the library's own names are defined here, so
 * that the library's files with the real ones are not linked.
 */
#ifndef TEST_LIB_PROTOCOL_AROUND_H
#define TEST_LIB_PROTOCOL_AROUND_H

#include "test/lib/protocol.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/log.h"
#include "ring/ring.h"
#include "serve/messages.h"
#include "wire/peer.h"
#include "wire/zmq.h"

/* The producer may die now; the program that includes this says how. */
static void moment(void);

/* ---- ZeroMQ ---- */

int tsi_zmq_recv(struct tsi_channel *ch, struct tsi_routing_id *id,
		 struct tsi_msg *m)
{
	struct letter l;

	(void)ch;
	for (unsigned i = 0; i < PEOPLE; i++) {
		struct consumer *q = &machine.who[i];

		if (!machine_fetch(&q->out, &l))
			continue;
		id->bytes[0] = (uint8_t)i;
		m->type = l.type;
		m->serial = l.serial;
		m->u.join = l.join;
		if (l.type == TSI_LEAVE)
			memcpy(m->u.leave.nonce, l.join.nonce, TSI_NONCE);
		else if (q->pid == l.join.pid &&
			 l.join.incarnation == machine.incarnation) {
			q->asked_in = machine.incarnation;
			q->asked_ms = machine.now;
		}
		return 0;
	}
	return TSOCK_EAGAIN;
}

/*
 * Does nobody else need the stream?  A claim that it had itself, and that the
 * producer hasn't heard the end of, is somebody else's.
 */
static bool is_alone(const struct consumer *q)
{
	bool others = machine_is_held() || q->stale || q->world > 1;

	for (unsigned i = 0; i < PEOPLE; i++) {
		const struct consumer *o = &machine.who[i];

		others |= o != q && (consumer_is_busy(o) || o->stale);
		/* An epoch that others of its job have begun is kept for it. */
		others |=
			o->pid && o->world > 1 && o->begun < machine.job_epochs;
		/* Its LEAVE has still to be sent, or to arrive. */
		others |= machine.detaches && (o->before.kept || o->out.n);
	}
	return !others;
}

int tsi_zmq_send(struct tsi_channel *ch, const struct tsi_routing_id *id,
		 const struct tsi_msg *m)
{
	struct letter l = { .type = m->type, .serial = m->serial };

	(void)ch;
	l.alone = is_alone(&machine.who[id->bytes[0]]);
	moment();
	if (m->type == TSI_ERROR)
		l.code = m->u.error.code;
	if (m->type == TSI_OFFER)
		memcpy(l.token, m->u.offer.token, TSI_TOKEN);
	machine_post(&machine.who[id->bytes[0]].in, &l);
	moment();
	return 0;
}

/* ---- the descriptor socket ---- */

int tsi_fdpass_accept(int fd, int *sock)
{
	(void)fd;
	for (unsigned i = 0; i < CALLS; i++) {
		struct call *c = &machine.call[(machine.calls + i) % CALLS];

		if (!c->number || c->accepted)
			continue;
		c->accepted = true;
		*sock = NO_FD + (int)c->number;
		return 0;
	}
	return TSOCK_EAGAIN;
}

static struct call *call_of(int sock)
{
	uint32_t number = (uint32_t)(sock - NO_FD);
	struct call *c = &machine.call[number % CALLS];

	return c->number == number ? c : NULL;
}

int tsi_fdpass_receive(int sock, struct tsi_peer *peer)
{
	struct call *c = call_of(sock);

	if (!c)
		return TSOCK_EPROTO;
	if (machine.now < c->due)
		return TSOCK_EAGAIN;
	*peer = (struct tsi_peer){ .pid = c->pid, .pidfd = NO_FD };
	memcpy(peer->token, c->token, TSI_TOKEN);
	return 0;
}

/* Does one come while others have still to say where they are? */
static void check_nobody_is_passed(const struct consumer *q)
{
	for (unsigned i = 0; i < PEOPLE; i++) {
		const struct consumer *o = &machine.who[i];

		if (o != q && o->owed)
			check(o->asked_in == machine.incarnation ||
			      machine.now - machine.began_ms >= 500);
	}
}

int tsi_fdpass_reply(int sock, const struct tsi_reply *reply, const int *fds,
		     unsigned nfds)
{
	struct call *c = call_of(sock);
	bool alone = c && is_alone(&machine.who[c->person]);

	(void)fds;
	(void)nfds;
	moment();
	if (!c || c->hung_up) {
		if (c)
			c->cut = true;
		return TSOCK_EPROTO;
	}
	c->reply = *reply;
	c->alone = alone;
	if (!reply->code) {
		c->page = machine.made;
		c->page_number = machine.page[c->page].number;
		check_nobody_is_passed(&machine.who[c->person]);
	}
	c->answered = true;
	moment();
	return 0;
}

/* ---- the lock, and who sleeps for the rings ---- */

void tsi_sync_set_ops(struct tsi_sync *s, const struct tsi_sync_ops *ops,
		      void *arg)
{
	s->ops = ops;
	s->arg = arg;
}

void tsi_sync_lock(struct tsi_sync *s)
{
	s->ops->stop(s->arg);
}

void tsi_sync_unlock(struct tsi_sync *s)
{
	(void)s->ops->go_on(s->arg);
}

void tsi_sync_pass(struct tsi_sync *s)
{
	(void)s;
}

void tsi_sync_wake_workers(struct tsi_sync *s, uint64_t samples)
{
	(void)s;
	(void)samples;
}

unsigned tsi_sync_sleepers(const struct tsi_sync *s)
{
	(void)s;
	return 0;
}

void tsi_sync_wake_stages(struct tsi_sync *s)
{
	(void)s;
}

void tsi_sync_wait_room(struct tsi_sync *s, int64_t until_ns)
{
	(void)s;
	(void)until_ns;
}

void tsi_sync_wait_staged(struct tsi_sync *s, int64_t until_ns)
{
	(void)s;
	(void)until_ns;
}

void tsi_sync_wait_head(struct tsi_sync *s, uint64_t head, int64_t until_ns)
{
	(void)s;
	(void)head;
	(void)until_ns;
}

bool tsi_sync_stage_wants(const struct tsi_sync *s, uint64_t head)
{
	(void)s;
	(void)head;
	return false;
}

/* ---- the other parts of a server ---- */

int tsi_view_table_find(struct tsi_view_table *t,
			const struct tsi_view_spec *spec,
			const struct tsi_ranks *part, unsigned *view)
{
	(void)t;
	(void)part;
	*view = spec->dtype;
	return 0;
}

const struct tsi_address *tsi_sockets_address(const struct tsi_sockets *k)
{
	return &k->address;
}

int tsi_sockets_err_restarted(const struct tsi_sockets *k)
{
	(void)k;
	return TSOCK_ELOST;
}

void tsi_stats_read(const struct tsi_stats *from, struct tsock_stats *out)
{
	(void)from;
	(void)out;
}

/* ---- the kernel ---- */

/* Nobody asks for tables. */
int tsi_tables_find(struct tsi_tables *t, const struct tsi_msg_table *q,
		    struct tsi_msg_table_data *out)
{
	(void)t;
	(void)q;
	(void)out;
	return TSOCK_ENOTSUP;
}

int tsi_tables_fd(const struct tsi_tables *t, const uint8_t *token)
{
	(void)t;
	(void)token;
	return -1;
}

struct tsi_descriptors tsi_descriptors(void)
{
	return (struct tsi_descriptors){ .limit = 1 << 20 };
}

bool tsi_descriptors_room(const struct tsi_descriptors *d, uint64_t more,
			  unsigned quarters)
{
	(void)d;
	(void)more;
	(void)quarters;
	return true;
}

const char *tsi_descriptors_text(const struct tsi_descriptors *d,
				 char text[TSI_DESCRIPTORS_TEXT])
{
	(void)d;
	text[0] = '\0';
	return text;
}

uint64_t tsi_peer_born(uint32_t pid)
{
	for (unsigned i = 0; i < PEOPLE; i++)
		if (pid && machine.who[i].pid == pid)
			return pid;
	return 0;
}

int tsi_peer_check(int sock, uint32_t *pid)
{
	*pid = call_of(sock) ? call_of(sock)->pid : 0;
	return 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = machine.now / 1000;
	ts->tv_nsec = machine.now % 1000 * 1000000;
	return 0;
}

/* The record is a file, and a write of it the last that a producer does. */
ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	ssize_t n;

	moment();
	n = syscall(SYS_pwrite64, fd, bytes, len, at);
	moment();
	return n;
}

#endif
