/* SPDX-License-Identifier: MIT */
/*
 * test_hostile.c - whatever comes in on the channel and on the descriptor
 * socket harms nobody.
 */
#include "test/lib/send_fds.h"
#include "test/lib/watched_server.h"
#include "test/lib/zmtp_peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <zmq.h>

struct raw {
	void *ctx, *socket;
};

static struct raw raw_open(void)
{
	char endpoint[200];
	struct raw r = { zmq_ctx_new(), NULL };
	int zero = 0, ms = 1000;

	snprintf(endpoint, sizeof(endpoint), "ipc://%s",
		 watched_address.channel);
	r.socket = zmq_socket(r.ctx, ZMQ_DEALER);
	zmq_setsockopt(r.socket, ZMQ_LINGER, &zero, sizeof(zero));
	zmq_setsockopt(r.socket, ZMQ_SNDTIMEO, &ms, sizeof(ms));
	need(!zmq_connect(r.socket, endpoint));
	return r;
}

static void raw_close(struct raw *r)
{
	zmq_close(r->socket);
	zmq_ctx_term(r->ctx);
}

static size_t valid_message(uint8_t *bytes)
{
	static const uint16_t type[] = { TSI_HELLO,  TSI_META,     TSI_JOIN,
					 TSI_READY,  TSI_LEAVE,    TSI_STATS,
					 TSI_STREAM, TSI_OFFER,    TSI_ERROR,
					 TSI_LEFT,   TSI_CONFIGURE };
	struct tsi_msg m = watched_join_message();

	m.type = type[watched_roll() % (sizeof(type) / sizeof(type[0]))];
	if (m.type == TSI_STREAM)
		memset(&m.u, 0, sizeof(m.u));
	if (m.type == TSI_ERROR)
		m.u.error.code = -1;
	if (m.type == TSI_JOIN && watched_roll() % 2)
		watched_roll_bytes(
			&m.u.join.batch_size,
			sizeof(m.u.join) -
				offsetof(struct tsi_msg_join, batch_size));
	return tsi_msg_pack(&m, bytes);
}

static void send_nonsense(struct zmtp_peer *p)
{
	static uint8_t bytes[1 << 20];
	size_t len = valid_message(bytes);

	switch (watched_roll() % 6) {
	case 0: /* noise */
		len = watched_roll() % 5000;
		watched_roll_bytes(bytes, len);
		break;
	case 1: /* cut short, or too long */
		len = watched_roll() % (2 * len);
		break;
	case 2: /* bits turned over */
		for (unsigned i = 0; i < 1 + watched_roll() % 4; i++)
			bytes[watched_roll() % len] ^=
				(uint8_t)(1 << watched_roll() % 8);
		break;
	case 3: /* in pieces */
		for (uint64_t i = 0; i < watched_roll() % 20; i++)
			zmtp_send(p, bytes, watched_roll() % len, true);
		break;
	case 4: /* twice */
		zmtp_send(p, bytes, len, false);
		break;
	default:
		break;
	}
	zmtp_send(p, bytes, len, false);
}

static void nonsense_on_the_channel(void)
{
	static uint8_t huge[1 << 20];

	for (unsigned k = 0; k < 20; k++) {
		struct zmtp_peer p;

		zmtp_open(&p, watched_address.channel);
		for (unsigned i = 0; i < 1000; i++)
			send_nonsense(&p);
		zmtp_send(&p, huge, sizeof(huge), false);
		/* A message without an end. */
		zmtp_send(&p, huge, 1000, true);
		zmtp_close(&p);
	}
}

static void bytes_that_are_not_zeromq(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	uint8_t bytes[512];

	memcpy(sa.sun_path, watched_address.channel, sizeof(sa.sun_path));
	for (unsigned k = 0; k < 300; k++) {
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

		need(s >= 0);
		if (!connect(s, (struct sockaddr *)&sa, sizeof(sa))) {
			watched_roll_bytes(bytes, sizeof(bytes));
			if (k % 2) /* the greeting's first bytes */
				memcpy(bytes, "\xff\0\0\0\0\0\0\0\1\x7f\3", 11);
			send(s, bytes, watched_roll() % sizeof(bytes),
			     MSG_NOSIGNAL);
		}
		close(s);
	}
}

static void join_flood(void)
{
	struct raw r = raw_open();
	uint8_t bytes[TSI_MSG_MAX];

	for (unsigned i = 0; i < 10000; i++) {
		struct tsi_msg m = watched_join_message();

		if (i % 3 == 0) {
			m.u.join.view.dtype = TSOCK_F32;
			m.u.join.view.normalize = TSOCK_MEAN_STD;
			for (unsigned c = 0; c < 3; c++)
				m.u.join.view.std[c] = 1.0f + (float)i;
		}
		zmq_send(r.socket, bytes, tsi_msg_pack(&m, bytes), 0);
	}
	raw_close(&r);
}

