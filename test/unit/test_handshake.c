/* SPDX-License-Identifier: MIT */
/*
 * test_handshake.c - connections on the descriptor socket of a producer that
 * has no descriptor left, or peers that say nothing.
 */
#include "serve/handshake.h"

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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/descriptors.h"
#include "test/lib/proc.h"
#include "wire/fdpass.h"

#define BEGIN_MS 1000
#define LONG_MS 60000

static struct tsi_handshake handshake;
static const struct tsi_tables no_tables;
static struct rlimit usual;
static struct sockaddr_un door = { .sun_family = AF_UNIX };
static int listener;

static int listens(void **state)
{
	(void)state;
	snprintf(door.sun_path, sizeof(door.sun_path), "%s/door",
		 getenv("TSOCK_DIR"));
	tsi_handshake_init(&handshake, NULL, NULL, &no_tables);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(tsi_fdpass_listen(door.sun_path, &listener), 0);
	return 0;
}

static int is_closed(void **state)
{
	(void)state;
	setrlimit(RLIMIT_NOFILE, &usual);
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		if (handshake.pending[i].sock >= 0)
			close(handshake.pending[i].sock);
	close(listener);
	unlink(door.sun_path);
	return 0;
}

/* A peer that says nothing. */
static int connects(void)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(sock >= 0);
	assert_int_equal(connect(sock, (void *)&door, sizeof(door)), 0);
	return sock;
}

/* No descriptor above those that are open may be had. */
static void leave_no_descriptor(void)
{
	struct rlimit none = usual;

	none.rlim_cur = (rlim_t)listener + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static short waits_for(int64_t now_ms)
{
	struct pollfd fds[1 + TSI_PENDING_CONNS];

	assert_true(tsi_handshake_poll(&handshake, listener, now_ms, fds) >= 1);
	assert_int_equal(fds[0].fd, listener);
	return fds[0].events;
}

static unsigned count_pending(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		n += handshake.pending[i].sock >= 0;
	return n;
}

/* Its connections would wake it all the time, and can't be accepted. */
static void a_producer_without_descriptors_doesnt_spin(void **state)
{
	int sock = connects();

	(void)state;
	leave_no_descriptor();
	assert_int_equal(waits_for(BEGIN_MS), POLLIN);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	assert_int_equal(count_pending(), 0);
	assert_int_equal(waits_for(BEGIN_MS), 0);
	/* Not even when there are some again, until the pause is over. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	assert_int_equal(count_pending(), 0);
	assert_int_equal(waits_for(BEGIN_MS + LONG_MS), POLLIN);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + LONG_MS);
	assert_int_equal(count_pending(), 1);
	close(sock);
}

/* The silent peer makes room for one that may have more to say. */
static void a_silent_peer_goes_when_descriptors_are_short(void **state)
{
	int silent = connects(), other;
	char byte;

	(void)state;
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	assert_int_equal(count_pending(), 1);
	other = connects();
	leave_no_descriptor();
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	assert_int_equal(count_pending(), 0);
	/* The producer has hung up. */
	assert_int_equal(recv(silent, &byte, 1, 0), 0);
	close(silent);
	close(other);
}

/* The oldest has the least time left, even behind a later peer in the table. */
static void the_oldest_of_silent_peers_goes_first(void **state)
{
	int first = connects(), older, newer;
	struct rlimit few = usual;
	char byte;

	(void)state;
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	older = connects();
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + 1);
	close(first);
	newer = connects();
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + 2);
	assert_int_equal(count_pending(), 2);
	assert_true(handshake.pending[0].expires_ms >
		    handshake.pending[1].expires_ms);
	/* Room for one consumer more, and half of the reserve, less one. */
	few.rlim_cur = tsi_descriptors().open + 3 + 8 - 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + 3);
	assert_int_equal(recv(older, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(newer, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(count_pending(), 1);
	close(older);
	close(newer);
}

/* A process with fewer of them keeps them, however long they say nothing. */
static void a_process_with_few_silent_peers_keeps_them(void **state)
{
	int sock[3];
	struct rlimit few = usual;
	char byte;

	(void)state;
	for (int i = 0; i < 3; i++) {
		sock[i] = connects();
		tsi_handshake_serve(&handshake, listener, BEGIN_MS + i);
	}
	/* As if another process had connected it, before the others. */
	handshake.pending[2].pid++;
	handshake.pending[2].expires_ms = BEGIN_MS + 10;
	few.rlim_cur = tsi_descriptors().open + 3 + 8 - 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + 10);
	assert_int_equal(recv(sock[0], &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(count_pending(), 2);
	assert_true(handshake.pending[2].sock >= 0);
	for (int i = 0; i < 3; i++)
		close(sock[i]);
}

/* No more, and no less: until then it may be about to send its token. */
static void a_silent_peer_has_two_seconds(void **state)
{
	int silent = connects();
	char byte;

	(void)state;
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + 2000);
	assert_int_equal(count_pending(), 1);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + 2001);
	assert_int_equal(count_pending(), 0);
	assert_int_equal(recv(silent, &byte, 1, 0), 0);
	close(silent);
}

/* As a socket that the kernel has no memory to accept from. */
static void
a_socket_that_accepts_nothing_is_left_alone_for_a_while(void **state)
{
	int none = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)state;
	tsi_handshake_serve(&handshake, none, BEGIN_MS);
	close(none);
	assert_int_equal(waits_for(BEGIN_MS), 0);
	assert_int_equal(waits_for(BEGIN_MS + LONG_MS), POLLIN);
	assert_int_equal(count_pending(), 0);
}

