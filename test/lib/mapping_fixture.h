/* SPDX-License-Identifier: MIT */
/*
 * mapping_fixture.h - mappings of a fixture's ring, and batches placed in them.
 */
#ifndef TEST_LIB_MAPPING_FIXTURE_H
#define TEST_LIB_MAPPING_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>

#include "consumer/mapping.h"
#include "test/lib/ring_fixture.h"

/* A twice mapped field, one with a margin, a small one of one byte. */
extern const uint64_t mapping_even[2], mapping_odd[2], mapping_both[4];

/* Map the ring for its largest batches, in this mode. */
void mapping_open(struct tsi_mapping *w, const struct fixture_ring *f,
		  enum tsi_mapping_mode mode);

/* A placement for batches of the mapping. */
void mapping_spot_init(const struct tsi_mapping *w, struct tsi_placement *s);
void mapping_spot_free(struct tsi_placement *s);

void mapping_place(struct tsi_mapping *w, uint64_t first, uint64_t count,
		   struct tsi_placement *s);

/* Does the batch show its samples, from first on? */
bool mapping_shows(const struct fixture_ring *f, const struct tsi_placement *s,
		   uint64_t first);

/* Write into every byte of it; are they still as written? */
void mapping_scribble(const struct fixture_ring *f, struct tsi_placement *s);
bool mapping_is_scribbled(const struct fixture_ring *f,
			  const struct tsi_placement *s);

#endif
