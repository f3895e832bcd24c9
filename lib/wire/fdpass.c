/* SPDX-License-Identifier: MIT */
/*
 * fdpass.c - the unix socket through which descriptors are handed over.
 *
 * Each connection carries two packets: the consumer's request {magic, version,
 * token} with its own pidfd, and the producer's reply with the descriptors of
 * the rings.  The producer never blocks here.  Descriptors that weren't asked
 * for are closed, other users are refused, and a process is identified by what
 * the kernel says (peer.c), not by what it sends.
 */
#include "wire/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "wire/pack.h"
#include "wire/peer.h"
#include "wire/socket.h"

#define MAGIC 0x524f4f44u /* "DOOR" */
#define BACKLOG 64
#define SLICE_MS 100
#define REQUEST_BYTES 24
#define REPLY_BYTES 304

static int set_address(struct sockaddr_un *sa, const char *path)
{
	size_t len = strlen(path);

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (len >= sizeof(sa->sun_path))
		return tsi_err(TSOCK_EARG,
			       "the path %s has %zu bytes, a unix socket's "
			       "at most %zu",
			       path, len, sizeof(sa->sun_path) - 1);
	memcpy(sa->sun_path, path, len + 1);
	return 0;
}

/* A socket, or an error. */
static int open_socket(void)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0);

	return s < 0 ? tsi_err_sys("open a unix socket") : s;
}

/* What both packets begin with. */
static void pack_head(struct tsi_pack *k, uint16_t *count)
{
	uint32_t magic = MAGIC;
	uint16_t version = TSI_MSG_VERSION;

	tsi_pack_u32(k, &magic);
	tsi_pack_u16(k, &version);
	tsi_pack_u16(k, count);
	if (!k->why && magic != MAGIC)
		k->why = "it isn't libtsock's";
	if (!k->why && version != TSI_MSG_VERSION)
		k->why = "the peer speaks another version of the protocol: "
			 "use the same release on both sides";
}

static void pack_reply(struct tsi_pack *k, uint16_t *nfds,
		       struct tsi_reply *reply)
{
	pack_head(k, nfds);
	tsi_pack_code(k, &reply->code, 0);
	tsi_pack_u32(k, &reply->row);
	tsi_pack_u32(k, &reply->reader);
	tsi_pack_u64(k, &reply->start);
	tsi_pack_u64(k, &reply->epoch_end);
	tsi_pack_u64(k, &reply->incarnation);
	tsi_pack_u32(k, &reply->keep_sock);
	tsi_pack_text(k, reply->text, sizeof(reply->text));
}

static void pack_request(struct tsi_pack *k, uint16_t *keep_sock,
			 uint8_t *token)
{
	pack_head(k, keep_sock);
	tsi_pack_bytes(k, token, TSI_TOKEN);
}

static int check_end(struct tsi_pack *k)
{
	if (!k->why && k->at != k->end)
		k->why = "it goes on after its end";
	return k->why ? tsi_err(TSOCK_EPROTO,
				"a malformed packet on the descriptor socket: "
				"%s",
				k->why)
		      : 0;
}

/* ------------------------------------------------------------------------
 * Producer
 */

int tsi_fdpass_listen(const char *path, int *fd)
{
	struct sockaddr_un sa;
	int s, err = set_address(&sa, path);

	if (err)
		return err;
	s = tsi_socket_listen(path, SOCK_SEQPACKET, BACKLOG);
	if (s < 0)
		return tsi_err_sys("listen at %s", path);
	*fd = s;
	return 0;
}

int tsi_fdpass_accept(int fd, int *sock)
{
	int s;

	do
		s = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (s < 0 && errno == EINTR);
	if (s >= 0) {
		*sock = s;
		return 0;
	}
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ECONNABORTED)
		return TSOCK_EAGAIN;
	if (errno == EMFILE || errno == ENFILE)
		return tsi_err(TSOCK_ESYS, "no descriptor is left for one "
					   "more consumer: raise the "
					   "producer's limit, ulimit -n");
	return tsi_err_sys("accept a connection to the descriptor socket");
}

