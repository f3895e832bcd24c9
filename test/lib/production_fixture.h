/* SPDX-License-Identifier: MIT */
/*
 * production_fixture.h - the production of a stream that has nothing else: a
 * base ring, its membership, and the lock.
 */
#ifndef TEST_LIB_PRODUCTION_FIXTURE_H
#define TEST_LIB_PRODUCTION_FIXTURE_H

#include "serve/production.h"
#include "test/lib/membership_fixture.h"
#include "test/lib/ring_fixture.h"

#define N 40
#define C 256

static struct tsi_sync sync_;
static struct tsi_gate gate;
static struct tsi_production p;
static struct fixture_ring base;

static inline void begin(void)
{
	static const uint64_t bytes[] = { 64 };

	memset(&p, 0, sizeof(p));
	memset(&gate, 0, sizeof(gate));
	tsi_sync_init(&sync_);
	make(N, 16, C, TSI_NEVER);
	tsi_gate_init(&gate, &sync_, &m);
	fixture_ring_make(&base, bytes, 1, C, 4);
	tsi_gate_add_ring(&gate, 0, &base.ring);
	assert_int_equal(tsi_production_init(&p, C, &sync_, &m, &gate), 0);
}

static inline void begin_with_reader(void)
{
	begin();
	tsi_sync_lock(&sync_);
	join(TSOCK_JOIN_EPOCH, 0);
	tsi_sync_unlock(&sync_);
}

static inline void end(void)
{
	tsi_production_fini(&p);
	fixture_ring_free(&base);
	tsi_sync_fini(&sync_);
}

static inline uint64_t head(void)
{
	return atomic_load(&base.ring.shared->head);
}

#endif
