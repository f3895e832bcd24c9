/* SPDX-License-Identifier: MIT */
/*
 * ring_fixture.c - a ring and a tail page for tests of what reads them.
 */
#include "test/lib/ring_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fixture_ring: %s: %s\n", what, tsock_errmsg());
	abort();
}

void fixture_ring_make(struct fixture_ring *f, const uint64_t *bytes,
		       unsigned nfields, uint64_t capacity, uint64_t max_batch)
{
	struct tsock_field field[TSOCK_MAX_FIELDS];

	for (unsigned i = 0; i < nfields; i++) {
		field[i] = (struct tsock_field){ .dtype = TSOCK_U8,
						 .ndim = 1,
						 .shape = { bytes[i] } };
		snprintf(field[i].name, sizeof(field[i].name), "f%u", i);
	}
	memset(f, 0, sizeof(*f));
	f->ident = (struct tsi_ring_ident){ .incarnation = 7,
					    .epoch_len = 1000,
					    .end = TSI_NEVER };
	must(!tsi_geometry_make(
		     field, nfields,
		     &(struct tsi_geometry_wish){ .ring = capacity,
						  .max_batch = max_batch },
		     &f->geometry),
	     "geometry");
	must(!tsi_ring_create(&f->geometry, &f->ident, &f->ring), "ring");
}

void fixture_ring_make_two(struct fixture_ring *f, const uint64_t *bytes,
			   unsigned nfields, uint64_t capacity,
			   uint64_t max_batch)
{
	int err = TSOCK_EAGAIN;

	fixture_ring_make(f, bytes, nfields, capacity, max_batch);
	tsi_ring_destroy(&f->ring);
	f->geometry.two_halves = true;
	must(!tsi_ring_create(&f->geometry, &f->ident, &f->ring), "ring");
	must(!tsi_ring_has_spare(&f->ring), "spare");
	while (err == TSOCK_EAGAIN)
		err = tsi_ring_reserve(&f->ring);
	must(!err && tsi_ring_has_spare(&f->ring), "no spare");
}

void fixture_ring_free(struct fixture_ring *f)
{
	tsi_ring_destroy(&f->ring);
}

uint8_t fixture_ring_byte(uint64_t seq, unsigned field)
{
	return (uint8_t)(seq * 37 + seq / 251 + field * 101 + 1);
}

void fixture_ring_publish(struct fixture_ring *f, uint64_t first,
			  uint64_t count)
{
	for (uint64_t s = first; s < first + count; s++)
		for (unsigned i = 0; i < f->geometry.nfields; i++)
			memset(tsi_ring_slot(&f->ring, i, s),
			       fixture_ring_byte(s, i),
			       f->geometry.field[i].sample_bytes);
	tsi_ring_mirror(&f->ring, first, (unsigned)count);
	tsi_ring_publish(&f->ring, first + count);
}

bool fixture_ring_equal(const struct fixture_ring *f, unsigned field,
			const void *data, uint64_t first, uint64_t count)
{
	uint64_t bytes = f->geometry.field[field].sample_bytes;
	const uint8_t *p = data;

	for (uint64_t s = first; s < first + count; s++)
		for (uint64_t i = 0; i < bytes; i++)
			if (*p++ != fixture_ring_byte(s, field))
				return false;
	return true;
}

void fixture_ring_fds(const struct fixture_ring *f, int *fd)
{
	for (unsigned i = 0; i < f->geometry.nfields; i++) {
		fd[i] = fcntl(f->ring.data[i].fd, F_DUPFD_CLOEXEC, 3);
		must(fd[i] >= 0, "dup");
	}
}