int tsi_fdpass_receive(int sock, struct tsi_peer *peer)
{
	struct tsi_peer t = { .sock = sock, .pidfd = -1 };
	struct tsi_pack k;
	uint16_t keep_sock = 0;
	struct tsi_socket_packet p;
	int err;

	err = tsi_peer_check(sock, &t.pid);
	if (err)
		return err;
	err = tsi_socket_receive(sock, 1, &p);
	if (err)
		return err == TSOCK_EAGAIN ? err : TSOCK_EPROTO;
	k = tsi_unpack_from(p.bytes, p.len);
	pack_request(&k, &keep_sock, t.token);
	t.keep_sock = keep_sock;
	err = check_end(&k);
	if (!err)
		t.pidfd = tsi_peer_pidfd(sock, t.pid, p.nfds ? p.fd[0] : -1,
					 &t.may_kill);
	for (unsigned i = 0; i < p.nfds; i++) {
		if (p.fd[i] != t.pidfd)
			close(p.fd[i]);
	}
	if (!err)
		*peer = t;
	return err;
}

int tsi_fdpass_reply(int sock, const struct tsi_reply *reply, const int *fds,
		     unsigned nfds)
{
	uint8_t bytes[REPLY_BYTES];
	struct tsi_pack k = tsi_pack_to(bytes, sizeof(bytes));
	struct tsi_reply copy = *reply;
	uint16_t count = (uint16_t)(reply->code ? 0 : nfds);

	if (count > TSI_FDPASS_FDS)
		return tsi_err(TSOCK_EARG,
			       "%u descriptors are more than a reply can have",
			       nfds);
	pack_reply(&k, &count, &copy);
	if (tsi_socket_send(sock, bytes, k.at, fds, count) >= 0)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET)
		return tsi_err(TSOCK_EPROTO, "the consumer closed the "
					     "descriptor socket");
	return tsi_err_sys("send descriptors to a consumer");
}

/* ------------------------------------------------------------------------
 * Consumer
 */

static int left_ms(int64_t deadline)
{
	int64_t left = deadline - tsi_now_ms();

	if (left > SLICE_MS)
		return SLICE_MS;
	return left > 0 ? (int)left : 0;
}

/* Let the next connect() wait in the kernel's queue, so long at most. */
static void let_connect_wait(int sock, int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };

	/* Zero would mean no limit. */
	t.tv_usec += !ms;
	if (!setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)))
		fcntl(sock, F_SETFL, 0);
}

/* Connect s by the deadline: only a full backlog makes it wait. */
static int connect_by(int s, const char *path, int64_t deadline, uint32_t *pid)
{
	struct sockaddr_un sa;
	int err = set_address(&sa, path);

	if (err)
		return err;
	while (connect(s, (struct sockaddr *)&sa, sizeof(sa))) {
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN && left_ms(deadline)) {
			let_connect_wait(s, left_ms(deadline));
			continue;
		}
		if (errno == EAGAIN)
			return TSOCK_EAGAIN;
		if (errno == ENOENT || errno == ECONNREFUSED)
			return tsi_err(TSOCK_ENOPROD,
				       "no producer listens at %s", path);
		return tsi_err_sys("connect to %s", path);
	}
	fcntl(s, F_SETFL, O_NONBLOCK);
	return tsi_peer_check(s, pid);
}

static int send_token(int sock, const uint8_t *token, bool keep_sock)
{
	uint8_t bytes[REQUEST_BYTES], copy[TSI_TOKEN];
	struct tsi_pack k = tsi_pack_to(bytes, sizeof(bytes));
	int self = tsi_peer_open_pidfd((uint32_t)getpid());
	uint16_t keep = keep_sock;
	ssize_t n;
	int err = 0;

	memcpy(copy, token, TSI_TOKEN);
	pack_request(&k, &keep, copy);
	n = tsi_socket_send(sock, bytes, k.at, &self, self >= 0);
	/* There may be too many descriptors in flight: send none. */
	if (n < 0 && self >= 0)
		n = tsi_socket_send(sock, bytes, k.at, NULL, 0);
	if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
		err = tsi_err(TSOCK_ELOST, "the producer closed the descriptor "
					   "socket");
	else if (n < 0)
		err = tsi_err_sys("send the token to the producer");
	if (self >= 0)
		close(self);
	return err;
}

static int wait_packet(int sock, int64_t deadline, struct tsi_socket_packet *p)
{
	for (;;) {
		struct pollfd pf = { .fd = sock, .events = POLLIN };
		int left = left_ms(deadline);
		int err;

		if (poll(&pf, 1, left) < 0 && errno != EINTR)
			return tsi_err_sys("wait for the producer's reply");
		err = tsi_socket_receive(sock, TSI_FDPASS_FDS, p);
		if (err != TSOCK_EAGAIN || !left)
			return err;
	}
}

