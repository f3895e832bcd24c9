/* SPDX-License-Identifier: MIT */
/*
 * test_peer.c - the process at the other end of a connection: that it has died
 * is seen, and its name.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/fdpass_peers.h"

static void a_killed_consumer_is_gone(void **s)
{
	struct tsi_reply a = { 0 };
	struct tsi_peer v;
	pid_t pid;

	(void)s;
	pid = fork();
	if (!pid) {
		struct tsi_passed k;

		fdpass_to_producer(&k);
		for (;;)
			pause();
	}
	assert_int_equal(fdpass_receive(&v), 0);
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, NULL, 0), 0);
	assert_false(tsi_peer_gone(v.pidfd, v.sock));
	kill(pid, SIGSTOP);
	assert_false(tsi_peer_gone(v.pidfd, v.sock));
	kill(pid, SIGKILL);
	fdpass_wait_for(v.pidfd);
	/* Before anybody has waited for it. */
	assert_true(tsi_peer_gone(v.pidfd, v.sock));
	assert_int_equal(fdpass_exit_status(pid), 1000 + SIGKILL);
	assert_true(tsi_peer_gone(v.pidfd, v.sock));
	/* An answer to the dead is an error, and no signal. */
	assert_int_equal(tsi_fdpass_reply(v.sock, &a, NULL, 0), TSOCK_EPROTO);
	fdpass_forget(&v);
}

static int serve_one(bool keep)
{
	struct tsi_reply a = { .keep_sock = keep };
	struct tsi_peer v;

	if (fdpass_receive(&v) || tsi_fdpass_reply(v.sock, &a, NULL, 0))
		return 1;
	for (;;)
		pause();
}

static void a_killed_producer_is_gone(void **s)
{
	(void)s;
	for (int keep = 0; keep < 2; keep++) {
		struct tsi_connecting c = { .open = false };
		struct tsi_passed k;
		pid_t pid;

		/* The pidfd is of who called listen(): the child does. */
		close(fdpass_listener);
		pid = fork();
		if (!pid)
			_exit(tsi_fdpass_listen(fdpass_path,
						&fdpass_listener) ||
			      serve_one(keep));
		while (tsi_fdpass_connect(fdpass_path, fdpass_token, LONG_MS,
					  &c, &k))
			poll(NULL, 0, 1);
		assert_true(k.producer >= 0);
		assert_int_equal(k.sock >= 0, keep);
		assert_false(tsi_peer_gone(k.producer, k.sock));
		assert_false(tsi_peer_gone(-1, k.sock));
		kill(pid, SIGKILL);
		fdpass_wait_for(k.producer);
		assert_true(tsi_peer_gone(k.producer, k.sock));
		if (keep) {
			fdpass_wait_for(k.sock);
			assert_true(tsi_peer_gone(-1, k.sock));
			close(k.sock);
		}
		close(k.producer);
		fdpass_exit_status(pid);
		assert_int_equal(
			tsi_fdpass_listen(fdpass_path, &fdpass_listener), 0);
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

static void a_process_is_named_by_its_pidfd(void **s)
{
	char name[TSI_PEER_NAME];
	int pidfd = tsi_peer_open_pidfd((uint32_t)getpid());
	pid_t pid;

	(void)s;
	assert_false(tsi_peer_name(-1, name));
	/* A descriptor that is no pidfd. */
	assert_false(tsi_peer_name(fdpass_listener, name));
	if (pidfd < 0)
		skip();
	assert_true(tsi_peer_name(pidfd, name));
	assert_string_equal(name, "test_peer");
	close(pidfd);
	pid = fork();
	if (!pid)
		_exit(0);
	pidfd = tsi_peer_open_pidfd((uint32_t)pid);
	while (!tsi_peer_gone(pidfd, -1))
		poll(NULL, 0, 1);
	assert_false(tsi_peer_name(pidfd, name));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(tsi_peer_name(pidfd, name));
	close(pidfd);
}

/* This program, as if it were a Python of that command line; a byte on its
 * stdout says that it bears the name. */
static void pose(void)
{
	prctl(PR_SET_NAME, "python3");
	if (write(STDOUT_FILENO, "", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

static void name_of_python(const char *const arg[5], char name[TSI_PEER_NAME])
{
	int said[2], pidfd;
	pid_t pid;
	char c;

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		dup2(said[1], STDOUT_FILENO);
		execl("/proc/self/exe", arg[0], arg[1], arg[2], arg[3], arg[4],
		      NULL);
		_exit(1);
	}
	close(said[1]);
	assert_int_equal(read(said[0], &c, 1), 1);
	close(said[0]);
	pidfd = tsi_peer_open_pidfd((uint32_t)pid);
	assert_true(tsi_peer_name(pidfd, name));
	close(pidfd);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What an interpreter runs is what people know it by. */
static void a_python_process_is_named_with_its_script(void **s)
{
	static const struct {
		const char *arg[5], *name;
	} runs[] = {
		{ { "python3", "-u", "/dir/train.py", "x" },
		  "python3 train.py" },
		{ { "python3", "-X", "dev", "-Werror", "a.py" },
		  "python3 a.py" },
		{ { "python3", "-m", "pkg.train", "b.py" },
		  "python3 pkg.train" },
		{ { "python3", "-c", "import x", "c.py" }, "python3" },
		{ { "python3", "-" }, "python3" },
		{ { "python3" }, "python3" },
	};
	char name[TSI_PEER_NAME];
	int pidfd = tsi_peer_open_pidfd((uint32_t)getpid());

	(void)s;
	if (pidfd < 0)
		skip();
	close(pidfd);
	for (unsigned i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		name_of_python(runs[i].arg, name);
		assert_string_equal(name, runs[i].name);
	}
}

static void the_system_says_who_is_stopped(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	assert_false(tsi_peer_stopped((uint32_t)pid));
	assert_false(tsi_peer_stopped(0));
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(tsi_peer_stopped((uint32_t)pid));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_false(tsi_peer_stopped((uint32_t)pid));
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, fdpass_setup, fdpass_teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_killed_consumer_is_gone),
		TEST(a_killed_producer_is_gone),
		TEST(a_hung_up_socket_is_gone),
		TEST(a_process_is_named_by_its_pidfd),
		TEST(a_python_process_is_named_with_its_script),
		TEST(the_system_says_who_is_stopped),
	};

	if (argc && !strcmp(argv[0], "python3"))
		pose();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
