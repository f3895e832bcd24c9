/*
 * door.h - the unix socket through which descriptors are handed over.
 *
 * SOCK_SEQPACKET, used once per connection: the consumer brings its token and
 * its own pidfd, the producer answers with the claim and the descriptors.  Who
 * the peer is comes from the kernel (SO_PEERPIDFD, else SO_PEERCRED); a pidfd
 * that it merely sent serves for liveness, never for killing.
 */
#ifndef TSI_WIRE_DOOR_H
#define TSI_WIRE_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

#define TSI_DOOR_FDS (3 + TSOCK_MAX_FIELDS)

struct tsi_visitor {
	int sock;
	uint32_t pid;   /* in our pid namespace; 0 when it has none */
	int pidfd;      /* -1: none to be had; then sock's hang-up counts */
	bool may_kill;  /* pidfd came from the kernel, not from the peer */
	bool keep_sock; /* it can't get our pidfd: leave sock open */
	uint8_t token[TSI_TOKEN];
};

/* The producer's answer; on code != 0, text says why and no fds come. */
struct tsi_answer {
	int32_t code;
	uint32_t row;       /* row of the header */
	uint64_t start;     /* the claim's first sequence number */
	uint64_t epoch_end; /* where the consumer's first epoch ends */
	uint64_t incarnation;
	uint32_t keep_sock; /* 1: both ends keep the socket open */
	char text[256];
};

/* Producer.  listen unlinks a stale socket: call it with the lock held. */
int tsi_door_listen(const char *path, int *fd);
/* TSOCK_EAGAIN when nobody is there; never blocks. */
int tsi_door_accept(int fd, int *sock);
/*
 * Read what the visitor brought.  Never blocks: TSOCK_EAGAIN when it is not
 * there yet, TSOCK_EREFUSED for another uid, TSOCK_EPROTO for garbage or a
 * hang-up; sock stays the caller's, and on success v->pidfd is.  If v->pidfd
 * is -1 or v->keep_sock is set, answer with keep_sock 1 and keep sock open.
 */
int tsi_door_receive(int sock, struct tsi_visitor *v);
int tsi_door_answer(int sock, const struct tsi_answer *a, const int *fds,
		    unsigned nfds);

/*
 * Consumer: knock with a token.  fds (TSI_DOOR_FDS of them, CLOEXEC) receives
 * *nfds descriptors; *producer is the producer's pidfd or -1; *sock is the
 * connection, to be kept open when the answer says so (else -1 and closed).
 * Waits at most timeout_ms, then TSOCK_EAGAIN; TSOCK_ENOPROD when nobody
 * listens, TSOCK_ELOST when the producer hung up (it doesn't know the token, or
 * died).  An answer with a code becomes that error.
 */
int tsi_door_knock(const char *path, const uint8_t *token, int timeout_ms,
		   struct tsi_answer *a, int *fds, unsigned *nfds,
		   int *producer, int *sock);

/* Is somebody listening there?  A connect that is closed again at once. */
bool tsi_door_answers(const char *path);

/* Has the process behind a pidfd (or, with -1, behind sock) gone? */
bool tsi_peer_gone(int pidfd, int sock);

#endif
