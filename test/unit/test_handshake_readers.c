/* SPDX-License-Identifier: MIT */
/*
 * test_handshake_readers.c - connections on the descriptor socket whose peers
 * have a token: what they are told when they can't become readers after all.
 */
#include "serve/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/descriptors.h"
#include "test/lib/fdpass_peers.h"
#include "test/lib/readers_fixture.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define NOW_MS 1000

static struct tsi_handshake handshake;
static bool view_fails; /* at the next write of the record */
static bool old_kernel; /* that doesn't say which process a peer is */
static int opened[2];   /* by that thread */
static char folder[] = "/tmp/tsock-handshake-XXXXXX";

/* In place of libc's: the record is written without the lock, which the thread
 * of a view that fails may have meanwhile. */
ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
	if (view_fails) {
		view_fails = false;
		tsi_readers_drop_view(&readers_table, 1);
		/* With the numbers of what was closed. */
		assert_int_equal(socketpair(AF_UNIX,
					    SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
					    opened),
				 0);
	}
	return syscall(SYS_pwrite64, fd, from, len, at);
}

/* In place of libc's. */
int getsockopt(int fd, int level, int name, void *restrict to,
	       socklen_t *restrict len)
{
	if (old_kernel && name == SO_PEERPIDFD) {
		errno = ENOPROTOOPT;
		return -1;
	}
	if (syscall(SYS_getsockopt, fd, level, name, to, len))
		return -1;
	if (old_kernel && name == SO_PEERCRED)
		((struct ucred *)to)->pid = 0;
	return 0;
}

static const struct tsi_tables no_tables;

static int listens(void **state)
{
	view_fails = old_kernel = false;
	readers_begin(state);
	tsi_readers_keep_record(&readers_table, folder, "s", 5, 1);
	tsi_handshake_init(&handshake, &readers_table, &readers_offers,
			   &no_tables);
	tsi_handshake_begin(&handshake, open("/dev/null", O_RDWR | O_CLOEXEC),
			    7);
	return fdpass_setup(state);
}

static int is_closed(void **state)
{
	tsi_handshake_close(&handshake);
	close(handshake.event);
	tsi_readers_leave_record(&readers_table, false);
	readers_stop(state);
	return fdpass_teardown(state);
}

/* A consumer that was offered view 1, with the token that all tests send. */
static void is_offered_view_1(void)
{
	readers_offers.offer[0] = readers_offer_of(1);
	readers_offers.offer[0].view = 1;
	memcpy(readers_offers.offer[0].token, fdpass_token, TSI_TOKEN);
}

/* A connection on which the token was sent, and which is served. */
static int connects(bool keep_sock)
{
	int sock = fdpass_raw_connect();
	uint8_t bytes[64];
	size_t len = fdpass_request(bytes);

	bytes[6] = keep_sock;
	assert_int_equal(write(sock, bytes, len), len);
	tsi_sync_lock(&readers_sync);
	tsi_handshake_serve(&handshake, fdpass_listener, NOW_MS);
	tsi_sync_unlock(&readers_sync);
	return sock;
}

/* What a consumer makes of the reply; the connection is closed. */
static int reads_reply(int sock)
{
	struct tsi_connecting c = { true, sock, -1, true };
	struct tsi_passed passed;

	return tsi_fdpass_connect(fdpass_path, fdpass_token, 0, &c, &passed);
}

/* Between its claim and the reply. */
static void who_joins_a_view_that_fails_asks_again(void **state)
{
	int sock;

	(void)state;
	is_offered_view_1();
	view_fails = true;
	sock = connects(false);
	assert_false(view_fails);
	assert_int_equal(membership_m.count, 0);
	assert_int_equal(reads_reply(sock), TSOCK_EAGAIN);
	assert_string_equal(tsock_errmsg(), "the view failed that was joined");
	close(opened[0]);
	close(opened[1]);
}

/* Its connection was the reader's, and ended with it. */
static void who_cannot_watch_its_producer_sees_the_connection_end(void **state)
{
	char byte;
	int sock;

	(void)state;
	is_offered_view_1();
	view_fails = true;
	sock = connects(true);
	assert_false(view_fails);
	assert_int_equal(membership_m.count, 0);
	assert_int_equal(recv(sock, &byte, 1, MSG_DONTWAIT), 0);
	/* Nothing was sent to who has its number by now. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(recv(opened[i], &byte, 1, MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN);
	}
	assert_int_equal(close(opened[0]), 0);
	assert_int_equal(close(opened[1]), 0);
	close(sock);
}

/* Nor is anything left open of a process that isn't known. */
static void who_is_refused_leaves_nothing_open(void **state)
{
	uint64_t open = tsi_descriptors().open;

	(void)state;
	for (int i = 0; i < 2; i++) {
		int sock;

		old_kernel = i;
		sock = connects(false);
		assert_int_equal(tsi_descriptors().open, open + 1);
		assert_int_equal(reads_reply(sock), TSOCK_EAGAIN);
		assert_string_equal(tsock_errmsg(),
				    "that token is unknown, or old");
	}
	assert_int_equal(tsi_descriptors().open, open);
}

/* That a process is watched by is either its pidfd or its connection. */
static void who_has_no_process_is_watched_by_its_connection(void **state)
{
	int sock;

	(void)state;
	is_offered_view_1();
	old_kernel = true;
	sock = connects(false);
	assert_int_equal(membership_m.count, 1);
	tsi_readers_reap(&readers_table);
	assert_int_equal(membership_m.count, 1);
	close(sock);
	tsi_readers_reap(&readers_table);
	assert_int_equal(membership_m.count, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, listens, is_closed)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_joins_a_view_that_fails_asks_again),
		TEST(who_cannot_watch_its_producer_sees_the_connection_end),
		TEST(who_is_refused_leaves_nothing_open),
		TEST(who_has_no_process_is_watched_by_its_connection),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests_name("handshake, readers", tests, NULL,
					     NULL);
	rmdir(folder);
	return failed;
}
