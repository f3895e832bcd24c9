/* SPDX-License-Identifier: MIT */
/*
 * readers_fixture.h - the readers of a producer that has nothing but its tables
 * and the rings of two views.
 */
#ifndef TEST_LIB_READERS_FIXTURE_H
#define TEST_LIB_READERS_FIXTURE_H

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring/tail_page.h"
#include "serve/readers.h"
#include "test/lib/membership_fixture.h"
#include "test/lib/ring_fixture.h"

#define N 32
#define C 64

extern struct tsi_sync readers_sync;
extern struct tsi_gate readers_gate;
extern struct tsi_offers readers_offers;
extern struct tsi_readers readers_table;
extern struct fixture_ring readers_ring[2];

/* A function that makes rings, of one half or of two. */
typedef void readers_make_ring(struct fixture_ring *, const uint64_t *,
			       unsigned, uint64_t, uint64_t);

void readers_begin_with(uint64_t end, readers_make_ring *how);

int readers_begin(void **state);

int readers_stop(void **state);

/* What a consumer, whose nonce is its name, was offered. */
struct tsi_offer readers_offer_of(uint8_t name);

/* The reply is that to who joined. */
int readers_join_by(const struct tsi_offer *o, struct tsi_reply *reply);

/* A reader's tail page, as the reader has it; munmap() it. */
struct tsi_tail_page *readers_page_of(unsigned id);

#endif
