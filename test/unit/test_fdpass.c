/* SPDX-License-Identifier: MIT */
/*
 * test_fdpass.c - what comes through, and how long it is waited for.
 *
 * The producer is this process or a child; consumers are children, so that they
 * can be killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "test/lib/fdpass_peers.h"
#include "test/lib/send_fds.h"
#include "test/lib/usage.h"

static int connect_once(void)
{
	struct tsi_passed k;

	if (fdpass_to_producer(&k))
		return 1;
	if (k.nfds != 2 || k.sock != -1 || k.reply.row != 3 ||
	    k.reply.reader != 5 || k.reply.start != 1ull << 40)
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
	struct tsi_reply a = { .row = 3,
			       .reader = 5,
			       .start = 1ull << 40,
			       .epoch_end = 7,
			       .incarnation = 9 };
	unsigned before = usage_descriptors(getpid());
	int p[2];
	struct tsi_peer v;
	char got[4];
	pid_t pid;

	(void)s;
	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (!pid)
		_exit(connect_once());
	assert_int_equal(fdpass_receive(&v), 0);
	assert_int_equal(v.pid, pid);
	assert_memory_equal(v.token, fdpass_token, TSI_TOKEN);
	assert_int_equal(fcntl(v.sock, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(v.pidfd, F_GETFD), FD_CLOEXEC);
	assert_true(v.may_kill);
	assert_false(v.keep_sock);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, p, 2), 0);
	assert_int_equal(read(p[0], got, 4), 2);
	assert_memory_equal(got, "ok", 2);
	assert_int_equal(fdpass_exit_status(pid), 0);
	fdpass_forget(&v);
	close(p[0]);
	close(p[1]);
	assert_int_equal(usage_descriptors(getpid()), before);
}

static int connect_for_many(void)
{
	struct tsi_passed k;
	struct stat st;

	if (fdpass_to_producer(&k) || k.nfds != TSI_FDPASS_FDS)
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
	assert_int_equal(fdpass_receive(&v), 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, fds, TSI_FDPASS_FDS + 1),
			 TSOCK_EARG);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, fds, TSI_FDPASS_FDS), 0);
	assert_int_equal(fdpass_exit_status(pid), 0);
	fdpass_forget(&v);
	close(p[0]);
	close(p[1]);
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
		_exit(fdpass_be_refused());
	assert_int_equal(fdpass_receive(&v), 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, &fdpass_listener, 1), 0);
	assert_int_equal(fdpass_exit_status(pid), 0);
	fdpass_forget(&v);
}

static void a_hang_up_without_a_reply_is_lost(void **s)
{
	struct tsi_peer v;
	pid_t pid;

	(void)s;
	pid = fork();
	if (!pid) {
		struct tsi_passed k;

		_exit(fdpass_to_producer(&k) == TSOCK_ELOST ? 0 : 1);
	}
	assert_int_equal(fdpass_receive(&v), 0);
	fdpass_forget(&v);
	assert_int_equal(fdpass_exit_status(pid), 0);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void connecting_ends_at_its_deadline_in_spite_of_signals(void **s)
{
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct itimerval it = { { 0, 3000 }, { 0, 3000 } }, off = { 0 };
	unsigned before = usage_descriptors(getpid());
	int64_t start = tsi_now_ms();
	struct tsi_connecting c = { .open = false };
	struct tsi_passed k;

	(void)s;
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &it, NULL);
	/* The backlog accepts it; nobody reads. */
	assert_int_equal(
		tsi_fdpass_connect(fdpass_path, fdpass_token, 150, &c, &k),
		TSOCK_EAGAIN);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(tsi_now_ms() - start >= 149);
	assert_true(c.open);
	tsi_fdpass_abandon(&c);
	tsi_fdpass_abandon(&c);
	assert_int_equal(usage_descriptors(getpid()), before);
}

static void a_connection_goes_on_at_the_next_call(void **s)
{
	static const int32_t codes[] = { 0, TSOCK_EAGAIN };

	(void)s;
	for (unsigned i = 0; i < 2; i++) {
		unsigned before = usage_descriptors(getpid());
		struct tsi_connecting c = { .open = false };
		struct tsi_reply a = { .code = codes[i], .row = 7 };
		struct tsi_passed k;
		struct tsi_peer v;
		int sock;

		for (unsigned n = 0; n < 3; n++) {
			assert_int_equal(tsi_fdpass_connect(fdpass_path,
							    fdpass_token, 0, &c,
							    &k),
					 TSOCK_EAGAIN);
			assert_true(c.open);
		}
		assert_int_equal(fdpass_receive(&v), 0);
		assert_int_equal(tsi_fdpass_reply(v.sock, &a, NULL, 0), 0);
		/* One connection, and one request on it. */
		assert_int_equal(tsi_fdpass_accept(fdpass_listener, &sock),
				 TSOCK_EAGAIN);
		assert_int_equal(tsi_fdpass_connect(fdpass_path, fdpass_token,
						    LONG_MS, &c, &k),
				 codes[i]);
		assert_false(c.open);
		if (!codes[i]) {
			assert_int_equal(k.reply.row, 7);
			if (k.producer >= 0)
				close(k.producer);
		}
		fdpass_forget(&v);
		assert_int_equal(usage_descriptors(getpid()), before);
	}
}

