/* SPDX-License-Identifier: MIT */
/*
 * test_zmq.c - messages between two ends, and what raw ZeroMQ peers may do.
 */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <zmq.h>

#include "test/lib/channel_fixture.h"

/* The next message or error, waiting for it. */
static int receive(struct tsi_channel *ch, struct tsi_routing_id *peer,
		   struct tsi_msg *m)
{
	int64_t end = tsi_now_ms() + LONG_MS;
	bool ready;
	int err;

	do {
		assert_int_equal(tsi_zmq_poll(ch, NULL, 0, 100, &ready), 0);
		err = tsi_zmq_recv(ch, peer, m);
	} while (err == TSOCK_EAGAIN && tsi_now_ms() < end);
	return err;
}

/* A peer that isn't ours. */
struct raw {
	void *ctx, *socket;
};

static struct raw raw_open(const void *id, size_t len)
{
	char endpoint[120];
	struct raw r = { zmq_ctx_new(), NULL };
	int zero = 0;

	r.socket = zmq_socket(r.ctx, ZMQ_DEALER);
	zmq_setsockopt(r.socket, ZMQ_LINGER, &zero, sizeof(zero));
	if (len)
		zmq_setsockopt(r.socket, ZMQ_ROUTING_ID, id, len);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", channel_path);
	assert_int_equal(zmq_connect(r.socket, endpoint), 0);
	return r;
}

static void raw_close(struct raw *r)
{
	zmq_close(r->socket);
	zmq_ctx_term(r->ctx);
}

static void a_question_gets_its_answer(void **s)
{
	struct tsi_msg m = channel_hello(7), got;
	struct tsi_routing_id peer;

	(void)s;
	assert_int_equal(channel_exchange(channel_dealer, 6, &peer), 0);
	assert_int_equal(tsi_zmq_send(channel_dealer, NULL, &m), 0);
	do
		assert_int_equal(receive(channel_router, &peer, &got), 0);
	while (got.serial == 6);
	assert_int_equal(got.type, TSI_HELLO);
	assert_int_equal(got.serial, 7);
	assert_int_equal(got.u.hello.pid, 4711);
	assert_true(peer.len > 0);
	m = (struct tsi_msg){ .type = TSI_META_DATA, .serial = 7 };
	m.u.meta_data.len = TSI_CHUNK;
	memset(m.u.meta_data.bytes, 'm', TSI_CHUNK);
	assert_int_equal(tsi_zmq_send(channel_router, &peer, &m), 0);
	assert_int_equal(receive(channel_dealer, NULL, &got), 0);
	assert_int_equal(got.type, TSI_META_DATA);
	assert_memory_equal(got.u.meta_data.bytes, m.u.meta_data.bytes,
			    TSI_CHUNK);
}

static void answers_go_to_who_asked(void **s)
{
	struct tsi_channel *other;
	struct tsi_routing_id a, b;
	struct tsi_msg got, m = { .type = TSI_WAIT, .serial = 3 };
	bool ready;

	(void)s;
	assert_int_equal(tsi_zmq_connect(channel_path, &other), 0);
	assert_int_equal(channel_exchange(channel_dealer, 1, &a), 0);
	assert_int_equal(channel_exchange(other, 2, &b), 0);
	assert_true(a.len != b.len || memcmp(a.bytes, b.bytes, a.len));
	assert_int_equal(tsi_zmq_send(channel_router, &b, &m), 0);
	assert_int_equal(receive(other, NULL, &got), 0);
	assert_int_equal(got.serial, 3);
	assert_int_equal(tsi_zmq_poll(channel_dealer, NULL, 0, 0, &ready), 0);
	assert_false(ready);
	assert_int_equal(tsi_zmq_recv(channel_dealer, NULL, &got),
			 TSOCK_EAGAIN);
	tsi_zmq_close(other);
}