static void count_warning(void *arg, int level, const char *line)
{
	unsigned *warnings = arg;

	*warnings += level == TSOCK_LOG_WARN &&
		     strstr(line, "descriptors are in use");
}

static void it_is_said_once_a_minute_that_descriptors_are_short(void **state)
{
	unsigned warnings = 0;
	int sock = connects();

	(void)state;
	leave_no_descriptor();
	tsock_set_logger(count_warning, &warnings);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	assert_int_equal(warnings, 1);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + LONG_MS - 1);
	assert_int_equal(waits_for(BEGIN_MS + LONG_MS), 0);
	assert_int_equal(warnings, 1);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS + 2 * LONG_MS);
	assert_int_equal(warnings, 2);
	tsock_set_logger(NULL, NULL);
	close(sock);
}

static void silent_peers_are_hung_up_on_at_the_end(void **state)
{
	int silent = connects();
	char byte;

	(void)state;
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	assert_int_equal(count_pending(), 1);
	tsi_handshake_close(&handshake);
	assert_int_equal(count_pending(), 0);
	assert_int_equal(recv(silent, &byte, 1, 0), 0);
	close(silent);
}

/* Connects as often as there are places, says so, and stays. */
static pid_t flood(int says)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* Also when the test fails. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < TSI_PENDING_CONNS; i++)
		if (connects() < 0)
			_exit(1);
	if (write(says, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* A flood drops its own peers, not a silent peer that came before. */
static void a_flood_of_silent_peers_drives_out_no_other_process(void **state)
{
	int own = connects(), pipes[2];
	struct pollfd said;
	pid_t pid;

	(void)state;
	tsi_handshake_serve(&handshake, listener, BEGIN_MS - 1);
	assert_int_equal(count_pending(), 1);
	assert_int_equal(pipe(pipes), 0);
	pid = flood(pipes[1]);
	assert_true(pid > 0);
	said = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	while (!poll(&said, 1, 0))
		tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	tsi_handshake_serve(&handshake, listener, BEGIN_MS);
	assert_int_equal(count_pending(), TSI_PENDING_CONNS);
	/* Its end here: the other process has a copy of that as well. */
	assert_int_equal(handshake.pending[0].pid, getpid());
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(pipes[0]);
	close(pipes[1]);
	close(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_producer_without_descriptors_doesnt_spin, listens,
			is_closed),
		cmocka_unit_test_setup_teardown(
			a_silent_peer_goes_when_descriptors_are_short, listens,
			is_closed),
		cmocka_unit_test_setup_teardown(
			the_oldest_of_silent_peers_goes_first, listens,
			is_closed),
		cmocka_unit_test_setup_teardown(
			a_process_with_few_silent_peers_keeps_them, listens,
			is_closed),
		cmocka_unit_test_setup_teardown(a_silent_peer_has_two_seconds,
						listens, is_closed),
		cmocka_unit_test_setup_teardown(
			a_socket_that_accepts_nothing_is_left_alone_for_a_while,
			listens, is_closed),
		cmocka_unit_test_setup_teardown(
			it_is_said_once_a_minute_that_descriptors_are_short,
			listens, is_closed),
		cmocka_unit_test_setup_teardown(
			silent_peers_are_hung_up_on_at_the_end, listens,
			is_closed),
		cmocka_unit_test_setup_teardown(
			a_flood_of_silent_peers_drives_out_no_other_process,
			listens, is_closed),
	};

	proc_own_folder();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
