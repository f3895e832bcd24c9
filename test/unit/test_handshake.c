/* SPDX-License-Identifier: MIT */
/*
 * test_handshake.c - connections on the descriptor socket of a producer that
 * has no descriptor left.
 */
#include "serve/handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/lib/proc.h"
#include "wire/fdpass.h"

#define BEGIN_MS 1000
#define LONG_MS 60000

static struct tsi_handshake handshake;
static struct rlimit usual;
static struct sockaddr_un door = { .sun_family = AF_UNIX };
static int listener;

static int listens(void **state)
{
	(void)state;
	snprintf(door.sun_path, sizeof(door.sun_path), "%s/door",
		 getenv("TSOCK_DIR"));
	tsi_handshake_init(&handshake, NULL, NULL);
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

/* It makes room for a peer that may have more to say. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_producer_without_descriptors_doesnt_spin, listens,
			is_closed),
		cmocka_unit_test_setup_teardown(
			a_silent_peer_goes_when_descriptors_are_short, listens,
			is_closed),
		cmocka_unit_test_setup_teardown(a_silent_peer_has_two_seconds,
						listens, is_closed),
	};

	own_folder();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
