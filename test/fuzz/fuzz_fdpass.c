/* SPDX-License-Identifier: MIT */
/*
 * fuzz_fdpass.c - any packet with any descriptors, received by either side, is
 * a request, a reply or an error, and leaves no descriptor behind.
 *
 * An input is {how: which side, how many descriptors, of what kind} and the
 * packet.  The consumer's side needs somebody who answers: a thread.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/err.h"
#include "corpus.h"
#include "test/lib/send_fds.h"
#include "wire/fdpass.h"
#include "wire/peer.h"

#define FDS_MAX 64
#define VERSION_AT 4 /* in a packet, its low byte */

static char path[108];
static int listener = -1;
static sem_t replied; /* the thread has closed all that it opened */
/* What is sent to either side. */
static uint8_t packet[4096];
static size_t packet_len;
static unsigned packet_fds, packet_kind;

static int some_fd(unsigned kind)
{
	int p[2];

	switch (kind % 4) {
	case 0:
		return open("/", O_PATH | O_CLOEXEC);
	case 1:
		return tsi_peer_open_pidfd((uint32_t)getpid());
	case 2:
		never(pipe2(p, O_CLOEXEC));
		close(p[1]);
		return p[0];
	default:
		return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	}
}

static void send_it(int sock, const uint8_t *bytes, size_t len, unsigned nfds,
		    unsigned kind)
{
	int fd[FDS_MAX];

	for (unsigned i = 0; i < nfds; i++) {
		fd[i] = some_fd(kind + i);
		never(fd[i] < 0);
	}
	send_fds(sock, bytes, len, fd, nfds);
	for (unsigned i = 0; i < nfds; i++)
		close(fd[i]);
}

static void *reply_to_all(void *arg)
{
	(void)arg;
	for (;;) {
		struct pollfd p = { .fd = listener, .events = POLLIN };
		uint8_t connect_as_consumer[64];
		int s;

		/* A sleeping accept() has taken a descriptor already. */
		if (poll(&p, 1, -1) < 1)
			continue;
		s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		never(s < 0);
		/* With its pidfd: which nobody takes, so it is closed. */
		if (recv(s, connect_as_consumer, sizeof(connect_as_consumer),
			 0) > 0)
			send_it(s, packet, packet_len, packet_fds, packet_kind);
		close(s);
		sem_post(&replied);
	}
	return NULL;
}

static void seeds(const char *folder)
{
	struct tsi_reply a = { .row = 3, .start = 64, .epoch_end = 164 };
	uint8_t token[TSI_TOKEN] = { 7 }, bytes[512] = { 0 };
	int pair[2];
	ssize_t n;

	never(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	never(tsi_fdpass_reply(pair[0], &a, NULL, 0));
	n = recv(pair[1], bytes + 3, sizeof(bytes) - 3, 0);
	never(n <= 0);
	bytes[0] = 1;
	corpus_put(folder, "answer", bytes, (size_t)n + 3);
	a.code = TSOCK_EREFUSED;
	strcpy(a.text, "no");
	never(tsi_fdpass_reply(pair[0], &a, NULL, 0));
	n = recv(pair[1], bytes + 3, sizeof(bytes) - 3, 0);
	never(n <= 0);
	corpus_put(folder, "refusal", bytes, (size_t)n + 3);
	close(pair[0]);
	close(pair[1]);
	/* {magic, version, keep_sock, token} */
	memset(bytes, 0, sizeof(bytes));
	bytes[1] = 1;
	bytes[2] = 1;
	memcpy(bytes + 3, "DOOR", 4);
	bytes[3 + 4] = TSI_MSG_VERSION;
	memcpy(bytes + 11, token, sizeof(token));
	corpus_put(folder, "request", bytes, 3 + 24);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = corpus_folder(*argc, *argv), *tmp;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	pthread_t thread;

	tmp = getenv("TMPDIR");
	snprintf(path, sizeof(path), "%s/fuzz-fdpass-%d", tmp ? tmp : "/tmp",
		 (int)getpid());
	memcpy(sa.sun_path, path, sizeof(path));
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unlink(path);
	never(bind(listener, (struct sockaddr *)&sa, sizeof(sa)) ||
	      listen(listener, 8));
	never(sem_init(&replied, 0, 0));
	never(pthread_create(&thread, NULL, reply_to_all, NULL));
	pthread_detach(thread);
	if (folder)
		seeds(folder);
	return 0;
}

static void receive_as_producer(void)
{
	int pair[2];
	struct tsi_peer v = { .pidfd = -2 };

	never(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			 0, pair));
	never(tsi_fdpass_receive(pair[1], &v) != TSOCK_EAGAIN);
	send_it(pair[0], packet, packet_len, packet_fds, packet_kind);
	if (!tsi_fdpass_receive(pair[1], &v)) {
		never(packet_len != 24 || v.pidfd < -1);
		if (v.pidfd >= 0)
			close(v.pidfd);
	} else {
		never(v.pidfd != -2);
	}
	close(pair[0]);
	close(pair[1]);
}

static void connect_as_consumer(void)
{
	struct tsi_passed p = { .producer = -2, .sock = -2 };
	uint8_t token[TSI_TOKEN] = { 1 };
	int64_t begun = tsi_now_ms();
	struct tsi_connecting c = { .open = false };
	int err = tsi_fdpass_connect(path, token, 5000, &c, &p);

	never(c.open);
	while (sem_wait(&replied))
		never(errno != EINTR);
	/* Some replies say so; the time was not used up. */
	never(tsi_now_ms() - begun > 4000);
	if (err) {
		never(err > 0 || p.nfds || p.producer != -2 || p.sock != -2);
		return;
	}
	never(p.nfds > TSI_FDPASS_FDS || p.reply.code);
	never(!memchr(p.reply.text, 0, sizeof(p.reply.text)));
	for (unsigned i = 0; i < p.nfds; i++)
		never(close(p.fd[i]));
	if (p.producer >= 0)
		never(close(p.producer));
	if (p.sock >= 0)
		never(close(p.sock));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int lowest = corpus_lowest_fd();

	if (size < 3)
		return 0;
	packet_fds = data[1] % FDS_MAX;
	packet_kind = data[2];
	packet_len = size - 3 < sizeof(packet) ? size - 3 : sizeof(packet);
	memcpy(packet, data + 3, packet_len);
	/* Inputs that are kept are older than the version. */
	if (packet_len > VERSION_AT)
		packet[VERSION_AT] = TSI_MSG_VERSION;
	if (data[0] & 1)
		connect_as_consumer();
	else
		receive_as_producer();
	never(corpus_lowest_fd() != lowest);
	return 0;
}
