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
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"
#include "serve/messages.h"
#include "serve/server.h"
#include "serve/view_table.h"
#include "wire/zmq.h"

#define TICK_MS 100 /* for what has time limits, and for lost wake-ups */
#define PAUSE_MS 10 /* between two looks, where the kernel can't wait */

static void mind_slow(struct tsock_server *s, int64_t now)
{
	int view = tsi_readers_mind_slow(&s->readers, now);

	/* The reader is detached at the next look, if it is slow by then. */
	if (view >= 0 && tsi_view_table_reserve(&s->views, (unsigned)view))
		tsi_readers_no_memory(&s->readers, now);
}

static void tick(struct tsock_server *s, int64_t now)
{
	tsi_readers_expire(&s->readers, now);
	mind_slow(s, now);
	tsi_view_table_sweep(&s->views, now);
}

/* All that the control thread waits for, besides messages. */
static unsigned gather(struct tsock_server *s, struct pollfd *fds)
{
	unsigned n = 0;

	fds[n++] = (struct pollfd){ .fd = s->event, .events = POLLIN };
	n += tsi_handshake_poll(&s->handshake, s->sockets.fdpass, tsi_now_ms(),
				fds + n);
	return n + tsi_readers_poll(&s->readers, fds + n);
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

	tsi_readers_reap(&s->readers);
	tsi_readers_refresh(&s->readers);
	tsi_handshake_serve(&s->handshake, s->sockets.fdpass, now);
	tick(s, now);
	tsi_gate_changed(&s->gate);
}

/*
 * A file system may be slow, so that is done without the lock; other threads
 * read the sockets, and this one alone changes them.
 */
static void make_sockets_again(struct tsock_server *s)
{
	struct tsi_sockets made = s->sockets;
	bool over;
	int err;

	tsi_sync_lock(&s->sync);
	over = s->stop || tsi_gate_failure(&s->gate);
	tsi_sync_unlock(&s->sync);
	if (over)
		return;
	err = tsi_sockets_again(&made);
	tsi_sync_lock(&s->sync);
	s->sockets = made;
	if (!err)
		tsi_readers_record_again(&s->readers,
					 tsi_address_folder(&made.address),
					 tsi_address_name(&made.address));
	else if (err != TSOCK_EAGAIN)
		tsi_gate_fail(&s->gate, tsock_errmsg());
	tsi_sync_unlock(&s->sync);
}

/*
 * Wait until there is something to do; returns whether there may be messages.
 * Where that fails, for want of memory say, everything is looked at after a
 * moment; the log says so once.
 */
static bool wait_for_work(struct tsock_server *s, bool *failed)
{
	struct pollfd fds[2 + TSI_PENDING_CONNS + TSI_MAX_MEMBERS];
	struct timespec pause = { 0, PAUSE_MS * 1000000 };
	bool asked = false;
	unsigned n;
	int err;

	tsi_sync_lock(&s->sync);
	n = gather(s, fds);
	tsi_sync_unlock(&s->sync);
	err = tsi_zmq_poll(s->sockets.channel, fds, n, TICK_MS, &asked);
	if (err && !*failed)
		tsi_log(TSOCK_LOG_ERROR,
			"the server can't wait, and looks every %d ms: %s",
			PAUSE_MS, tsock_errmsg());
	*failed = err;
	if (!err)
		return asked;
	nanosleep(&pause, NULL);
	return true;
}

static void *control_main(void *arg)
{
	struct tsock_server *s = arg;
	bool asked, stop = false, failed = false;

	tsi_thread_name("tsock-control");
	while (!stop) {
		asked = wait_for_work(s, &failed);
		drain_eventfd(s->event);
		if (tsi_sockets_gone(&s->sockets, tsi_now_ms()))
			make_sockets_again(s);
		tsi_sync_lock(&s->sync);
		control_step(s);
		tsi_readers_save_record(&s->readers);
		stop = s->stop;
		tsi_sync_unlock(&s->sync);
		if (asked)
			tsi_messages_answer(&s->messages, s->sockets.channel);
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
