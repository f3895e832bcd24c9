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

extern char channel_folder[64], channel_path[80];
extern struct tsi_channel *channel_router, *channel_dealer;

int channel_open_both(void **s);

int channel_close_both(void **s);

struct tsi_msg channel_hello(uint32_t serial);

/* Send until it arrives: what is sent before the connection is up is lost. */
int channel_exchange(struct tsi_channel *from, uint32_t serial,
		     struct tsi_routing_id *peer);

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, channel_open_both, \
					channel_close_both)

#endif
