/* SPDX-License-Identifier: MIT */
/*
 * test_fdpass_hostile.c - peers of another uid, peers that send garbage or lie,
 * and peers that live under a filter of system calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/lib/fdpass_peers.h"
#include "test/lib/send_fds.h"
#include "test/lib/usage.h"
#include "test/lib/seccomp.h"

#define NO_PEERPIDFD 1
#define NO_PIDFD_OPEN 2

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

	if (what && !seccomp_install(code, sizeof(code) / sizeof(code[0])))
		_exit(99);
}

static int connect_under(int filter)
{
	struct tsi_passed k;

	forbid(filter);
	if (fdpass_to_producer(&k))
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
	close(fdpass_listener);
	if (tsi_fdpass_listen(fdpass_path, &fdpass_listener))
		return 10;
	pid = fork();
	if (!pid)
		_exit(connect_under(consumers));
	forbid(filter);
	if (fdpass_receive(&v))
		return 11;
	if (v.pid != (uint32_t)pid || (v.pidfd >= 0) != want.pidfd ||
	    v.may_kill != want.may_kill)
		return 12;
	a.keep_sock = v.pidfd < 0 || v.keep_sock;
	if (tsi_fdpass_reply(v.sock, &a, NULL, 0) ||
	    tsi_peer_gone(v.pidfd, v.sock))
		return 13;
	/* The peer would have left by now, had it refused. */
	kill(pid, SIGKILL);
	watch = v.pidfd >= 0 ? v.pidfd : v.sock;
	fdpass_wait_for(watch);
	if (!tsi_peer_gone(v.pidfd, v.sock))
		return 14;
	return fdpass_exit_status(pid) == 1000 + SIGKILL ? 0 : 15;
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
		assert_int_equal(fdpass_exit_status(pid), 0);
	}
}

/* A consumer that sends fd as its pidfd; what the producer takes it for. */
static int take_for_pidfd(int filter, int fd, struct tsi_peer *v)
{
	uint8_t bytes[64];
	size_t len = fdpass_request(bytes);
	int sock;

	forbid(filter);
	sock = fdpass_raw_connect();
	if (send_fds(sock, bytes, len, &fd, 1) != (ssize_t)len)
		return -1;
	return fdpass_receive(v);
}

static int lie_about_pidfd(int what)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int parent = tsi_peer_open_pidfd((uint32_t)getppid());
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
		assert_int_equal(fdpass_exit_status(pid),
				 what == 3 ? 1000 + SIGUSR1 : 0);
	}
}