static void a_full_backlog_is_waited_for(void **s)
{
	int sock[200], n = 0, err;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct tsi_connecting c = { .open = false };
	struct tsi_reply a = { 0 };
	struct tsi_peer v;
	struct tsi_passed k;
	pid_t pid;

	(void)s;
	strcpy(sa.sun_path, fdpass_path);
	for (; n < 200; n++) {
		sock[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		if (connect(sock[n], (struct sockaddr *)&sa, sizeof(sa)))
			break;
	}
	assert_in_range(n, 1, 199);
	assert_int_equal(errno, EAGAIN);
	assert_true(tsi_fdpass_listening(fdpass_path));
	assert_int_equal(
		tsi_fdpass_connect(fdpass_path, fdpass_token, 20, &c, &k),
		TSOCK_EAGAIN);
	assert_true(c.open);
	pid = fork();
	for (int i = 0; i <= n; i++)
		close(sock[i]);
	if (!pid)
		_exit(tsi_fdpass_connect(fdpass_path, fdpass_token, LONG_MS, &c,
					 &k)
			      ? 1
			      : 0);
	tsi_fdpass_abandon(&c);
	do
		err = fdpass_receive(&v);
	while (err == TSOCK_EPROTO);
	assert_int_equal(err, 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, NULL, 0), 0);
	fdpass_forget(&v);
	assert_int_equal(fdpass_exit_status(pid), 0);
}

static void nobody_there_is_said(void **s)
{
	struct tsi_passed k;

	(void)s;
	assert_true(tsi_fdpass_listening(fdpass_path));
	close(fdpass_listener);
	/* The file is there, as after a SIGKILL. */
	assert_false(tsi_fdpass_listening(fdpass_path));
	assert_int_equal(fdpass_to_producer(&k), TSOCK_ENOPROD);
	assert_non_null(strstr(tsock_errmsg(), fdpass_path));
	assert_int_equal(tsi_fdpass_listen(fdpass_path, &fdpass_listener), 0);
	assert_true(tsi_fdpass_listening(fdpass_path));
	close(fdpass_listener);
	unlink(fdpass_path);
	assert_int_equal(fdpass_to_producer(&k), TSOCK_ENOPROD);
	assert_false(tsi_fdpass_listening(fdpass_path));
	assert_int_equal(
		tsi_fdpass_listen("/nonexistent/s.door", &fdpass_listener),
		TSOCK_ESYS);
	assert_int_equal(tsi_fdpass_listen(fdpass_path, &fdpass_listener), 0);
}

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
		fds[i] = fdpass_listener;
	pid = fork();
	if (!pid) {
		struct tsi_passed k;

		leave_descriptors(5);
		if (fdpass_to_producer(&k) != TSOCK_ESYS)
			_exit(1);
		_exit(strstr(tsock_errmsg(), "ulimit -n") ? 0 : 2);
	}
	assert_int_equal(fdpass_receive(&v), 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, fds, 8), 0);
	assert_int_equal(fdpass_exit_status(pid), 0);
	fdpass_forget(&v);
}

static int serve_without_descriptors(void)
{
	struct tsi_peer v;
	int first = fdpass_raw_connect(), sock;
	uint8_t bytes[64];
	size_t len = fdpass_request(bytes);

	if (send_fds(first, bytes, len, &first, 1) < 0)
		return 1;
	leave_descriptors(0);
	if (tsi_fdpass_accept(fdpass_listener, &sock) != TSOCK_ESYS ||
	    !strstr(tsock_errmsg(), "ulimit -n"))
		return 2;
	leave_descriptors(1);
	if (tsi_fdpass_accept(fdpass_listener, &sock))
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
	assert_int_equal(fdpass_exit_status(pid), 0);
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, fdpass_setup, fdpass_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(token_and_descriptors_arrive),
		TEST(as_many_descriptors_as_promised_fit),
		TEST(a_refusal_becomes_the_consumers_error),
		TEST(a_hang_up_without_a_reply_is_lost),
		TEST(connecting_ends_at_its_deadline_in_spite_of_signals),
		TEST(a_connection_goes_on_at_the_next_call),
		TEST(a_full_backlog_is_waited_for),
		TEST(nobody_there_is_said),
		TEST(a_consumers_descriptor_limit_is_named),
		TEST(a_producers_descriptor_limit_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