static int read_reply(struct tsi_socket_packet *p, struct tsi_reply *reply)
{
	struct tsi_pack k = tsi_unpack_from(p->bytes, p->len);
	struct tsi_reply t = { 0 };
	uint16_t nfds = 0;
	int err;

	pack_reply(&k, &nfds, &t);
	err = check_end(&k);
	if (!err && t.code)
		err = tsi_err(t.code, "%s",
			      t.text[0] ? t.text : tsock_strerror(t.code));
	if (!err && nfds != p->nfds)
		err = tsi_err(TSOCK_EPROTO,
			      "%u descriptors came from the producer, %u were "
			      "announced",
			      p->nfds, nfds);
	if (err)
		tsi_socket_packet_close(p);
	else
		*reply = t;
	return err;
}

/* Send the token, on a connection that may have to be made first. */
static int ask_token(const char *path, const uint8_t *token, int64_t deadline,
		     struct tsi_connecting *c)
{
	uint32_t pid;
	bool certain;
	int err;

	if (c->asked)
		return 0;
	err = connect_by(c->sock, path, deadline, &pid);
	if (err)
		return err;
	/* Before the request: without a pidfd the connection has to stay. */
	c->producer = tsi_peer_pidfd(c->sock, pid, -1, &certain);
	err = send_token(c->sock, token, c->producer < 0);
	c->asked = !err;
	return err;
}

/* What came is the caller's now; the connection too, if it has to stay. */
static void pass(struct tsi_connecting *c, const struct tsi_socket_packet *p,
		 const struct tsi_reply *reply, struct tsi_passed *out)
{
	*out = (struct tsi_passed){ .reply = *reply,
				    .nfds = p->nfds,
				    .producer = c->producer,
				    .sock = reply->keep_sock ? c->sock : -1 };
	memcpy(out->fd, p->fd, p->nfds * sizeof(int));
	if (!reply->keep_sock)
		close(c->sock);
	*c = (struct tsi_connecting){ .open = false };
}

int tsi_fdpass_connect(const char *path, const uint8_t *token, int timeout_ms,
		       struct tsi_connecting *c, struct tsi_passed *out)
{
	int64_t deadline = tsi_now_ms() + (timeout_ms > 0 ? timeout_ms : 0);
	struct tsi_reply reply;
	struct tsi_socket_packet p;
	int err;

	if (!c->open) {
		int s = open_socket();

		if (s < 0)
			return s;
		*c = (struct tsi_connecting){ true, s, -1, false };
	}
	err = ask_token(path, token, deadline, c);
	if (!err)
		err = wait_packet(c->sock, deadline, &p);
	if (err == TSOCK_EAGAIN)
		return err;
	if (!err)
		err = read_reply(&p, &reply);
	if (!err && c->producer < 0 && !reply.keep_sock) {
		tsi_socket_packet_close(&p);
		err = tsi_err(TSOCK_ELOST, "the producer has gone, or doesn't "
					   "let its consumers notice it");
	}
	if (err)
		tsi_fdpass_abandon(c);
	else
		pass(c, &p, &reply, out);
	return err;
}

void tsi_fdpass_abandon(struct tsi_connecting *c)
{
	if (c->open && c->producer >= 0)
		close(c->producer);
	if (c->open)
		close(c->sock);
	*c = (struct tsi_connecting){ .open = false };
}

int tsi_fdpass_listening(const char *path)
{
	int err, s = open_socket();
	uint32_t pid;

	if (s < 0)
		return s;
	err = connect_by(s, path, 0, &pid);
	close(s);
	/* A full backlog is that of a producer that is busy. */
	if (!err || err == TSOCK_EAGAIN)
		return 1;
	return err == TSOCK_ENOMEM ? err : 0;
}

uint32_t tsi_fdpass_listener(const char *path)
{
	struct tsi_err_saved saved = tsi_err_save(0);
	int s = open_socket();
	uint32_t pid = 0;

	if (s < 0 || connect_by(s, path, 0, &pid))
		pid = 0;
	if (s >= 0)
		close(s);
	tsi_err_restore(&saved);
	return pid;
}
