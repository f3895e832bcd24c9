/* SPDX-License-Identifier: MIT */
/*
 * mapping_fixture.c - mappings of a fixture's ring, and batches placed in them.
 */
#include "test/lib/mapping_fixture.h"

#include <stdlib.h>
#include <string.h>

const uint64_t mapping_even[2] = { 24576, 1 };
const uint64_t mapping_odd[2] = { 299 * 299 * 3, 1 };
const uint64_t mapping_both[4] = { 24576, 20001, 8, 1 };

void mapping_open(struct tsi_mapping *w, const struct fixture_ring *f,
		  enum tsi_mapping_mode mode)
{
	int fd[TSOCK_MAX_FIELDS];

	fixture_ring_fds(f, fd);
	assert_int_equal(tsi_mapping_init(w, mode, &f->geometry,
					  f->geometry.max_batch, fd),
			 0);
	assert_int_equal(w->mode, mode);
}

void mapping_spot_init(const struct tsi_mapping *w, struct tsi_placement *s)
{
	memset(s, 0, sizeof(*s));
	s->small = malloc(w->small_bytes + 1);
	assert_non_null(s->small);
}

void mapping_spot_free(struct tsi_placement *s)
{
	free(s->small);
	free(s->copy);
}

void mapping_place(struct tsi_mapping *w, uint64_t first, uint64_t count,
		   struct tsi_placement *s)
{
	assert_int_equal(tsi_mapping_place(w, first, count, s), 0);
}

bool mapping_shows(const struct fixture_ring *f, const struct tsi_placement *s,
		   uint64_t first)
{
	for (unsigned i = 0; i < f->geometry.nfields; i++)
		if (!fixture_ring_equal(f, i, s->data[i], first, s->count))
			return false;
	return true;
}

void mapping_scribble(const struct fixture_ring *f, struct tsi_placement *s)
{
	for (unsigned i = 0; i < f->geometry.nfields; i++)
		memset(s->data[i], 0xee,
		       s->count * f->geometry.field[i].sample_bytes);
}

bool mapping_is_scribbled(const struct fixture_ring *f,
			  const struct tsi_placement *s)
{
	for (unsigned i = 0; i < f->geometry.nfields; i++) {
		const uint8_t *p = s->data[i];
		uint64_t n = s->count * f->geometry.field[i].sample_bytes;

		for (uint64_t j = 0; j < n; j++)
			if (p[j] != 0xee)
				return false;
	}
	return true;
}
