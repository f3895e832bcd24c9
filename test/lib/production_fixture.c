/* SPDX-License-Identifier: MIT */
/*
 * production_fixture.c - the production of a stream that has nothing else.
 */
#include "test/lib/production_fixture.h"

struct tsi_sync production_sync;
struct tsi_gate production_gate;
struct tsi_production production_p;
struct fixture_ring production_base;

void production_begin(void)
{
	static const uint64_t bytes[] = { 64 };

	memset(&production_p, 0, sizeof(production_p));
	memset(&production_gate, 0, sizeof(production_gate));
	tsi_sync_init(&production_sync);
	membership_make(N, 16, C, TSI_NEVER);
	tsi_gate_init(&production_gate, &production_sync, &membership_m);
	fixture_ring_make(&production_base, bytes, 1, C, 4);
	tsi_gate_add_ring(&production_gate, 0, &production_base.ring);
	assert_int_equal(tsi_production_init(&production_p, C, &production_sync,
					     &membership_m, &production_gate),
			 0);
}

void production_begin_with_reader(void)
{
	production_begin();
	tsi_sync_lock(&production_sync);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&production_sync);
}

void production_end(void)
{
	tsi_production_fini(&production_p);
	fixture_ring_free(&production_base);
	tsi_sync_fini(&production_sync);
}

uint64_t production_head(void)
{
	return atomic_load(&production_base.ring.shared->head);
}
