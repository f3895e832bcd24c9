/* SPDX-License-Identifier: MIT */
/*
 * acceptor.c - the socket at which connections to a producer's channel arrive,
 * and whether they may be accepted now.
 */
#include "wire/acceptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "wire/socket.h"

#define BACKLOG 128
#define OFTEN 256    /* a smaller reserve of descriptors is checked each time */
#define REST_MS 500  /* all peers connect again at once after a stop */
#define SAY_MS 60000 /* between two warnings that connections wait */

void tsi_acceptor_init(struct tsi_acceptor *a)
{
	*a = (struct tsi_acceptor){ .listener = -1, .accepting = true };
}

void tsi_acceptor_close(struct tsi_acceptor *a)
{
	if (a->listener >= 0)
		close(a->listener);
}

/*
 * ZeroMQ accepts all waiting connections at once, and others that come while
 * the caller doesn't run: so that it can stop in time, few may wait.
 */
static int backlog(const struct tsi_acceptor *a)
{
	struct tsi_descriptors d = tsi_descriptors();

	if (!a->accepting)
		return 0;
	return d.kept / 16 < BACKLOG ? (int)(d.kept / 16) : BACKLOG;
}

int tsi_acceptor_listen(struct tsi_acceptor *a, const char *path)
{
	int fd = tsi_socket_listen(path, SOCK_STREAM, backlog(a));

	if (fd < 0)
		return -1;
	tsi_acceptor_close(a);
	a->listener = fd;
	return 0;
}

int tsi_acceptor_copy(const struct tsi_acceptor *a)
{
	return fcntl(a->listener, F_DUPFD_CLOEXEC, 0);
}

void tsi_acceptor_started(struct tsi_acceptor *a)
{
	a->accepting = true;
	/* The limit may have changed since the start. */
	listen(a->listener, backlog(a));
}

bool tsi_acceptor_is_accepting(const struct tsi_acceptor *a)
{
	return a->accepting;
}

static void say_full(struct tsi_acceptor *a)
{
	int64_t now = tsi_now_ms();

	if (a->said_ms && now - a->said_ms < SAY_MS)
		return;
	a->said_ms = now;
	tsi_log(TSOCK_LOG_WARN,
		"%llu of %llu descriptors are in use: new connections wait; "
		"close consumers, or raise the producer's limit (ulimit -n)",
		(unsigned long long)a->seen.open,
		(unsigned long long)a->seen.limit);
}

void tsi_acceptor_stopping(struct tsi_acceptor *a)
{
	a->accepting = false;
	a->stopped_ms = tsi_now_ms();
	/* ZeroMQ's thread goes on until it learns of it. */
	listen(a->listener, backlog(a));
	say_full(a);
}

int tsi_acceptor_arrivals(const struct tsi_acceptor *a)
{
	return a->accepting ? a->listener : -1;
}

enum tsi_acceptor_turn tsi_acceptor_turn(struct tsi_acceptor *a)
{
	int64_t now = tsi_now_ms();
	const struct tsi_descriptors *d = &a->seen;

	if (d->kept >= OFTEN && a->looked_ms == now)
		return TSI_ACCEPTOR_GOES_ON;
	a->looked_ms = now;
	a->seen = tsi_descriptors();
	if (a->accepting && !tsi_descriptors_room(d, 1, 3))
		return TSI_ACCEPTOR_STOPS;
	if (!a->accepting && now - a->stopped_ms >= REST_MS &&
	    tsi_descriptors_room(d, 2 + d->kept / 4, 3))
		return TSI_ACCEPTOR_STARTS;
	return TSI_ACCEPTOR_GOES_ON;
}
