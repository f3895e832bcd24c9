/*
 * bus.c - the one file that includes zmq.h.
 *
 * Messages only, one frame each: bulk data goes through shared memory, and
 * descriptors through the door.  Never blocks but in tsi_bus_poll() and for a
 * moment in tsi_bus_connect(), never queues for a peer that isn't connected,
 * never lingers at close, and never raises a signal: its I/O thread has all of
 * them blocked.
 */
#include "wire/bus.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/err.h"
#include "base/log.h"
#include "wire/listen.h"
#include "wire/trial.h"

/* Messages kept for a peer that doesn't read; it asks again anyway. */
#define QUEUE 256
#define CONNECT_MS 100
#define BACKLOG 128
#define OFTEN 256 /* where fewer are kept, every look is one at them */
#define PATH_BYTES 256
#define SAY_MS 60000 /* that connections wait: at most once in so long */

struct tsi_bus {
	void *ctx, *socket;
	int fd; /* readable when the socket's state may have changed */
	/* A router's: ZeroMQ accepts at a duplicate while it is open. */
	int listener;
	bool accepting;
	int64_t looked_ms, said_ms;
	uint64_t kept;
	char address[sizeof("ipc://") + PATH_BYTES];
	pid_t pid;
	bool router;
	struct pollfd *set; /* fd, and what the caller polls */
	unsigned nset;
};

static int err_zmq(const char *what, const char *path)
{
	int saved = errno;

	if (saved == EMFILE || saved == ENFILE)
		return tsi_err_descriptors(what, path);
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
		{ ZMQ_LINGER, 0, 3 },
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
	/* The folder keeps others out already; so does this, were it opened. */
	if (router &&
	    zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &uid, sizeof(uid)))
		return -1;
	return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof(max));
}

/* ---- connections of a router ---- */

/* Those who wait are accepted in a rush: never more than what is kept. */
static int backlog(void)
{
	struct tsi_descriptors d = tsi_descriptors();

	return d.kept / 4 < BACKLOG ? (int)(d.kept / 4) : BACKLOG;
}

/* Let ZeroMQ accept; it closes the descriptor that it is given. */
static int start_accepting(struct tsi_bus *bus)
{
	int fd = fcntl(bus->listener, F_DUPFD_CLOEXEC, 0), saved;

	if (fd < 0)
		return -1;
	if (zmq_setsockopt(bus->socket, ZMQ_USE_FD, &fd, sizeof(fd)) ||
	    zmq_bind(bus->socket, bus->address)) {
		saved = errno;
		close(fd);
		errno = saved;
		return -1;
	}
	bus->accepting = true;
	return 0;
}

static void say_full(struct tsi_bus *bus, const struct tsi_descriptors *d)
{
	int64_t now = tsi_now_ms();

	if (bus->said_ms && now - bus->said_ms < SAY_MS)
		return;
	bus->said_ms = now;
	tsi_log(TSOCK_LOG_WARN,
		"%llu of %llu descriptors are in use: new connections wait; "
		"close consumers, or raise the producer's limit (ulimit -n)",
		(unsigned long long)d->open, (unsigned long long)d->limit);
}

/*
 * Every connection takes a descriptor, and ZeroMQ aborts the process when
 * there is none for the next.  So it stops accepting while they are short;
 * who connects then waits in the backlog.
 */
static void mind_descriptors(struct tsi_bus *bus)
{
	int64_t now = tsi_now_ms();
	struct tsi_descriptors d;

	if (!bus->router || (bus->kept >= OFTEN && bus->looked_ms == now))
		return;
	bus->looked_ms = now;
	d = tsi_descriptors();
	bus->kept = d.kept;
	if (bus->accepting && !tsi_descriptors_room(&d, 1, 3)) {
		bus->accepting = false;
		zmq_unbind(bus->socket, bus->address);
		/* The limit may be another than at the start. */
		listen(bus->listener, backlog());
		say_full(bus, &d);
	} else if (!bus->accepting &&
		   tsi_descriptors_room(&d, 2 + d.kept / 4, 3)) {
		start_accepting(bus);
	}
}

static int set_address(struct tsi_bus *bus, const char *path)
{
	if (strlen(path) >= PATH_BYTES) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(bus->address, "ipc://");
	strcat(bus->address, path);
	return 0;
}

/*
 * The file at path goes when the stream does.  A listener whose file is gone
 * stays with ZeroMQ: to unbind it would end its connections.
 */
static int listen_at(struct tsi_bus *bus, const char *path)
{
	int fd = tsi_listen(path, SOCK_STREAM, backlog()), old = bus->listener;

	if (fd < 0)
		return -1;
	bus->listener = fd;
	if (old >= 0)
		close(old);
	if (set_address(bus, path))
		return -1;
	/* While descriptors are short, who connects waits. */
	return old < 0 || bus->accepting ? start_accepting(bus) : 0;
}

