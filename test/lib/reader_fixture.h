/* SPDX-License-Identifier: MIT */
/*
 * reader_fixture.h - a reader of a fixture's ring, and its tail page.
 *
 * The test is producer and consumer in one.  Batches of 8 samples from a ring
 * of 64, of which 32 may be held.
 */
#ifndef TEST_LIB_READER_FIXTURE_H
#define TEST_LIB_READER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "consumer/host.h"
#include "consumer/reader.h"
#include "test/lib/ring_fixture.h"

#define CAPACITY 64 /* window 32, so 32 may be held */
#define BATCH 8

struct fixture {
	struct fixture_ring f;
	struct tsi_memfd tail;
	int event;
	struct tsi_reader *r;
	uint64_t head;
	_Atomic unsigned over, gone;
};

/* Samples of two fields of these sizes: big ones, and ones that are copied. */
extern const uint64_t fixture_big[2], fixture_small[2];

void fixture_make(struct fixture *g, const uint64_t *bytes,
		  enum tsi_mapping_mode mode);

/* With the reader gone. */
void fixture_free(struct fixture *g);

/* The handle lets go; nothing is held. */
void fixture_close(struct fixture *g);

uint64_t fixture_tail(const struct fixture *g);

/* Was the producer's eventfd written to since the last call? */
bool fixture_rang(const struct fixture *g);

/* The next n samples, published just before. */
struct tsock_batch *fixture_take(struct fixture *g, uint64_t n);

/* Does it show its samples? */
bool fixture_good(const struct fixture *g, const struct tsock_batch *b);

#endif
