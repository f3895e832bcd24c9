/*
 * test_fdpass.c - who gets in, what comes through, and who is seen to die.
 *
 * The producer is this process or a child; consumers are children, so that they
 * can be killed, be somebody else, or live under a system call filter.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "wire/fdpass.h"
#include "wire/peer.h"

#define LONG_MS 60000
#define NO_PEERPIDFD 1
#define NO_PIDFD_OPEN 2

static const uint8_t token[TSI_TOKEN] = "fifteen letters";
static char folder[64], path[80];
static int listener;

static int start_listening(void **s)
{
	(void)s;
	strcpy(folder, "/tmp/tsock-fdpass-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/s.door", folder);
	return tsi_fdpass_listen(path, &listener);
}

static int stop_listening(void **s)
{
	(void)s;
	close(listener);
	unlink(path);
	return rmdir(folder);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int exit_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	poll(&p, 1, LONG_MS);
}

/* Accept the next connection: what tsi_fdpass_receive() says of it. */
static int receive(struct tsi_peer *v)
{
	int sock, err;

	wait_for(listener);
	err = tsi_fdpass_accept(listener, &sock);
	if (err)
		return err;
	while ((err = tsi_fdpass_receive(sock, v)) == TSOCK_EAGAIN)
		wait_for(sock);
	if (err)
		close(sock);
	return err;
}

static void forget(struct tsi_peer *v)
{
	if (v->pidfd >= 0)
		close(v->pidfd);
	close(v->sock);
}

/* A connection that knows nothing of our packets. */
static int raw_connect(void)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	strcpy(sa.sun_path, path);
	assert_int_equal(connect(s, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return s;
}

static ssize_t raw_send(int sock, const void *bytes, size_t len, const int *fds,
			unsigned n)
{
	static _Alignas(struct cmsghdr) char control[CMSG_SPACE(64 * 4)];
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		struct cmsghdr *c;

		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	return sendmsg(sock, &h, MSG_NOSIGNAL);
}

/* A request as it is on the wire. */
static size_t request_bytes(uint8_t *out)
{
	static const uint8_t head[8] = { 'D', 'O', 'O', 'R', TSI_MSG_VERSION };

	memcpy(out, head, 8);
	memcpy(out + 8, token, TSI_TOKEN);
	return 8 + TSI_TOKEN;
}

static int connect_to_producer(struct tsi_passed *k)
{
	return tsi_fdpass_connect(path, token, LONG_MS, k);
}

/* ------------------------------------------------------------------------
 * The usual visit
 */

static int connect_once(void)
{
	struct tsi_passed k;

	if (connect_to_producer(&k))
		return 1;
	if (k.nfds != 2 || k.sock != -1 || k.reply.row != 3 ||
	    k.reply.start != 1ull << 40)
		return 2;
	if (k.reply.epoch_end != 7 || k.reply.incarnation != 9 ||
	    k.reply.keep_sock)
		return 3;
	for (unsigned i = 0; i < k.nfds; i++) {
		if (fcntl(k.fd[i], F_GETFD) != FD_CLOEXEC)
			return 4;
	}
	if (write(k.fd[1], "ok", 2) != 2)
		return 5;
	if (k.producer >= 0 && tsi_peer_gone(k.producer, -1))
		return 6;
	return 0;
}

static void token_and_descriptors_arrive(void **s)
{
	struct tsi_reply a = {
		.row = 3, .start = 1ull << 40, .epoch_end = 7, .incarnation = 9
	};
	int before = count_fds(), p[2];
	struct tsi_peer v;
	char got[4];
	pid_t pid;

	(void)s;
	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (!pid)
		_exit(connect_once());
	assert_int_equal(receive(&v), 0);
	assert_int_equal(v.pid, pid);
	assert_memory_equal(v.token, token, TSI_TOKEN);
	assert_int_equal(fcntl(v.sock, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(v.pidfd, F_GETFD), FD_CLOEXEC);
	assert_true(v.may_kill);
	assert_false(v.keep_sock);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, p, 2), 0);
	assert_int_equal(read(p[0], got, 4), 2);
	assert_memory_equal(got, "ok", 2);
	assert_int_equal(exit_status(pid), 0);
	forget(&v);
	close(p[0]);
	close(p[1]);
	assert_int_equal(count_fds(), before);
}

