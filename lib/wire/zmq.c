/* SPDX-License-Identifier: MIT */
/*
 * zmq.c - the channel of control messages, and the one file with <zmq.h>.
 *
 * A message is one frame.  Samples travel through shared memory, descriptors
 * through fdpass.c.  Only tsi_zmq_poll() blocks, and for a moment
 * tsi_zmq_connect(), and tsi_zmq_close() of a process's last consumer until the
 * kernel has what was sent last.  Nothing is queued for a peer that isn't connected, and no signal
 * handler runs in ZeroMQ's threads: they have every signal blocked.
 */
#include "wire/zmq.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/thread.h"
#include "wire/acceptor.h"
#include "wire/zmq_trial.h"

/* Messages kept for a peer that doesn't read; requests are repeated anyway. */
#define QUEUE 256
#define CONNECT_MS 50
#define LINGER_MS 50 /* for what a consumer said last */
#define PATH_BYTES 256
#define OWN 2        /* descriptors that a channel polls itself */
#define ROUTERS 4    /* sockets in the context of a producer's channel */
#define DEALERS 4096 /* and in that of all consumers of a process */

struct tsi_channel {
	void *ctx, *socket;
	int fd; /* readable when the socket's state may have changed */
	struct tsi_acceptor acceptor; /* of a router */
	char endpoint[sizeof("ipc://") + PATH_BYTES];
	pid_t pid;
	bool router;
	struct pollfd *set; /* fd, arrivals, and what the caller polls */
	unsigned nset;
};

static int err_zmq(const char *what, const char *path)
{
	int saved = errno;

	if (saved == EMFILE)
		return tsi_zmq_err_descriptors(what, path);
	return tsi_err(saved == ENOMEM ? TSOCK_ENOMEM : TSOCK_ESYS, "%s %s: %s",
		       what, path, zmq_strerror(saved));
}

static int err_fork(void)
{
	return tsi_err(TSOCK_EFORK, "this connection was opened before a fork "
				    "and belongs to the parent process: open "
				    "one in the child");
}

static int set_options(void *socket, bool router)
{
	static const struct {
		int option, value, who; /* who: 1 router, 2 dealer, 3 both */
	} option[] = {
		{ ZMQ_LINGER, 0, 1 },
		{ ZMQ_LINGER, LINGER_MS, 2 },
		{ ZMQ_SNDTIMEO, 0, 3 },
		{ ZMQ_SNDHWM, QUEUE, 3 },
		{ ZMQ_RCVHWM, QUEUE, 3 },
		{ ZMQ_ROUTER_MANDATORY, 1, 1 },
		{ ZMQ_ROUTER_HANDOVER, 0, 1 },
		{ ZMQ_IMMEDIATE, 1, 2 },
		{ ZMQ_RECONNECT_IVL, 50, 2 },
		{ ZMQ_RECONNECT_IVL_MAX, 1000, 2 },
	};
	int64_t max = TSI_MSG_MAX;
	uid_t uid = geteuid();

	for (unsigned i = 0; i < sizeof(option) / sizeof(option[0]); i++) {
		if ((option[i].who & (router ? 1 : 2)) &&
		    zmq_setsockopt(socket, option[i].option, &option[i].value,
				   sizeof(int)))
			return -1;
	}
	/* The folder's mode keeps other users out; if somebody widened it,
	 * this still does. */
	if (router &&
	    zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &uid, sizeof(uid)))
		return -1;
	return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof(max));
}

/* ---- connections of a router ---- */