static void another_uid_is_refused(void **s)
{
	struct tsi_peer v;
	pid_t pid;

	(void)s;
	if (geteuid()) {
		print_message("not root: no other uid to be had\n");
		skip();
	}
	assert_int_equal(chmod(fdpass_folder, 0777), 0);
	assert_int_equal(chmod(fdpass_path, 0777), 0);
	pid = fork();
	if (!pid) {
		struct tsi_passed k;

		if (setgid(65534) || setuid(65534))
			_exit(9);
		/* The stranger doesn't trust us either. */
		if (fdpass_to_producer(&k) != TSOCK_EREFUSED ||
		    tsi_fdpass_listening(fdpass_path))
			_exit(1);
		if (!strstr(tsock_errmsg(), "uid 65534"))
			_exit(2);
		fdpass_raw_connect();
		for (;;)
			pause();
	}
	/* Two that hung up, then one that says nothing. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fdpass_receive(&v), TSOCK_EREFUSED);
		assert_non_null(strstr(tsock_errmsg(), "65534"));
	}
	kill(pid, SIGKILL);
	assert_int_equal(fdpass_exit_status(pid), 1000 + SIGKILL);
}

static int send_bytes(const void *bytes, size_t len, const int *fds, unsigned n)
{
	int sock = fdpass_raw_connect(), err;
	struct tsi_peer v;

	assert_int_equal(send_fds(sock, bytes, len, fds, n), len);
	err = fdpass_receive(&v);
	if (!err)
		fdpass_forget(&v);
	close(sock);
	return err;
}

static void garbage_is_refused_and_leaks_nothing(void **s)
{
	unsigned before = usage_descriptors(getpid());
	int fds[40];
	uint8_t bytes[4096] = { 0 };
	size_t len = fdpass_request(bytes);

	(void)s;
	for (int i = 0; i < 40; i++)
		fds[i] = fdpass_listener;
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
	assert_int_equal(usage_descriptors(getpid()), before);
}

static void a_silent_consumer_blocks_nobody(void **s)
{
	struct tsi_peer v;
	int silent, sock;
	pid_t pid;

	(void)s;
	assert_int_equal(tsi_fdpass_accept(fdpass_listener, &sock),
			 TSOCK_EAGAIN);
	silent = fdpass_raw_connect();
	assert_int_equal(tsi_fdpass_accept(fdpass_listener, &sock), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(tsi_fdpass_receive(sock, &v), TSOCK_EAGAIN);
	pid = fork();
	if (!pid)
		_exit(fdpass_be_refused() == 1 ? 0 : 1);
	assert_int_equal(fdpass_receive(&v), 0);
	fdpass_forget(&v);
	assert_int_equal(fdpass_exit_status(pid), 0);
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
		unsigned before = usage_descriptors(getpid());
		struct tsi_passed k;
		int err = fdpass_to_producer(&k);

		for (unsigned i = 0; !err && i < k.nfds; i++)
			close(k.fd[i]);
		if (!err)
			close(k.producer);
		_exit(usage_descriptors(getpid()) == before ? -err : 100);
	}
	fdpass_wait_for(fdpass_listener);
	assert_int_equal(tsi_fdpass_accept(fdpass_listener, &sock), 0);
	fdpass_wait_for(sock);
	assert_int_equal(send_fds(sock, bytes, len, fds, n), len);
	code = fdpass_exit_status(pid);
	close(sock);
	return -code;
}

static void a_false_producers_reply_is_refused(void **s)
{
	static uint8_t ok[304] = { 'D', 'O', 'O', 'R', TSI_MSG_VERSION };
	int fds[40];

	(void)s;
	for (int i = 0; i < 40; i++)
		fds[i] = fdpass_listener;
	assert_int_equal(replied_with(ok, 304, NULL, 0), 0);
	ok[6] = 3;
	assert_int_equal(replied_with(ok, 304, fds, 3), 0);
	ok[6] = 0;
	/* Descriptors that weren't announced, and the other way round. */
	assert_int_equal(replied_with(ok, 304, fds, 3), TSOCK_EPROTO);
	ok[6] = 2;
	assert_int_equal(replied_with(ok, 304, NULL, 0), TSOCK_EPROTO);
	assert_int_equal(replied_with(ok, 304, fds, 40), TSOCK_EPROTO);
	assert_int_equal(replied_with(ok, 303, fds, 2), TSOCK_EPROTO);
	assert_int_equal(replied_with(ok, 8, fds, 2), TSOCK_EPROTO);
	/* A text that never ends; a code that is none. */
	memset(ok + 48, 'x', 256);
	assert_int_equal(replied_with(ok, 304, fds, 2), TSOCK_EPROTO);
	memset(ok + 48, 0, 256);
	ok[8] = 5;
	assert_int_equal(replied_with(ok, 304, fds, 2), TSOCK_EPROTO);
	/* An error with descriptors keeps none of them. */
	memset(ok + 8, 0xff, 4);
	ok[8] = (uint8_t)(256 + TSOCK_ENOMEM);
	assert_int_equal(replied_with(ok, 304, fds, 2), TSOCK_ENOMEM);
	memset(ok + 8, 0, 4);
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, fdpass_setup, fdpass_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(every_filter_leaves_a_way_to_see_death),
		TEST(a_sent_pidfd_is_never_trusted),
		TEST(another_uid_is_refused),
		TEST(garbage_is_refused_and_leaks_nothing),
		TEST(a_silent_consumer_blocks_nobody),
		TEST(a_false_producers_reply_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
