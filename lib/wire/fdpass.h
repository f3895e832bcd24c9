/* SPDX-License-Identifier: MIT */
/*
 * fdpass.h - a producer passes descriptors to a consumer over a unix socket.
 *
 * A connection (SOCK_SEQPACKET) serves one join: the consumer sends the token
 * of its offer and its own pidfd, the producer replies with the claim and the
 * descriptors of the rings.  The kernel says which process the peer is
 * (SO_PEERPIDFD, else SO_PEERCRED); a pidfd that the peer sent itself may be
 * watched for its death, but is never used to kill.
 */
#ifndef TSI_WIRE_FDPASS_H
#define TSI_WIRE_FDPASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

#define TSI_FDPASS_FDS (3 + TSOCK_MAX_FIELDS)

/* A consumer that has connected. */
struct tsi_peer {
	int sock;
	uint32_t pid;   /* in our pid namespace; 0 when it has none */
	int pidfd;      /* -1: there is none; a hang-up of sock is its death */
	bool may_kill;  /* pidfd came from the kernel, not from the peer */
	bool keep_sock; /* the peer has no pidfd of ours: leave sock open */
	uint8_t token[TSI_TOKEN];
};

/* The producer's reply; if code isn't 0, text says why and no fds come. */
struct tsi_reply {
	int32_t code;
	uint32_t row;       /* row of the header */
	uint32_t reader;    /* what the row says while this consumer has it */
	uint64_t start;     /* the claim's first sequence number */
	uint64_t epoch_end; /* where the consumer's first epoch ends */
	uint64_t incarnation;
	uint32_t keep_sock; /* 1: both ends keep the socket open */
	char text[256];
};

/* ---- producer ---- */

/* Replaces a socket that is at path: call it with the stream's lock held. */
int tsi_fdpass_listen(const char *path, int *fd);
/* Never blocks: TSOCK_EAGAIN when no connection waits. */
int tsi_fdpass_accept(int fd, int *sock);
/*
 * Read the consumer's request.  Never blocks: TSOCK_EAGAIN when it hasn't come
 * yet, TSOCK_EREFUSED for another uid, TSOCK_EPROTO for a malformed packet or a
 * hang-up.  sock stays the caller's; on success peer->pidfd becomes the
 * caller's too.  If peer->pidfd is -1 or peer->keep_sock is set, reply with
 * keep_sock 1 and keep sock open.
 */
int tsi_fdpass_receive(int sock, struct tsi_peer *peer);
int tsi_fdpass_reply(int sock, const struct tsi_reply *reply, const int *fds,
		     unsigned nfds);

/* ---- consumer ---- */

/* What a producer passed to a consumer; the descriptors are CLOEXEC. */
struct tsi_passed {
	struct tsi_reply reply;
	int fd[TSI_FDPASS_FDS];
	unsigned nfds;
	int producer; /* the producer's pidfd, or -1 */
	int sock;     /* the connection, if both ends keep it open; else -1 */
};

/* A connection on which no reply has come yet; all zero: there is none. */
struct tsi_connecting {
	bool open; /* the next two are descriptors */
	int sock;
	int producer; /* the producer's pidfd, or -1 */
	bool asked;   /* the token was sent */
};

/*
 * Connect with a token, and receive the reply.  Waits at most timeout_ms, then
 * TSOCK_EAGAIN, and c->open: the next call, with the same path and token, goes
 * on with this connection.  TSOCK_ENOPROD when nobody listens, TSOCK_ELOST when
 * the producer hung up (it doesn't know the token, or died).  A reply with a
 * code, which may be TSOCK_EAGAIN, becomes that error.  On an error *out stays
 * as it is, and but for c->open nothing is left open.
 */
int tsi_fdpass_connect(const char *path, const uint8_t *token, int timeout_ms,
		       struct tsi_connecting *c, struct tsi_passed *out);

/* Close a connection that is under way, if any. */
void tsi_fdpass_abandon(struct tsi_connecting *c);

/*
 * Does a producer listen at path?  Connects, and closes that at once.  1: yes,
 * 0: no; an error is this process's own, for want of a descriptor say.
 */
int tsi_fdpass_listening(const char *path);

/* The process that listens at path; 0: it can't be told. */
uint32_t tsi_fdpass_listener(const char *path);

#endif