static void hello_flood(void)
{
	struct tsi_msg m = { .type = TSI_HELLO, .serial = 1 };
	uint8_t bytes[TSI_MSG_MAX];
	size_t len = tsi_msg_pack(&m, bytes);
	struct raw r[4];
	double t0 = watched_now_s();

	for (unsigned k = 0; k < 4; k++)
		r[k] = raw_open();
	/* No answer is ever read. */
	while (watched_now_s() - t0 < 3)
		for (unsigned i = 0; i < 1000; i++)
			zmq_send(r[i % 4].socket, bytes, len, ZMQ_DONTWAIT);
	for (unsigned k = 0; k < 4; k++)
		raw_close(&r[k]);
}

static void garbage_on_the_channel_is_dropped(void **state)
{
	(void)state;
	watched_attacked_by(nonsense_on_the_channel);
	watched_attacked_by(bytes_that_are_not_zeromq);
}

static void a_flood_of_joins_leaves_room_for_one_more(void **state)
{
	(void)state;
	watched_attacked_by(join_flood);
}

static void a_flood_of_hellos_stops_nobody(void **state)
{
	(void)state;
	watched_attacked_by(hello_flood);
}

/* ---- the descriptor socket ---- */

static int fdpass_open(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
		       0);

	need(s >= 0);
	memcpy(sa.sun_path, watched_address.fdpass, sizeof(sa.sun_path));
	for (unsigned i = 0; connect(s, (struct sockaddr *)&sa, sizeof(sa));
	     i++) {
		/* Its queue is full. */
		if (errno != EAGAIN || i > 2000) {
			close(s);
			return -1;
		}
		proc_pause_us(1000);
	}
	return s;
}

static void send_with(int s, const void *bytes, size_t len, unsigned nfds)
{
	int some = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int fds[SEND_FDS_MAX];

	need(some >= 0);
	for (unsigned i = 0; i < nfds; i++)
		fds[i] = some;
	send_fds(s, bytes, len, fds, nfds);
	close(some);
}

static void packets_on_fdpass(void)
{
	static const unsigned count[] = { 0, 0, 1, 19, 20, 200, 253 };
	static const uint8_t head[8] = { 'D', 'O', 'O', 'R', TSI_MSG_VERSION };
	uint8_t bytes[700];

	for (unsigned k = 0; k < 400; k++) {
		int s = fdpass_open();

		if (s < 0)
			continue;
		watched_roll_bytes(bytes, sizeof(bytes));
		/* A token that nobody was given. */
		if (k % 2)
			memcpy(bytes, head, sizeof(head));
		send_with(s, bytes, k % 2 ? 24 : 1 + watched_roll() % 600,
			  count[k % 7]);
		if (k % 3)
			send_with(s, bytes, 24, count[k % 7]);
		close(s);
	}
}

static void silence_on_fdpass(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct reader me = { .src = &watched_src, .batch = 5 };
	int s[200];
	tsock *t;

	memcpy(sa.sun_path, watched_address.fdpass, sizeof(sa.sun_path));
	for (unsigned i = 0; i < 200; i++) {
		s[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		need(s[i] >= 0);
		for (unsigned k = 0; k < 100; k++) {
			if (!connect(s[i], (struct sockaddr *)&sa, sizeof(sa)))
				break;
			proc_pause_us(1000);
		}
		if (i % 2)
			send(s[i], "DOOR", i % 5, MSG_NOSIGNAL);
	}
	/* All are held open while somebody wants to come in. */
	t = reader_connect(&me);
	if (tsock_begin_timed(t, 60000))
		die("no way in: %s", tsock_errmsg());
	tsock_close(t);
}

static void garbage_on_the_descriptor_socket_is_refused(void **state)
{
	(void)state;
	watched_attacked_by(packets_on_fdpass);
}

static void silent_connections_keep_nobody_out(void **state)
{
	(void)state;
	watched_attacked_by(silence_on_fdpass);
}

static int set_up(void **state)
{
	(void)state;
	watched_set_up();
	watched_measure();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_on_the_channel_is_dropped),
		cmocka_unit_test(a_flood_of_joins_leaves_room_for_one_more),
		cmocka_unit_test(a_flood_of_hellos_stops_nobody),
		cmocka_unit_test(garbage_on_the_descriptor_socket_is_refused),
		cmocka_unit_test(silent_connections_keep_nobody_out),
		cmocka_unit_test(watched_closes_in_good_order),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("hostile", tests, set_up, NULL);
}
