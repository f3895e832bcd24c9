/*
 * desk.c - the server's own thread: who comes, who goes, who is too slow.
 *
 * It answers messages (mail.c), opens the door (guests.c), watches the
 * consumers' processes, and looks at the tails whenever one of them rings.  It
 * never touches a sample, and never waits for a consumer.
 */
#include "serve/desk.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "serve/sockets.h"

#define TICK_MS 100 /* safety net for lost hints, and for policies */

static void bury(struct tsock_server *s)
{
	for (unsigned i = 0; i < s->membership.rows; i++)
		if (s->membership.member[i].used &&
		    tsi_peer_gone(s->conn[i].pidfd, s->conn[i].sock))
			tsi_server_drop(s, i,
					s->conn[i].killed
						? "was killed: too slow"
						: "is gone");
}

/* What consumers wait for, asleep or spinning. */
static void see_wants(struct tsock_server *s)
{
	for (unsigned i = 0; i < s->membership.rows; i++) {
		const struct tsi_tail_page *page = s->conn[i].tail.base;
		uint64_t want;

		if (!s->membership.member[i].used)
			continue;
		want = atomic_load(&page->want);
		tsi_membership_want(&s->membership, i,
				    want ? want : atomic_load(&page->spin));
	}
}

static void kill_slow(struct tsock_server *s, int64_t now)
{
	struct tsi_conn *c;
	int id;

	if (s->slow != TSOCK_SLOW_KILL)
		return;
	see_wants(s);
	id = tsi_membership_slowest(&s->membership, now, s->slow_ms);
	if (id < 0 || s->conn[id].killed)
		return;
	c = &s->conn[id];
	c->killed = true;
	if (!c->may_kill)
		tsi_log(TSOCK_LOG_WARN,
			"consumer %u is too slow, but this kernel can't tell "
			"for certain who it is: not killed",
			c->pid);
	else
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

static void tick(struct tsock_server *s, int64_t now)
{
	tsi_offers_expire(s, now);
	kill_slow(s, now);
	tsi_views_sweep(s, now);
}

static unsigned gather(struct tsock_server *s, struct pollfd *fds)
{
	unsigned n = 0;

	fds[n++] = (struct pollfd){ .fd = s->event, .events = POLLIN };
	/* Shut, it would wake us all the time. */
	fds[n++] = (struct pollfd){ .fd = s->door,
				    .events = tsi_now_ms() < s->door_shut_ms
						      ? 0
						      : POLLIN };
	for (unsigned i = 0; i < TSI_VISITORS; i++)
		if (s->guest[i].sock >= 0)
			fds[n++] = (struct pollfd){ .fd = s->guest[i].sock,
						    .events = POLLIN };
	for (unsigned i = 0; i < s->membership.rows; i++) {
		const struct tsi_conn *c = &s->conn[i];

		if (s->membership.member[i].used)
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
	tsi_guests_serve(s, now);
	tick(s, now);
	tsi_server_changed(s);
}

static void *desk_main(void *arg)
{
	struct tsock_server *s = arg;
	struct pollfd fds[2 + TSI_VISITORS + TSI_MAX_ROWS];
	bool mail, gone, stop = false;
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
		gone = tsi_sockets_gone(s, tsi_now_ms());
		pthread_mutex_lock(&s->lock);
		desk_work(s);
		if (gone)
			tsi_sockets_again(s);
		stop = s->stop;
		pthread_mutex_unlock(&s->lock);
		if (mail)
			tsi_mail_read(s);
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
