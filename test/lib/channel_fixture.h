/* SPDX-License-Identifier: MIT */
/*
 * channel_fixture.h - both ends of a channel, a producer's and a consumer's, in
 * a folder of their own.
 */
#ifndef TEST_LIB_CHANNEL_FIXTURE_H
#define TEST_LIB_CHANNEL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/zmq.h"

#define LONG_MS 20000

static char folder[64], path[80];
static struct tsi_channel *router, *dealer;

static inline int open_both(void **s)
{
	(void)s;
	strcpy(folder, "/tmp/tsock-zmq-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/s.bus", folder);
	return tsi_zmq_bind(path, &router) || tsi_zmq_connect(path, &dealer);
}

static inline int close_both(void **s)
{
	(void)s;
	tsi_zmq_close(dealer);
	tsi_zmq_close(router);
	unlink(path);
	return rmdir(folder);
}

static inline struct tsi_msg hello(uint32_t serial)
{
	struct tsi_msg m = { .type = TSI_HELLO, .serial = serial };

	m.u.hello.pid = 4711;
	return m;
}

/* Send until it arrives: what is sent before the connection is up is lost. */
static inline int exchange(struct tsi_channel *from, uint32_t serial,
			   struct tsi_routing_id *peer)
{
	struct tsi_msg m = hello(serial), got;
	int64_t end = tsi_now_ms() + LONG_MS;
	bool ready;

	do {
		assert_int_equal(tsi_zmq_send(from, NULL, &m), 0);
		assert_int_equal(tsi_zmq_poll(router, NULL, 0, 50, &ready), 0);
		while (!tsi_zmq_recv(router, peer, &got)) {
			if (got.serial == serial)
				return 0;
		}
	} while (tsi_now_ms() < end);
	return -1;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)

#endif
