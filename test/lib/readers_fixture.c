/* SPDX-License-Identifier: MIT */
/*
 * readers_fixture.c - readers of a producer that has only tables and rings.
 */
#include "test/lib/readers_fixture.h"

struct tsi_sync readers_sync;
struct tsi_gate readers_gate;
struct tsi_offers readers_offers;
struct tsi_readers readers_table;
struct fixture_ring readers_ring[2];

void readers_begin_with(uint64_t end, readers_make_ring *how)
{
	static const uint64_t bytes[] = { 64 };

	tsi_sync_init(&readers_sync);
	membership_make(N, 16, C, end);
	tsi_membership_source(&membership_m, 1, 0, C, false);
	memset(&readers_gate, 0, sizeof(readers_gate));
	memset(&readers_offers, 0, sizeof(readers_offers));
	memset(&readers_table, 0, sizeof(readers_table));
	tsi_gate_init(&readers_gate, &readers_sync, &membership_m);
	tsi_readers_init(&readers_table, &readers_sync, &readers_gate,
			 &membership_m, &readers_offers, N);
	for (unsigned i = 0; i < 2; i++) {
		how(&readers_ring[i], bytes, 1, C, 4);
		tsi_gate_add_ring(&readers_gate, i, &readers_ring[i].ring);
	}
}

int readers_begin(void **state)
{
	(void)state;
	readers_begin_with(TSI_NEVER, fixture_ring_make);
	return 0;
}

int readers_stop(void **state)
{
	(void)state;
	tsi_readers_drop_all(&readers_table, "leaves");
	for (unsigned i = 0; i < 2; i++)
		fixture_ring_free(&readers_ring[i]);
	tsi_readers_fini(&readers_table);
	tsi_sync_fini(&readers_sync);
	return 0;
}

struct tsi_offer readers_offer_of(uint8_t name)
{
	struct tsi_offer o = { .used = true };

	memset(o.join.nonce, name, TSI_NONCE);
	o.join.batch_size = 4;
	o.join.join = TSOCK_JOIN_EPOCH;
	o.join.between = TSOCK_BETWEEN_LEAVE;
	return o;
}

int readers_join_by(const struct tsi_offer *o, struct tsi_reply *reply)
{
	struct tsi_peer peer = { .pid = (uint32_t)getpid(), .pidfd = -1 };
	int s[2], err;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	close(s[1]);
	peer.sock = s[0];
	*reply = (struct tsi_reply){ .code = 0 };
	err = tsi_readers_join(&readers_table, o, &peer, reply);
	/* It is the reader's from then on. */
	if (err)
		close(s[0]);
	return err;
}

struct tsi_tail_page *readers_page_of(unsigned id)
{
	struct tsi_tail_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED,
		     tsi_memfd_fd(&readers_table.conn[id].tail), 0);

	assert_true(page != MAP_FAILED);
	return page;
}
