/* SPDX-License-Identifier: MIT */
/*
 * mapping_copy.c - batches that are copied from the ring.
 *
 * The small fields of all that may be written into, whole batches where no
 * window is to be had, and those that lie in both halves of the ring.
 */
#include "consumer/mapping.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"

unsigned tsi_mapping_half(const struct tsi_mapping *m, uint64_t s)
{
	return s >= m->since ? m->half : !m->half;
}

/* How many samples from at on, and before end, lie in a row: where. */
static uint64_t piece(const struct tsi_mapping *m, uint64_t at, uint64_t end,
		      uint64_t *slot)
{
	uint64_t n = end - at;

	*slot = at % m->capacity;
	if (n > m->capacity - *slot)
		n = m->capacity - *slot;
	if (at < m->since && n > m->since - at)
		n = m->since - at;
	return n;
}

void tsi_mapping_copy_small(const struct tsi_mapping *m, uint64_t first,
			    struct tsi_placement *s)
{
	uint64_t slot, n;

	for (unsigned i = 0; i < m->nfields; i++) {
		const struct tsi_mapping_field *f = &m->field[i];
		uint8_t *to = s->small + f->at;

		if (!f->small)
			continue;
		s->data[i] = to;
		for (uint64_t at = first; at < first + s->count; at += n) {
			n = piece(m, at, first + s->count, &slot);
			memcpy(to,
			       f->plain[tsi_mapping_half(m, at)] +
				       slot * f->sample_bytes,
			       n * f->sample_bytes);
			to += n * f->sample_bytes;
		}
	}
}

static int read_all(int fd, uint8_t *to, size_t len, uint64_t from)
{
	ssize_t n = tsi_file_pread(fd, to, len, from);

	if (n < 0)
		return tsi_err_sys("copy samples from the ring");
	if (n < (ssize_t)len)
		return tsi_err(TSOCK_EPROTO,
			       "the ring is shorter than the producer said");
	return 0;
}

static int copy_field(const struct tsi_mapping *m, unsigned i, uint64_t first,
		      uint64_t count, uint8_t *to)
{
	const struct tsi_mapping_field *f = &m->field[i];
	uint64_t slot, n;
	int err = 0;

	for (uint64_t at = first; at < first + count && !err; at += n) {
		uint64_t base = tsi_mapping_half(m, at) * f->map_bytes;

		n = piece(m, at, first + count, &slot);
		err = read_all(f->fd, to, n * f->sample_bytes,
			       base + slot * f->sample_bytes);
		to += n * f->sample_bytes;
	}
	return err;
}

/* By descriptor: address space may be what there is too little of. */
int tsi_mapping_copy_big(const struct tsi_mapping *m, uint64_t first,
			 struct tsi_placement *s)
{
	int err = 0;

	if (!s->copy)
		s->copy = aligned_alloc(4096,
					(m->copy_bytes + 4095) & ~(size_t)4095);
	if (!s->copy)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to copy a batch of %zu bytes; "
			       "release batches, or use a smaller batch_size",
			       m->copy_bytes);
	for (unsigned i = 0; i < m->nfields && !err; i++) {
		if (m->field[i].small)
			continue;
		s->data[i] = s->copy + m->field[i].at;
		err = copy_field(m, i, first, s->count, s->data[i]);
	}
	s->own = true;
	return err;
}
