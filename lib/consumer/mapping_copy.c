/* SPDX-License-Identifier: MIT */
/*
 * mapping_copy.c - batches that are copied from the ring.
 *
 * The small fields of all that may be written into, and whole batches where no
 * window is to be had.
 */
#include "consumer/mapping.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fully.h"

void tsi_mapping_copy_small(const struct tsi_mapping *m,
			    struct tsi_placement *s)
{
	uint64_t n = m->capacity - s->slot;

	if (n > s->count)
		n = s->count;
	for (unsigned i = 0; i < m->nfields; i++) {
		const struct tsi_mapping_field *f = &m->field[i];
		size_t bytes = n * f->sample_bytes;

		if (!f->small)
			continue;
		s->data[i] = s->small + f->at;
		memcpy(s->data[i], f->plain + s->slot * f->sample_bytes, bytes);
		memcpy((uint8_t *)s->data[i] + bytes, f->plain,
		       (s->count - n) * f->sample_bytes);
	}
}

static int read_all(int fd, uint8_t *to, size_t len, uint64_t from)
{
	ssize_t n = tsi_fully_pread(fd, to, len, from);

	if (n < 0)
		return tsi_err_sys("copy samples from the ring");
	if (n < (ssize_t)len)
		return tsi_err(TSOCK_EPROTO,
			       "the ring is shorter than the producer said");
	return 0;
}

/* By descriptor: address space may be what there is too little of. */
int tsi_mapping_copy_big(const struct tsi_mapping *m, struct tsi_placement *s)
{
	uint64_t n = m->capacity - s->slot;
	int err = 0;

	if (n > s->count)
		n = s->count;
	if (!s->copy)
		s->copy = aligned_alloc(4096,
					(m->copy_bytes + 4095) & ~(size_t)4095);
	if (!s->copy)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to copy a batch of %zu bytes; "
			       "release batches, or use a smaller batch_size",
			       m->copy_bytes);
	for (unsigned i = 0; i < m->nfields && !err; i++) {
		const struct tsi_mapping_field *f = &m->field[i];
		size_t bytes = n * f->sample_bytes;
		uint8_t *to = s->copy + f->at;

		if (f->small)
			continue;
		s->data[i] = to;
		err = read_all(f->fd, to, bytes, s->slot * f->sample_bytes);
		if (!err)
			err = read_all(f->fd, to + bytes,
				       (s->count - n) * f->sample_bytes, 0);
	}
	s->own = true;
	return err;
}
