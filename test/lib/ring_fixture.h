/* SPDX-License-Identifier: MIT */
/*
 * ring_fixture.h - a ring and a tail page for tests of what reads them.
 *
 * The test is the producer: it writes samples, whose every byte follows from
 * sequence number and field, and publishes them.
 */
#ifndef TEST_LIB_RING_FIXTURE_H
#define TEST_LIB_RING_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memfd.h"
#include "ring/ring.h"

struct fixture_ring {
	struct tsi_ring ring;
	struct tsi_geometry geometry;
	struct tsi_ring_ident ident;
};

/* Fields of u8 with these sizes in bytes. */
void fixture_ring_make(struct fixture_ring *f, const uint64_t *bytes,
		       unsigned nfields, uint64_t capacity, uint64_t max_batch);
/* A ring with a second half, which is reserved. */
void fixture_ring_make_two(struct fixture_ring *f, const uint64_t *bytes,
			   unsigned nfields, uint64_t capacity,
			   uint64_t max_batch);
void fixture_ring_free(struct fixture_ring *f);

/* Write samples first..first+count-1, margins included, and publish them. */
void fixture_ring_publish(struct fixture_ring *f, uint64_t first,
			  uint64_t count);

/* The value of every byte of a field of a sample. */
uint8_t fixture_ring_byte(uint64_t seq, unsigned field);

/* Do count samples at data equal samples first.. of that field? */
bool fixture_ring_equal(const struct fixture_ring *f, unsigned field,
			const void *data, uint64_t first, uint64_t count);

/* Copies of the data descriptors, for who takes them over. */
void fixture_ring_fds(const struct fixture_ring *f, int *fd);

#endif