static void garbage_is_dropped_whole(void **s)
{
	uint8_t good[TSI_MSG_MAX];
	struct tsi_msg m = channel_hello(55), got;
	size_t len = tsi_msg_pack(&m, good);
	struct raw r = raw_open(NULL, 0);
	struct tsi_routing_id peer;

	(void)s;
	zmq_send(r.socket, "rubbish", 7, 0);
	zmq_send(r.socket, "", 0, 0);
	/* A request with a delimiter, as REQ sends it. */
	zmq_send(r.socket, "", 0, ZMQ_SNDMORE);
	zmq_send(r.socket, good, len, 0);
	/* Good, with something behind. */
	zmq_send(r.socket, good, len, ZMQ_SNDMORE);
	for (int i = 0; i < 20; i++)
		zmq_send(r.socket, good, len, ZMQ_SNDMORE);
	zmq_send(r.socket, "", 0, 0);
	zmq_send(r.socket, good, len, 0);

	for (int i = 0; i < 4; i++) {
		assert_int_equal(receive(channel_router, &peer, &got),
				 TSOCK_EPROTO);
		assert_true(strlen(tsock_errmsg()) > 0);
		assert_true(peer.len > 0);
	}
	assert_int_equal(receive(channel_router, &peer, &got), 0);
	assert_int_equal(got.serial, 55);
	assert_int_equal(tsi_zmq_recv(channel_router, &peer, &got),
			 TSOCK_EAGAIN);
	raw_close(&r);
	assert_int_equal(channel_exchange(channel_dealer, 56, &peer), 0);
}

static void an_oversize_message_is_never_received(void **s)
{
	static uint8_t huge[1 << 20];
	struct raw r = raw_open(NULL, 0);
	struct tsi_routing_id peer;
	struct tsi_msg got;
	bool ready;

	(void)s;
	zmq_send(r.socket, huge, sizeof(huge), 0);
	zmq_send(r.socket, huge, TSI_MSG_MAX + 1, 0);
	/* Both were sent before this; ours comes through, theirs never. */
	assert_int_equal(channel_exchange(channel_dealer, 9, &peer), 0);
	assert_int_equal(tsi_zmq_poll(channel_router, NULL, 0, 100, &ready), 0);
	assert_false(ready);
	assert_int_equal(tsi_zmq_recv(channel_router, &peer, &got),
			 TSOCK_EAGAIN);
	raw_close(&r);
}

/* A stranger could send garbage, or questions, if the folder were open. */
static void a_strangers_uid_is_not_heard(void **s)
{
	struct tsi_msg got;
	struct tsi_routing_id peer;
	uint8_t bytes[TSI_MSG_MAX];
	struct tsi_msg m = channel_hello(77);
	size_t len = tsi_msg_pack(&m, bytes);
	bool ready, alive, heard = false;
	pid_t pid;

	(void)s;
	if (geteuid()) {
		print_message("not root: no other uid to be had\n");
		skip();
	}
	assert_int_equal(chmod(channel_folder, 0755), 0);
	assert_int_equal(chmod(channel_path, 0777), 0);
	pid = fork();
	if (!pid) {
		struct raw r;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		r = raw_open(NULL, 0);
		zmq_send(r.socket, bytes, len, 0);
		/* Until we are killed: it tries again and again. */
		for (;;)
			pause();
	}
	/* Long enough for the message, which takes a few ms to come. */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(
			tsi_zmq_poll(channel_router, NULL, 0, 50, &ready), 0);
		while (!tsi_zmq_recv(channel_router, &peer, &got))
			heard |= got.serial == 77;
	}
	alive = waitpid(pid, NULL, WNOHANG) == 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(alive);
	assert_false(heard);
	/* A peer of this user is heard. */
	assert_int_equal(channel_exchange(channel_dealer, 78, &peer), 0);
}