static int attach(struct tsi_bus *bus, const char *path)
{
	size_t len = sizeof(bus->fd);

	if (set_options(bus->socket, bus->router) ||
	    zmq_getsockopt(bus->socket, ZMQ_FD, &bus->fd, &len))
		return -1;
	if (!bus->router)
		return set_address(bus, path)
			       ? -1
			       : zmq_connect(bus->socket, bus->address);
	return listen_at(bus, path);
}

int tsi_bus_rebind(struct tsi_bus *bus, const char *path)
{
	if (bus->pid != getpid())
		return err_fork();
	return listen_at(bus, path) ? err_zmq("bind", path) : 0;
}

static void destroy(struct tsi_bus *bus)
{
	if (bus->socket)
		zmq_close(bus->socket);
	while (bus->ctx && zmq_ctx_term(bus->ctx) && errno == EINTR)
		;
	if (bus->listener >= 0)
		close(bus->listener);
	free(bus->set);
	free(bus);
}

static int open_bus(const char *path, bool router, struct tsi_bus **out)
{
	const char *what = router ? "bind" : "connect to";
	struct tsi_bus *bus;
	sigset_t all, old;
	int err;

	err = tsi_try_descriptors(what, path);
	if (err)
		return err;
	bus = calloc(1, sizeof(*bus));
	if (!bus)
		return tsi_err_sys("%s %s", what, path);
	bus->pid = getpid();
	bus->router = router;
	bus->listener = -1;

	/* Threads inherit the mask: handlers run in the caller's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = tsi_try_threads(what, path);
	if (err) {
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		free(bus);
		return err;
	}
	/* The threads start with the first socket: at once. */
	bus->ctx = zmq_ctx_new();
	if (bus->ctx) {
		zmq_ctx_set(bus->ctx, ZMQ_IO_THREADS, 1);
		zmq_ctx_set(bus->ctx, ZMQ_MAX_SOCKETS, 4);
		bus->socket =
			zmq_socket(bus->ctx, router ? ZMQ_ROUTER : ZMQ_DEALER);
	}
	if (!bus->socket || attach(bus, path))
		err = err_zmq(what, path);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		destroy(bus);
		return err;
	}
	*out = bus;
	return 0;
}

int tsi_bus_bind(const char *path, struct tsi_bus **out)
{
	return open_bus(path, true, out);
}

int tsi_bus_connect(const char *path, struct tsi_bus **out)
{
	zmq_pollitem_t item = { .events = ZMQ_POLLOUT };
	int err = open_bus(path, false, out);

	if (err)
		return err;
	/*
	 * Nothing is queued before the handshake is done, so without this the
	 * first message would always be the one that is lost.
	 */
	item.socket = (*out)->socket;
	zmq_poll(&item, 1, CONNECT_MS);
	return 0;
}

void tsi_bus_close(struct tsi_bus *bus)
{
	if (bus && bus->pid == getpid())
		destroy(bus);
}

static int64_t left_ms(int timeout_ms, int64_t start)
{
	int64_t left = timeout_ms - (tsi_now_ms() - start);

	if (timeout_ms < 0)
		return -1;
	return left > 0 ? left : 0;
}

static int watch(struct tsi_bus *bus, const struct pollfd *fds, unsigned nfds)
{
	if (bus->nset < nfds + 1) {
		struct pollfd *set =
			realloc(bus->set, (nfds + 1) * sizeof(*set));

		if (!set)
			return tsi_err_sys("poll %u descriptors", nfds);
		bus->set = set;
		bus->nset = nfds + 1;
	}
	bus->set[0] = (struct pollfd){ .fd = bus->fd, .events = POLLIN };
	if (nfds)
		memcpy(bus->set + 1, fds, nfds * sizeof(*fds));
	return 0;
}

/* Asking for the events also makes the socket take in what its I/O thread has
 * reported: new messages, new peers, and what the peers have read. */
static int ask_events(struct tsi_bus *bus, int *events)
{
	size_t len = sizeof(*events);

	*events = 0;
	if (zmq_getsockopt(bus->socket, ZMQ_EVENTS, events, &len) &&
	    errno != EINTR)
		return err_zmq("look at", "the bus");
	return 0;
}

static int look(struct tsi_bus *bus, bool *ready)
{
	int events, err = ask_events(bus, &events);

	mind_descriptors(bus);
	if (!err)
		*ready = events & ZMQ_POLLIN;
	return err;
}