/* Let ZeroMQ accept.  ZeroMQ closes the descriptor that it is given. */
static int start_accepting(struct tsi_channel *ch)
{
	int fd = tsi_acceptor_copy(&ch->acceptor), saved;

	if (fd < 0)
		return -1;
	if (zmq_setsockopt(ch->socket, ZMQ_USE_FD, &fd, sizeof(fd)) ||
	    zmq_bind(ch->socket, ch->endpoint)) {
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	tsi_acceptor_started(&ch->acceptor);
	return 0;
}

/*
 * While descriptors are short, new connections wait: see acceptor.h.
 *
 * Unbinding is the only way to stop ZeroMQ from accepting, and it also ends the
 * connections that were accepted there (libzmq 4.3.4: the listener owns them).
 * The consumers' ends connect again by themselves and then wait like new ones;
 * requests are repeated, and a reader needs no connection to go on reading.
 */
static void mind_descriptors(struct tsi_channel *ch)
{
	if (!ch->router)
		return;
	switch (tsi_acceptor_turn(&ch->acceptor)) {
	case TSI_ACCEPTOR_STOPS:
		tsi_acceptor_stopping(&ch->acceptor);
		zmq_unbind(ch->socket, ch->endpoint);
		break;
	case TSI_ACCEPTOR_STARTS:
		start_accepting(ch);
		break;
	case TSI_ACCEPTOR_GOES_ON:
		break;
	}
}

static int set_endpoint(struct tsi_channel *ch, const char *path)
{
	if (strlen(path) >= PATH_BYTES) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(ch->endpoint, "ipc://");
	strcat(ch->endpoint, path);
	return 0;
}

/*
 * The file at path is removed with the stream.  A listener whose file is gone
 * ends, and its connections with it: the consumers' ends connect again.
 */
static int bind_listener(struct tsi_channel *ch, const char *path)
{
	if (tsi_acceptor_listen(&ch->acceptor, path))
		return -1;
	if (ch->endpoint[0])
		zmq_unbind(ch->socket, ch->endpoint);
	if (set_endpoint(ch, path))
		return -1;
	return tsi_acceptor_is_accepting(&ch->acceptor) ? start_accepting(ch)
							: 0;
}

static int bind_or_connect(struct tsi_channel *ch, const char *path)
{
	size_t len = sizeof(ch->fd);

	if (set_options(ch->socket, ch->router) ||
	    zmq_getsockopt(ch->socket, ZMQ_FD, &ch->fd, &len))
		return -1;
	if (!ch->router)
		return set_endpoint(ch, path)
			       ? -1
			       : zmq_connect(ch->socket, ch->endpoint);
	return bind_listener(ch, path);
}

int tsi_zmq_rebind(struct tsi_channel *ch, const char *path)
{
	if (ch->pid != getpid())
		return err_fork();
	return bind_listener(ch, path) ? err_zmq("bind", path) : 0;
}

/* ---- contexts ---- */

/* All consumers of this process share a context, its thread and descriptors. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *consumers;
static unsigned users;

/* With a lock that nobody holds; what the parent has is the parent's. */
static void forget_context(void)
{
	pthread_mutex_init(&lock, NULL);
	consumers = NULL;
	users = 0;
}

static void watch_context(void)
{
	pthread_atfork(NULL, NULL, forget_context);
}

static int new_context(const char *what, const char *path, int sockets,
		       void **out)
{
	int err = tsi_zmq_try_threads(what, path);

	if (err)
		return err;
	*out = zmq_ctx_new();
	if (!*out)
		return err_zmq(what, path);
	zmq_ctx_set(*out, ZMQ_IO_THREADS, 1);
	zmq_ctx_set(*out, ZMQ_MAX_SOCKETS, sockets);
	return 0;
}

/* ZeroMQ starts its threads when a context's first socket is made. */
static int take_context(struct tsi_channel *ch, const char *what,
			const char *path)
{
	int err = 0;

	if (ch->router)
		return new_context(what, path, ROUTERS, &ch->ctx);
	pthread_once(&once, watch_context);
	pthread_mutex_lock(&lock);
	if (!users)
		err = new_context(what, path, DEALERS, &consumers);
	if (!err) {
		users++;
		ch->ctx = consumers;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void give_context(struct tsi_channel *ch)
{
	void *ctx = ch->ctx;

	if (!ctx)
		return;
	if (!ch->router) {
		pthread_mutex_lock(&lock);
		if (--users)
			ctx = NULL;
		else
			consumers = NULL;
		pthread_mutex_unlock(&lock);
	}
	while (ctx && zmq_ctx_term(ctx) && errno == EINTR)
		;
}

static void free_channel(struct tsi_channel *ch)
{
	if (ch->socket)
		zmq_close(ch->socket);
	give_context(ch);
	tsi_acceptor_close(&ch->acceptor);
	free(ch->set);
	free(ch);
}

static int open_channel(const char *path, bool router, struct tsi_channel **out)
{
	const char *what = router ? "bind" : "connect to";
	struct tsi_channel *ch;
	sigset_t before;
	int err;

	err = tsi_zmq_try_descriptors(what, path);
	if (err)
		return err;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return tsi_err_sys("%s %s", what, path);
	ch->pid = getpid();
	ch->router = router;
	tsi_acceptor_init(&ch->acceptor);

	/* ZeroMQ's threads inherit the mask, so no handler runs in them. */
	tsi_thread_block_signals(&before);
	err = take_context(ch, what, path);
	if (!err) {
		ch->socket =
			zmq_socket(ch->ctx, router ? ZMQ_ROUTER : ZMQ_DEALER);
		if (!ch->socket || bind_or_connect(ch, path))
			err = err_zmq(what, path);
	}
	tsi_thread_restore_signals(&before);
	if (err) {
		free_channel(ch);
		return err;
	}
	*out = ch;
	return 0;
}

int tsi_zmq_bind(const char *path, struct tsi_channel **out)
{
	return open_channel(path, true, out);
}

int tsi_zmq_connect(const char *path, struct tsi_channel **out)
{
	zmq_pollitem_t item = { .events = ZMQ_POLLOUT };
	int err = open_channel(path, false, out);

	if (err)
		return err;
	/*
	 * Nothing is queued before the connection stands, so without this wait
	 * the first message would always be lost.
	 */
	item.socket = (*out)->socket;
	zmq_poll(&item, 1, CONNECT_MS);
	return 0;
}

void tsi_zmq_close(struct tsi_channel *ch)
{
	if (ch && ch->pid == getpid())
		free_channel(ch);
}

static int64_t left_ms(int timeout_ms, int64_t start)
{
	int64_t left = timeout_ms - (tsi_now_ms() - start);

	if (timeout_ms < 0)
		return -1;
	return left > 0 ? left : 0;
}

static int fill_pollset(struct tsi_channel *ch, const struct pollfd *fds,
			unsigned nfds)
{
	if (ch->nset < OWN + nfds) {
		struct pollfd *set =
			realloc(ch->set, (OWN + nfds) * sizeof(*set));

		if (!set)
			return tsi_err_sys("wait for %u descriptors",
					   nfds + OWN);
		ch->set = set;
		ch->nset = OWN + nfds;
	}
	ch->set[0] = (struct pollfd){ .fd = ch->fd, .events = POLLIN };
	if (nfds)
		memcpy(ch->set + OWN, fds, nfds * sizeof(*fds));
	return 0;
}

/*
 * Asking for the events also makes the socket process what its I/O thread has
 * reported: new messages, new peers, and what the peers have read.
 */
static int ask_events(struct tsi_channel *ch, int *events)
{
	size_t len = sizeof(*events);

	*events = 0;
	if (zmq_getsockopt(ch->socket, ZMQ_EVENTS, events, &len) &&
	    errno != EINTR)
		return err_zmq("look at", "the message channel");
	return 0;
}

static int ask_ready(struct tsi_channel *ch, bool *ready)
{
	int events, err = ask_events(ch, &events);

	mind_descriptors(ch);
	if (!err)
		*ready = events & ZMQ_POLLIN;
	return err;
}

int tsi_zmq_poll(struct tsi_channel *ch, struct pollfd *fds, unsigned nfds,
		 int timeout_ms, bool *ready)
{
	int64_t start = tsi_now_ms();
	int n, own, err;

	*ready = false;
	for (unsigned i = 0; i < nfds; i++)
		fds[i].revents = 0;
	if (ch->pid != getpid())
		return err_fork();
	err = fill_pollset(ch, fds, nfds);
	if (err)
		return err;
	for (;;) {
		int64_t left = left_ms(timeout_ms, start);

		/* ZeroMQ's descriptor is edge-triggered: ask for the events
		 * before the poll and after it. */
		err = ask_ready(ch, ready);
		if (err)
			return err;
		ch->set[1] = (struct pollfd){ .fd = tsi_acceptor_arrivals(
						      &ch->acceptor),
					      .events = POLLIN };
		n = poll(ch->set, OWN + nfds, *ready ? 0 : (int)left);
		if (n < 0 && errno != EINTR)
			return tsi_err_sys("wait for messages");
		if (n < 0)
			return 0;
		for (unsigned i = 0; i < nfds; i++)
			fds[i].revents = ch->set[OWN + i].revents;
		own = !!ch->set[0].revents + !!ch->set[1].revents;
		n -= own;
		if (!*ready && own) {
			err = ask_ready(ch, ready);
			if (err)
				return err;
		}
		if (n > 0 || *ready || !left)
			return 0;
	}
}

/* Receive a frame.  *more says whether its message has another one. */
static int recv_frame(struct tsi_channel *ch, zmq_msg_t *frame, bool *more)
{
	int n;

	zmq_msg_init(frame);
	do
		n = zmq_msg_recv(frame, ch->socket, ZMQ_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		zmq_msg_close(frame);
		if (errno == EAGAIN)
			return TSOCK_EAGAIN;
		return err_zmq("receive from", "the message channel");
	}
	*more = zmq_msg_more(frame);
	return 0;
}

/* All frames of a message are there, so it can be dropped to its end. */
static void drop_frames(struct tsi_channel *ch, bool more)
{
	zmq_msg_t frame;

	while (more && !recv_frame(ch, &frame, &more))
		zmq_msg_close(&frame);
}

static int recv_routing_id(struct tsi_channel *ch, struct tsi_routing_id *id,
			   bool *more)
{
	zmq_msg_t frame;
	size_t len;
	int err = recv_frame(ch, &frame, more);

	if (err)
		return err;
	len = zmq_msg_size(&frame);
	if (len <= TSI_ROUTING_ID_MAX) {
		id->len = (uint8_t)len;
		memcpy(id->bytes, zmq_msg_data(&frame), len);
	}
	zmq_msg_close(&frame);
	return 0;
}

int tsi_zmq_recv(struct tsi_channel *ch, struct tsi_routing_id *id,
		 struct tsi_msg *m)
{
	struct tsi_routing_id from = { 0 };
	bool more = true;
	zmq_msg_t frame;
	int err;

	if (ch->pid != getpid())
		return err_fork();
	if (ch->router) {
		err = recv_routing_id(ch, &from, &more);
		if (err)
			return err;
	}
	if (id)
		*id = from;
	if (!more)
		return tsi_err(TSOCK_EPROTO, "a message without content");
	err = recv_frame(ch, &frame, &more);
	if (err)
		return err;
	if (more)
		err = tsi_err(TSOCK_EPROTO, "a message of several frames");
	else if (ch->router && !from.len)
		err = tsi_err(TSOCK_EPROTO, "a message from an unusable "
					    "address");
	else
		err = tsi_msg_unpack(zmq_msg_data(&frame), zmq_msg_size(&frame),
				     m);
	zmq_msg_close(&frame);
	drop_frames(ch, more);
	return err;
}

/*
 * ZeroMQ looks only now and then at what the peer has read, so EAGAIN may be
 * about a queue that is empty by now: make ZeroMQ look, and send again.
 */
static int send_frame(struct tsi_channel *ch, const void *bytes, size_t len,
		      int flags)
{
	bool looked = false;
	int n, events;

	for (;;) {
		n = zmq_send(ch->socket, bytes, len, ZMQ_DONTWAIT | flags);
		if (n >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || looked)
			return -1;
		looked = true;
		if (ask_events(ch, &events))
			return -1;
	}
}

int tsi_zmq_send(struct tsi_channel *ch, const struct tsi_routing_id *id,
		 const struct tsi_msg *m)
{
	uint8_t bytes[TSI_MSG_MAX];
	size_t len;

	if (ch->pid != getpid())
		return err_fork();
	len = tsi_msg_pack(m, bytes);
	if ((ch->router && send_frame(ch, id->bytes, id->len, ZMQ_SNDMORE)) ||
	    send_frame(ch, bytes, len, 0)) {
		/* The peer has gone or reads nothing: see zmq.h. */
		if (errno == EHOSTUNREACH || errno == EAGAIN)
			return 0;
		return err_zmq("send on", "the message channel");
	}
	return 0;
}

void tsi_zmq_version(char *buf, size_t n)
{
	int major, minor, patch;

	zmq_version(&major, &minor, &patch);
	snprintf(buf, n, "%d.%d.%d", major, minor, patch);
}
