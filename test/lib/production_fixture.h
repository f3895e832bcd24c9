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

extern struct tsi_sync production_sync;
extern struct tsi_gate production_gate;
extern struct tsi_production production_p;
extern struct fixture_ring production_base;

void production_begin(void);

void production_begin_with_reader(void);

void production_end(void);

uint64_t production_head(void);

#endif