static int connect_for_many(void)
{
	struct tsi_passed k;
	struct stat st;

	if (connect_to_producer(&k) || k.nfds != TSI_FDPASS_FDS)
		return 1;
	for (unsigned i = 0; i < k.nfds; i++) {
		if (fstat(k.fd[i], &st) || !S_ISFIFO(st.st_mode))
			return 2;
	}
	return 0;
}

static void as_many_descriptors_as_promised_fit(void **s)
{
	struct tsi_reply a = { 0 };
	struct tsi_peer v;
	int p[2], fds[TSI_FDPASS_FDS + 1];
	pid_t pid;

	(void)s;
	assert_int_equal(pipe(p), 0);
	for (int i = 0; i <= TSI_FDPASS_FDS; i++)
		fds[i] = p[i & 1];
	pid = fork();
	if (!pid)
		_exit(connect_for_many());
	assert_int_equal(receive(&v), 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, fds, TSI_FDPASS_FDS + 1),
			 TSOCK_EARG);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, fds, TSI_FDPASS_FDS), 0);
	assert_int_equal(exit_status(pid), 0);
	forget(&v);
	close(p[0]);
	close(p[1]);
}

static int connect_and_be_refused(void)
{
	struct tsi_passed k = { .nfds = 77 };

	if (connect_to_producer(&k) != TSOCK_EREFUSED || k.nfds != 77)
		return 1;
	return strcmp(tsock_errmsg(), "the ring is full of people") ? 2 : 0;
}

static void a_refusal_becomes_the_consumers_error(void **s)
{
	struct tsi_reply a = { .code = TSOCK_EREFUSED };
	struct tsi_peer v;
	pid_t pid;

	(void)s;
	strcpy(a.text, "the ring is full of people");
	pid = fork();
	if (!pid)
		_exit(connect_and_be_refused());
	assert_int_equal(receive(&v), 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, &listener, 1), 0);
	assert_int_equal(exit_status(pid), 0);
	forget(&v);
}

static void a_hang_up_without_a_reply_is_lost(void **s)
{
	struct tsi_peer v;
	pid_t pid;

	(void)s;
	pid = fork();
	if (!pid) {
		struct tsi_passed k;

		_exit(connect_to_producer(&k) == TSOCK_ELOST ? 0 : 1);
	}
	assert_int_equal(receive(&v), 0);
	forget(&v);
	assert_int_equal(exit_status(pid), 0);
}

/* ------------------------------------------------------------------------
 * Deaths
 */

static void a_killed_consumer_is_gone(void **s)
{
	struct tsi_reply a = { 0 };
	struct tsi_peer v;
	pid_t pid;

	(void)s;
	pid = fork();
	if (!pid) {
		struct tsi_passed k;

		connect_to_producer(&k);
		for (;;)
			pause();
	}
	assert_int_equal(receive(&v), 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, NULL, 0), 0);
	assert_false(tsi_peer_gone(v.pidfd, v.sock));
	kill(pid, SIGSTOP);
	assert_false(tsi_peer_gone(v.pidfd, v.sock));
	kill(pid, SIGKILL);
	wait_for(v.pidfd);
	/* Before anybody has waited for it. */
	assert_true(tsi_peer_gone(v.pidfd, v.sock));
	assert_int_equal(exit_status(pid), 1000 + SIGKILL);
	assert_true(tsi_peer_gone(v.pidfd, v.sock));
	/* An answer to the dead is an error, and no signal. */
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, NULL, 0), TSOCK_EPROTO);
	forget(&v);
}

static int serve_one(bool keep)
{
	struct tsi_reply a = { .keep_sock = keep };
	struct tsi_peer v;

	if (receive(&v) || tsi_fdpass_reply(v.sock, &a, NULL, 0))
		return 1;
	for (;;)
		pause();
}

static void a_killed_producer_is_gone(void **s)
{
	(void)s;
	for (int keep = 0; keep < 2; keep++) {
		struct tsi_passed k;
		pid_t pid;

		/* The pidfd is of who called listen(): the child does. */
		close(listener);
		pid = fork();
		if (!pid)
			_exit(tsi_fdpass_listen(path, &listener) ||
			      serve_one(keep));
		while (tsi_fdpass_connect(path, token, LONG_MS, &k))
			poll(NULL, 0, 1);
		assert_true(k.producer >= 0);
		assert_int_equal(k.sock >= 0, keep);
		assert_false(tsi_peer_gone(k.producer, k.sock));
		assert_false(tsi_peer_gone(-1, k.sock));
		kill(pid, SIGKILL);
		wait_for(k.producer);
		assert_true(tsi_peer_gone(k.producer, k.sock));
		if (keep) {
			wait_for(k.sock);
			assert_true(tsi_peer_gone(-1, k.sock));
			close(k.sock);
		}
		close(k.producer);
		exit_status(pid);
		assert_int_equal(tsi_fdpass_listen(path, &listener), 0);
	}
}

