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

static struct tsi_sync sync_;
static struct tsi_gate gate;
static struct tsi_offers offers;
static struct tsi_readers readers;
static struct fixture_ring ring[2];

/* A function that makes rings, of one half or of two. */
typedef void make_ring(struct fixture_ring *, const uint64_t *, unsigned,
		       uint64_t, uint64_t);

static inline void begin_with(uint64_t end, make_ring *how)
{
	static const uint64_t bytes[] = { 64 };

	tsi_sync_init(&sync_);
	make(N, 16, C, end);
	tsi_membership_source(&m, 1, 0, C, false);
	memset(&gate, 0, sizeof(gate));
	memset(&offers, 0, sizeof(offers));
	memset(&readers, 0, sizeof(readers));
	tsi_gate_init(&gate, &sync_, &m);
	tsi_readers_init(&readers, &sync_, &gate, &m, &offers, N);
	for (unsigned i = 0; i < 2; i++) {
		how(&ring[i], bytes, 1, C, 4);
		tsi_gate_add_ring(&gate, i, &ring[i].ring);
	}
}

static inline int begin(void **state)
{
	(void)state;
	begin_with(TSI_NEVER, fixture_ring_make);
	return 0;
}

static inline int stop(void **state)
{
	(void)state;
	tsi_readers_drop_all(&readers, "leaves");
	for (unsigned i = 0; i < 2; i++)
		fixture_ring_free(&ring[i]);
	tsi_sync_fini(&sync_);
	return 0;
}

/* What a consumer, whose nonce is its name, was offered. */
static inline struct tsi_offer offer_of(uint8_t name)
{
	struct tsi_offer o = { .used = true };

	memset(o.join.nonce, name, TSI_NONCE);
	o.join.batch_size = 4;
	o.join.join = TSOCK_JOIN_EPOCH;
	o.join.between = TSOCK_BETWEEN_LEAVE;
	return o;
}

/* The reply is that to who joined. */
static inline int join_by(const struct tsi_offer *o, struct tsi_reply *reply)
{
	struct tsi_peer peer = { .pid = (uint32_t)getpid(), .pidfd = -1 };
	int s[2], err;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	close(s[1]);
	peer.sock = s[0];
	*reply = (struct tsi_reply){ .code = 0 };
	err = tsi_readers_join(&readers, o, &peer, reply);
	/* The socket is the reader's from then on. */
	if (err)
		close(s[0]);
	return err;
}

/* A reader's tail page, as the reader has it; munmap() it. */
static inline struct tsi_tail_page *page_of(unsigned id)
{
	struct tsi_tail_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED,
		     tsi_memfd_fd(&readers.conn[id].tail), 0);

	assert_true(page != MAP_FAILED);
	return page;
}

#endif