int tsi_bus_poll(struct tsi_bus *bus, struct pollfd *fds, unsigned nfds,
		 int timeout_ms, bool *ready)
{
	int64_t start = tsi_now_ms();
	int n, err;

	*ready = false;
	for (unsigned i = 0; i < nfds; i++)
		fds[i].revents = 0;
	if (bus->pid != getpid())
		return err_fork();
	err = watch(bus, fds, nfds);
	if (err)
		return err;
	for (;;) {
		int64_t left = left_ms(timeout_ms, start);

		/* Its fd is edge-triggered: look before, and after. */
		err = look(bus, ready);
		if (err)
			return err;
		n = poll(bus->set, nfds + 1, *ready ? 0 : (int)left);
		if (n < 0 && errno != EINTR)
			return tsi_err_sys("poll");
		if (n < 0)
			return 0;
		for (unsigned i = 0; i < nfds; i++)
			fds[i].revents = bus->set[i + 1].revents;
		if (!*ready && bus->set[0].revents) {
			n--;
			err = look(bus, ready);
			if (err)
				return err;
		}
		if (n > 0 || *ready || !left)
			return 0;
	}
}

/* Take a frame.  *more says whether it has a successor in its message. */
static int take_frame(struct tsi_bus *bus, zmq_msg_t *frame, bool *more)
{
	int n;

	zmq_msg_init(frame);
	do
		n = zmq_msg_recv(frame, bus->socket, ZMQ_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		zmq_msg_close(frame);
		if (errno == EAGAIN)
			return TSOCK_EAGAIN;
		return err_zmq("receive from", "the bus");
	}
	*more = zmq_msg_more(frame);
	return 0;
}

/* Frames come all or none, so a message can be dropped to its end. */
static void drop_frames(struct tsi_bus *bus, bool more)
{
	zmq_msg_t frame;

	while (more && !take_frame(bus, &frame, &more))
		zmq_msg_close(&frame);
}

static int take_peer(struct tsi_bus *bus, struct tsi_peer *peer, bool *more)
{
	zmq_msg_t frame;
	size_t len;
	int err = take_frame(bus, &frame, more);

	if (err)
		return err;
	len = zmq_msg_size(&frame);
	if (len <= TSI_PEER_MAX) {
		peer->len = (uint8_t)len;
		memcpy(peer->id, zmq_msg_data(&frame), len);
	}
	zmq_msg_close(&frame);
	return 0;
}

int tsi_bus_recv(struct tsi_bus *bus, struct tsi_peer *peer, struct tsi_msg *m)
{
	struct tsi_peer from = { 0 };
	bool more = true;
	zmq_msg_t frame;
	int err;

	if (bus->pid != getpid())
		return err_fork();
	if (bus->router) {
		err = take_peer(bus, &from, &more);
		if (err)
			return err;
	}
	if (peer)
		*peer = from;
	if (!more)
		return tsi_err(TSOCK_EPROTO, "a message without content");
	err = take_frame(bus, &frame, &more);
	if (err)
		return err;
	if (more)
		err = tsi_err(TSOCK_EPROTO, "a message of several frames");
	else if (bus->router && !from.len)
		err = tsi_err(TSOCK_EPROTO, "a message from an unusable "
					    "address");
	else
		err = tsi_msg_unpack(zmq_msg_data(&frame), zmq_msg_size(&frame),
				     m);
	zmq_msg_close(&frame);
	drop_frames(bus, more);
	return err;
}

/*
 * ZeroMQ looks only now and then at what the peer has read, so its EAGAIN may
 * be of a queue that is empty by now: make it look, and ask again.
 */
static int put_frame(struct tsi_bus *bus, const void *bytes, size_t len,
		     int flags)
{
	bool looked = false;
	int n, events;

	for (;;) {
		n = zmq_send(bus->socket, bytes, len, ZMQ_DONTWAIT | flags);
		if (n >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || looked)
			return -1;
		looked = true;
		if (ask_events(bus, &events))
			return -1;
	}
}

int tsi_bus_send(struct tsi_bus *bus, const struct tsi_peer *peer,
		 const struct tsi_msg *m)
{
	uint8_t bytes[TSI_MSG_MAX];
	size_t len;

	if (bus->pid != getpid())
		return err_fork();
	len = tsi_msg_pack(m, bytes);
	if ((bus->router && put_frame(bus, peer->id, peer->len, ZMQ_SNDMORE)) ||
	    put_frame(bus, bytes, len, 0)) {
		/* Gone, or not reading: it asks again if it still cares. */
		if (errno == EHOSTUNREACH || errno == EAGAIN)
			return 0;
		return err_zmq("send on", "the bus");
	}
	return 0;
}

void tsi_bus_version(char *buf, size_t n)
{
	int major, minor, patch;

	zmq_version(&major, &minor, &patch);
	snprintf(buf, n, "%d.%d.%d", major, minor, patch);
}