static void a_hung_up_socket_is_gone(void **s)
{
	int p[2];

	(void)s;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p), 0);
	assert_false(tsi_peer_gone(-1, p[0]));
	assert_int_equal(send(p[1], "x", 1, 0), 1);
	assert_false(tsi_peer_gone(-1, p[0]));
	close(p[1]);
	assert_true(tsi_peer_gone(-1, p[0]));
	close(p[0]);
	assert_false(tsi_peer_gone(-1, -1));
}

/* ------------------------------------------------------------------------
 * Where pidfds are filtered
 */

static void forbid(int what)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 what & NO_PIDFD_OPEN ? 434 : 0xffffffff, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 what & NO_PEERPIDFD ? SYS_getsockopt : 0xffffffff, 0,
			 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 77, 2, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (what && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)))
		_exit(99);
}

static int connect_under(int filter)
{
	struct tsi_passed k;

	forbid(filter);
	if (connect_to_producer(&k))
		return 1;
	if (tsi_peer_gone(k.producer, k.sock))
		return 2;
	/* One of the two has to be there to watch the producer by. */
	if (k.producer < 0 && k.sock < 0)
		return 3;
	if (filter == (NO_PEERPIDFD | NO_PIDFD_OPEN) && k.producer >= 0)
		return 4;
	for (;;)
		pause();
}

struct expected {
	bool pidfd, may_kill;
};

static int serve_under(int filter, int consumers, struct expected want)
{
	struct tsi_reply a = { 0 };
	struct tsi_peer v;
	pid_t pid;
	int watch;

	/* So that the listener is this process'. */
	close(listener);
	if (tsi_fdpass_listen(path, &listener))
		return 10;
	pid = fork();
	if (!pid)
		_exit(connect_under(consumers));
	forbid(filter);
	if (receive(&v))
		return 11;
	if (v.pid != (uint32_t)pid || (v.pidfd >= 0) != want.pidfd ||
	    v.may_kill != want.may_kill)
		return 12;
	a.keep_sock = v.pidfd < 0 || v.keep_sock;
	if (tsi_fdpass_reply(v.sock, &a, NULL, 0) ||
	    tsi_peer_gone(v.pidfd, v.sock))
		return 13;
	/* It would have left by now had it not been content. */
	kill(pid, SIGKILL);
	watch = v.pidfd >= 0 ? v.pidfd : v.sock;
	wait_for(watch);
	if (!tsi_peer_gone(v.pidfd, v.sock))
		return 14;
	return exit_status(pid) == 1000 + SIGKILL ? 0 : 15;
}

static void every_filter_leaves_a_way_to_see_death(void **s)
{
	static const struct {
		int producer, consumer;
		struct expected want;
	} t[] = {
		{ 0, 0, { true, true } },
		{ 0, 3, { true, true } },
		/* As before Linux 6.5: both pidfds are of one process. */
		{ NO_PEERPIDFD, 0, { true, true } },
		/* Nothing vouches for the pid. */
		{ NO_PEERPIDFD, 3, { true, false } },
		{ NO_PIDFD_OPEN, 0, { true, true } },
		/* What it sent serves for liveness. */
		{ 3, 0, { true, false } },
		{ 3, NO_PEERPIDFD, { true, false } },
		{ 3, 3, { false, false } },
	};

	(void)s;
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(serve_under(t[i].producer, t[i].consumer,
					  t[i].want));
		assert_int_equal(exit_status(pid), 0);
	}
}

/* A consumer that sends fd as its pidfd; what the producer takes it for. */
static int take_for_pidfd(int filter, int fd, struct tsi_peer *v)
{
	uint8_t bytes[64];
	size_t len = request_bytes(bytes);
	int sock;

	forbid(filter);
	sock = raw_connect();
	if (raw_send(sock, bytes, len, &fd, 1) != (ssize_t)len)
		return -1;
	return receive(v);
}