static void an_address_too_long_is_refused(void **s)
{
	uint8_t good[TSI_MSG_MAX];
	struct tsi_msg m = channel_hello(1), got;
	size_t len = tsi_msg_pack(&m, good);
	char id[200];
	struct raw r;
	struct tsi_routing_id peer;

	(void)s;
	memset(id, 'i', sizeof(id));
	r = raw_open(id, sizeof(id));
	zmq_send(r.socket, good, len, 0);
	assert_int_equal(receive(channel_router, &peer, &got), TSOCK_EPROTO);
	assert_int_equal(peer.len, 0);
	raw_close(&r);
	r = raw_open(id, TSI_ROUTING_ID_MAX);
	zmq_send(r.socket, good, len, 0);
	assert_int_equal(receive(channel_router, &peer, &got), 0);
	assert_int_equal(peer.len, TSI_ROUTING_ID_MAX);
	raw_close(&r);
}

static void a_vanished_peer_is_no_error(void **s)
{
	struct tsi_msg m = channel_hello(1);
	struct tsi_routing_id peer, nobody = { 5, { 1, 2, 3, 4, 5 } };

	(void)s;
	assert_int_equal(channel_exchange(channel_dealer, 1, &peer), 0);
	tsi_zmq_close(channel_dealer);
	channel_dealer = NULL;
	for (int i = 0; i < 2000; i++)
		assert_int_equal(tsi_zmq_send(channel_router, &peer, &m), 0);
	assert_int_equal(tsi_zmq_send(channel_router, &nobody, &m), 0);
}

static void a_peer_that_doesnt_read_blocks_nobody(void **s)
{
	struct tsi_msg m = channel_hello(1);
	struct tsi_channel *other;
	struct tsi_routing_id slow, quick;
	struct tsi_msg got;
	int64_t start;

	(void)s;
	assert_int_equal(tsi_zmq_connect(channel_path, &other), 0);
	assert_int_equal(channel_exchange(channel_dealer, 1, &slow), 0);
	assert_int_equal(channel_exchange(other, 2, &quick), 0);
	start = tsi_now_ms();
	for (int i = 0; i < 20000; i++)
		assert_int_equal(tsi_zmq_send(channel_router, &slow, &m), 0);
	m.serial = 77;
	assert_int_equal(tsi_zmq_send(channel_router, &quick, &m), 0);
	assert_int_equal(receive(other, NULL, &got), 0);
	assert_int_equal(got.serial, 77);
	assert_true(tsi_now_ms() - start < LONG_MS);
	tsi_zmq_close(other);
}

/*
 * Bursts below the length of the queue, each read before the next is sent.
 * Quickly, so that several fit between two looks of ZeroMQ's own.
 */
static void nothing_is_lost(struct tsi_channel *from,
			    const struct tsi_routing_id *peer,
			    struct tsi_channel *to)
{
	int64_t end = tsi_now_ms() + LONG_MS;
	uint32_t sent = 1000, read = sent;

	while (sent < 61000) {
		struct tsi_msg m, got;

		for (unsigned i = 0; i < 100; i++) {
			m = channel_hello(sent++);
			assert_int_equal(tsi_zmq_send(from, peer, &m), 0);
		}
		while (read < sent) {
			int err = tsi_zmq_recv(to, NULL, &got);

			if (err == TSOCK_EAGAIN) {
				assert_true(tsi_now_ms() < end);
				continue;
			}
			assert_int_equal(err, 0);
			assert_int_equal(got.serial, read++);
			end = tsi_now_ms() + LONG_MS;
		}
	}
}

static void a_peer_that_reads_everything_gets_everything(void **s)
{
	struct tsi_routing_id peer;

	(void)s;
	assert_int_equal(channel_exchange(channel_dealer, 1, &peer), 0);
	nothing_is_lost(channel_router, &peer, channel_dealer);
	nothing_is_lost(channel_dealer, NULL, channel_router);
}

static void a_consumer_waits_for_a_producer_to_come_back(void **s)
{
	struct tsi_routing_id peer;

	(void)s;
	assert_int_equal(channel_exchange(channel_dealer, 1, &peer), 0);
	tsi_zmq_close(channel_router);
	assert_int_equal(tsi_zmq_bind(channel_path, &channel_router), 0);
	assert_int_equal(channel_exchange(channel_dealer, 2, &peer), 0);
}

