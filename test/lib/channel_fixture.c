/* SPDX-License-Identifier: MIT */
/*
 * channel_fixture.c - both ends of a channel.
 */
#include "test/lib/channel_fixture.h"

char channel_folder[64], channel_path[80];
struct tsi_channel *channel_router, *channel_dealer;

int channel_open_both(void **s)
{
	(void)s;
	strcpy(channel_folder, "/tmp/tsock-zmq-XXXXXX");
	if (!mkdtemp(channel_folder))
		return -1;
	snprintf(channel_path, sizeof(channel_path), "%s/s.bus",
		 channel_folder);
	return tsi_zmq_bind(channel_path, &channel_router) ||
	       tsi_zmq_connect(channel_path, &channel_dealer);
}

int channel_close_both(void **s)
{
	(void)s;
	tsi_zmq_close(channel_dealer);
	tsi_zmq_close(channel_router);
	unlink(channel_path);
	return rmdir(channel_folder);
}

struct tsi_msg channel_hello(uint32_t serial)
{
	struct tsi_msg m = { .type = TSI_HELLO, .serial = serial };

	m.u.hello.pid = 4711;
	return m;
}

int channel_exchange(struct tsi_channel *from, uint32_t serial,
		     struct tsi_routing_id *peer)
{
	struct tsi_msg m = channel_hello(serial), got;
	int64_t end = tsi_now_ms() + LONG_MS;
	bool ready;

	do {
		assert_int_equal(tsi_zmq_send(from, NULL, &m), 0);
		assert_int_equal(
			tsi_zmq_poll(channel_router, NULL, 0, 50, &ready), 0);
		while (!tsi_zmq_recv(channel_router, peer, &got)) {
			if (got.serial == serial)
				return 0;
		}
	} while (tsi_now_ms() < end);
	return -1;
}