static int lie_about_pidfd(int what)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int parent = tsi_pidfd_open((uint32_t)getppid());
	struct tsi_peer v;

	switch (what) {
	case 0: /* not one at all, and nothing else to go by */
		if (take_for_pidfd(3, null, &v) || v.pidfd != -1)
			return 1;
		break;
	case 1: /* not one at all: the kernel's is taken */
		if (take_for_pidfd(0, null, &v) || v.pidfd < 0 || !v.may_kill)
			return 2;
		break;
	case 2: /* somebody else's: never to kill by */
		if (take_for_pidfd(NO_PEERPIDFD, parent, &v) || v.may_kill)
			return 3;
		break;
	case 3: /* somebody else's, and the kernel knows better */
		if (take_for_pidfd(0, parent, &v) || !v.may_kill)
			return 4;
		/* That parent lives on; its death says nothing of us. */
		if (syscall(SYS_pidfd_send_signal, v.pidfd, SIGUSR1, NULL, 0))
			return 5;
		break;
	}
	return 0;
}

static void a_sent_pidfd_is_never_trusted(void **s)
{
	(void)s;
	for (int what = 0; what < 4; what++) {
		pid_t pid = fork();

		if (!pid) {
			alarm(20);
			_exit(lie_about_pidfd(what));
		}
		/* In case 3 the signal hits the child, not its parent. */
		assert_int_equal(exit_status(pid),
				 what == 3 ? 1000 + SIGUSR1 : 0);
	}
}

/* ------------------------------------------------------------------------
 * Peers to be refused
 */