static void poll_ends_at_its_deadline(void **s)
{
	int64_t start = tsi_now_ms();
	bool ready = true;

	(void)s;
	assert_int_equal(tsi_zmq_poll(channel_router, NULL, 0, 30, &ready), 0);
	assert_false(ready);
	assert_true(tsi_now_ms() - start >= 29);
}

static void poll_reports_the_callers_descriptors(void **s)
{
	struct pollfd fds[2];
	struct tsi_msg m = channel_hello(3), got;
	bool ready;
	struct tsi_routing_id peer;
	int p[2];

	(void)s;
	assert_int_equal(channel_exchange(channel_dealer, 1, &peer), 0);
	while (!tsi_zmq_recv(channel_router, &peer, &got))
		;
	assert_int_equal(pipe(p), 0);
	fds[0] = (struct pollfd){ .fd = p[0], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = p[1], .events = 0, .revents = 7 };
	assert_int_equal(tsi_zmq_poll(channel_router, fds, 2, 0, &ready), 0);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(tsi_zmq_poll(channel_router, fds, 2, -1, &ready), 0);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_false(ready);
	/* Both at once: the message is seen although a descriptor is ready. */
	assert_int_equal(tsi_zmq_send(channel_dealer, NULL, &m), 0);
	while (!ready)
		assert_int_equal(
			tsi_zmq_poll(channel_router, fds, 2, -1, &ready), 0);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(tsi_zmq_recv(channel_router, NULL, &got), 0);
	close(p[0]);
	/* A hang-up is reported as one. */
	fds[1].events = POLLOUT;
	assert_int_equal(tsi_zmq_poll(channel_router, fds + 1, 1, -1, &ready),
			 0);
	assert_true(fds[1].revents & POLLERR);
	close(p[1]);
}

static void many_messages_wake_poll_once_each(void **s)
{
	struct tsi_msg m, got;
	struct tsi_routing_id peer;
	bool ready;

	(void)s;
	assert_int_equal(channel_exchange(channel_dealer, 5000, &peer), 0);
	/* The socket's descriptor is edge-triggered: none may get stuck. */
	for (uint32_t i = 0; i < 3000; i++) {
		m = channel_hello(i);
		assert_int_equal(tsi_zmq_send(channel_dealer, NULL, &m), 0);
		if (i % 3)
			continue;
		assert_int_equal(
			tsi_zmq_poll(channel_router, NULL, 0, LONG_MS, &ready),
			0);
		assert_true(ready);
		do
			assert_int_equal(receive(channel_router, &peer, &got),
					 0);
		while (got.serial != i);
	}
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void a_signal_ends_poll(void **s)
{
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct itimerval it = { { 0, 5000 }, { 0, 5000 } }, off = { 0 };
	bool ready = true;

	(void)s;
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &it, NULL);
	assert_int_equal(tsi_zmq_poll(channel_router, NULL, 0, -1, &ready), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_false(ready);
}

static void a_bad_path_is_named(void **s)
{
	struct tsi_channel *ch;
	char far[400];

	(void)s;
	assert_int_equal(tsi_zmq_bind("/nonexistent/s.bus", &ch), TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "/nonexistent/s.bus"));
	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = 0;
	far[0] = '/';
	assert_int_equal(tsi_zmq_bind(far, &ch), TSOCK_ESYS);
	far[150] = 0;
	assert_int_equal(tsi_zmq_connect(far, &ch), TSOCK_ESYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_question_gets_its_answer),
		TEST(answers_go_to_who_asked),
		TEST(garbage_is_dropped_whole),
		TEST(an_oversize_message_is_never_received),
		TEST(a_strangers_uid_is_not_heard),
		TEST(an_address_too_long_is_refused),
		TEST(a_vanished_peer_is_no_error),
		TEST(a_peer_that_doesnt_read_blocks_nobody),
		TEST(a_peer_that_reads_everything_gets_everything),
		TEST(a_consumer_waits_for_a_producer_to_come_back),
		TEST(poll_ends_at_its_deadline),
		TEST(poll_reports_the_callers_descriptors),
		TEST(many_messages_wake_poll_once_each),
		TEST(a_signal_ends_poll),
		TEST(a_bad_path_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