static void another_uid_is_refused(void **s)
{
	struct tsi_peer v;
	pid_t pid;

	(void)s;
	if (geteuid()) {
		print_message("not root: no other uid to be had\n");
		skip();
	}
	assert_int_equal(chmod(folder, 0777), 0);
	assert_int_equal(chmod(path, 0777), 0);
	pid = fork();
	if (!pid) {
		struct tsi_passed k;

		if (setgid(65534) || setuid(65534))
			_exit(9);
		/* It doesn't trust us either. */
		if (connect_to_producer(&k) != TSOCK_EREFUSED ||
		    tsi_fdpass_listening(path))
			_exit(1);
		if (!strstr(tsock_errmsg(), "uid 65534"))
			_exit(2);
		raw_connect();
		pause();
		_exit(3);
	}
	/* Two that hung up, then one that says nothing. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(receive(&v), TSOCK_EREFUSED);
		assert_non_null(strstr(tsock_errmsg(), "65534"));
	}
	kill(pid, SIGKILL);
	assert_int_equal(exit_status(pid), 1000 + SIGKILL);
}

static int send_bytes(const void *bytes, size_t len, const int *fds, unsigned n)
{
	int sock = raw_connect(), err;
	struct tsi_peer v;

	assert_int_equal(raw_send(sock, bytes, len, fds, n), len);
	err = receive(&v);
	if (!err)
		forget(&v);
	close(sock);
	return err;
}

static void garbage_is_refused_and_leaks_nothing(void **s)
{
	int before = count_fds(), fds[40];
	uint8_t bytes[4096] = { 0 };
	size_t len = request_bytes(bytes);

	(void)s;
	for (int i = 0; i < 40; i++)
		fds[i] = listener;
	assert_int_equal(send_bytes(bytes, len, NULL, 0), 0);
	assert_int_equal(send_bytes(bytes, len, fds, 1), 0);
	assert_int_equal(send_bytes(bytes, len, fds, 2), TSOCK_EPROTO);
	assert_int_equal(send_bytes(bytes, len, fds, 5), TSOCK_EPROTO);
	assert_int_equal(send_bytes(bytes, len, fds, 40), TSOCK_EPROTO);
	assert_int_equal(send_bytes(bytes, len - 1, fds, 2), TSOCK_EPROTO);
	assert_int_equal(send_bytes(bytes, len + 1, fds, 2), TSOCK_EPROTO);
	assert_int_equal(send_bytes(bytes, 4096, fds, 2), TSOCK_EPROTO);
	assert_int_equal(send_bytes(bytes, 1, NULL, 0), TSOCK_EPROTO);
	assert_int_equal(send_bytes(bytes, 0, fds, 1), TSOCK_EPROTO);
	bytes[4] = 99;
	assert_int_equal(send_bytes(bytes, len, fds, 1), TSOCK_EPROTO);
	assert_non_null(strstr(tsock_errmsg(), "version"));
	bytes[0] = 'X';
	assert_int_equal(send_bytes(bytes, len, fds, 1), TSOCK_EPROTO);
	assert_int_equal(count_fds(), before);
}

static void a_silent_consumer_blocks_nobody(void **s)
{
	struct tsi_peer v;
	int silent, sock;
	pid_t pid;

	(void)s;
	assert_int_equal(tsi_fdpass_accept(listener, &sock), TSOCK_EAGAIN);
	silent = raw_connect();
	assert_int_equal(tsi_fdpass_accept(listener, &sock), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(tsi_fdpass_receive(sock, &v), TSOCK_EAGAIN);
	pid = fork();
	if (!pid)
		_exit(connect_and_be_refused() == 1 ? 0 : 1);
	assert_int_equal(receive(&v), 0);
	forget(&v);
	assert_int_equal(exit_status(pid), 0);
	close(silent);
	assert_int_equal(tsi_fdpass_receive(sock, &v), TSOCK_EPROTO);
	close(sock);
}

/* What a false producer may answer. */
static int replied_with(const void *bytes, size_t len, const int *fds,
			unsigned n)
{
	pid_t pid = fork();
	int sock, code;

	if (!pid) {
		int before = count_fds();
		struct tsi_passed k;
		int err = connect_to_producer(&k);

		for (unsigned i = 0; !err && i < k.nfds; i++)
			close(k.fd[i]);
		if (!err)
			close(k.producer);
		_exit(count_fds() == before ? -err : 100);
	}
	wait_for(listener);
	assert_int_equal(tsi_fdpass_accept(listener, &sock), 0);
	wait_for(sock);
	assert_int_equal(raw_send(sock, bytes, len, fds, n), len);
	code = exit_status(pid);
	close(sock);
	return -code;
}

static void a_false_producers_reply_is_refused(void **s)
{
	static uint8_t ok[300] = { 'D', 'O', 'O', 'R', TSI_MSG_VERSION };
	int fds[40];

	(void)s;
	for (int i = 0; i < 40; i++)
		fds[i] = listener;
	assert_int_equal(replied_with(ok, 300, NULL, 0), 0);
	ok[6] = 3;
	assert_int_equal(replied_with(ok, 300, fds, 3), 0);
	ok[6] = 0;
	/* Descriptors that weren't announced, and the other way round. */
	assert_int_equal(replied_with(ok, 300, fds, 3), TSOCK_EPROTO);
	ok[6] = 2;
	assert_int_equal(replied_with(ok, 300, NULL, 0), TSOCK_EPROTO);
	assert_int_equal(replied_with(ok, 300, fds, 40), TSOCK_EPROTO);
	assert_int_equal(replied_with(ok, 299, fds, 2), TSOCK_EPROTO);
	assert_int_equal(replied_with(ok, 8, fds, 2), TSOCK_EPROTO);
	/* A text that never ends; a code that is none. */
	memset(ok + 44, 'x', 256);
	assert_int_equal(replied_with(ok, 300, fds, 2), TSOCK_EPROTO);
	memset(ok + 44, 0, 256);
	ok[8] = 5;
	assert_int_equal(replied_with(ok, 300, fds, 2), TSOCK_EPROTO);
	/* An error with descriptors keeps none of them. */
	memset(ok + 8, 0xff, 4);
	ok[8] = (uint8_t)(256 + TSOCK_ENOMEM);
	assert_int_equal(replied_with(ok, 300, fds, 2), TSOCK_ENOMEM);
	memset(ok + 8, 0, 4);
}

/* ------------------------------------------------------------------------
 * Waiting
 */

static void on_alarm(int sig)
{
	(void)sig;
}

static void connecting_ends_at_its_deadline_in_spite_of_signals(void **s)
{
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct itimerval it = { { 0, 3000 }, { 0, 3000 } }, off = { 0 };
	int before = count_fds();
	int64_t start = tsi_now_ms();
	struct tsi_passed k;

	(void)s;
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &it, NULL);
	/* The backlog accepts it; nobody reads. */
	assert_int_equal(tsi_fdpass_connect(path, token, 150, &k),
			 TSOCK_EAGAIN);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(tsi_now_ms() - start >= 149);
	assert_int_equal(count_fds(), before);
}

static void a_full_backlog_is_waited_for(void **s)
{
	int sock[200], n = 0, err;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct tsi_reply a = { 0 };
	struct tsi_peer v;
	struct tsi_passed k;
	pid_t pid;

	(void)s;
	strcpy(sa.sun_path, path);
	for (; n < 200; n++) {
		sock[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		if (connect(sock[n], (struct sockaddr *)&sa, sizeof(sa)))
			break;
	}
	assert_in_range(n, 1, 199);
	assert_int_equal(errno, EAGAIN);
	assert_true(tsi_fdpass_listening(path));
	assert_int_equal(tsi_fdpass_connect(path, token, 20, &k), TSOCK_EAGAIN);
	pid = fork();
	for (int i = 0; i <= n; i++)
		close(sock[i]);
	if (!pid)
		_exit(connect_to_producer(&k) ? 1 : 0);
	do
		err = receive(&v);
	while (err == TSOCK_EPROTO);
	assert_int_equal(err, 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, NULL, 0), 0);
	forget(&v);
	assert_int_equal(exit_status(pid), 0);
}

static void nobody_there_is_said(void **s)
{
	struct tsi_passed k;

	(void)s;
	assert_true(tsi_fdpass_listening(path));
	close(listener);
	/* The file is there, as after a SIGKILL. */
	assert_false(tsi_fdpass_listening(path));
	assert_int_equal(connect_to_producer(&k), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), path));
	assert_int_equal(tsi_fdpass_listen(path, &listener), 0);
	assert_true(tsi_fdpass_listening(path));
	close(listener);
	unlink(path);
	assert_int_equal(connect_to_producer(&k), TSOCK_ENOPROD);
	assert_false(tsi_fdpass_listening(path));
	assert_int_equal(tsi_fdpass_listen("/nonexistent/s.door", &listener),
			 TSOCK_ESYS);
	assert_int_equal(tsi_fdpass_listen(path, &listener), 0);
}

/* ------------------------------------------------------------------------
 * Descriptor limits
 */

static void leave_descriptors(int spare)
{
	struct rlimit limit = { 0 };
	int top;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	top = dup(0);
	close(top);
	limit.rlim_cur = (rlim_t)(top + spare);
	if (setrlimit(RLIMIT_NOFILE, &limit))
		_exit(98);
}

static void a_consumers_descriptor_limit_is_named(void **s)
{
	struct tsi_reply a = { 0 };
	struct tsi_peer v;
	int fds[8];
	pid_t pid;

	(void)s;
	for (int i = 0; i < 8; i++)
		fds[i] = listener;
	pid = fork();
	if (!pid) {
		struct tsi_passed k;

		leave_descriptors(5);
		if (connect_to_producer(&k) != TSOCK_ESYS)
			_exit(1);
		_exit(strstr(tsock_errmsg(), "ulimit -n") ? 0 : 2);
	}
	assert_int_equal(receive(&v), 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, fds, 8), 0);
	assert_int_equal(exit_status(pid), 0);
	forget(&v);
}

static int serve_without_descriptors(void)
{
	struct tsi_peer v;
	int first = raw_connect(), sock;
	uint8_t bytes[64];
	size_t len = request_bytes(bytes);

	if (raw_send(first, bytes, len, &first, 1) < 0)
		return 1;
	leave_descriptors(0);
	if (tsi_fdpass_accept(listener, &sock) != TSOCK_ESYS ||
	    !strstr(tsock_errmsg(), "ulimit -n"))
		return 2;
	leave_descriptors(1);
	if (tsi_fdpass_accept(listener, &sock))
		return 3;
	return tsi_fdpass_receive(sock, &v) == TSOCK_EPROTO &&
			       strstr(tsock_errmsg(), "ulimit -n")
		       ? 0
		       : 4;
}

static void a_producers_descriptor_limit_is_named(void **s)
{
	pid_t pid;

	(void)s;
	pid = fork();
	if (!pid)
		_exit(serve_without_descriptors());
	assert_int_equal(exit_status(pid), 0);
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, start_listening, stop_listening)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(token_and_descriptors_arrive),
		TEST(as_many_descriptors_as_promised_fit),
		TEST(a_refusal_becomes_the_consumers_error),
		TEST(a_hang_up_without_a_reply_is_lost),
		TEST(a_killed_consumer_is_gone),
		TEST(a_killed_producer_is_gone),
		TEST(a_hung_up_socket_is_gone),
		TEST(every_filter_leaves_a_way_to_see_death),
		TEST(a_sent_pidfd_is_never_trusted),
		TEST(another_uid_is_refused),
		TEST(garbage_is_refused_and_leaks_nothing),
		TEST(a_silent_consumer_blocks_nobody),
		TEST(a_false_producers_reply_is_refused),
		TEST(connecting_ends_at_its_deadline_in_spite_of_signals),
		TEST(a_full_backlog_is_waited_for),
		TEST(nobody_there_is_said),
		TEST(a_consumers_descriptor_limit_is_named),
		TEST(a_producers_descriptor_limit_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
