/* SPDX-License-Identifier: MIT */
/*
 * import.c - a ring in a GPU's memory, opened in this process.
 */
#include "consumer/gpu/import.h"

#include <stdlib.h>

#include "base/err.h"
#include "consumer/mapping.h"

struct tsi_import {
	unsigned nfields;
	uint64_t capacity;
	unsigned opened; /* of the fields */
	uint64_t sample_bytes[TSOCK_MAX_FIELDS];
	struct tsi_gpu_mem mem[TSOCK_MAX_FIELDS];
};

static int check_margins(const struct tsi_import_source *from,
			 const struct tsi_geometry *ring)
{
	for (unsigned i = 0; i < ring->nfields; i++)
		if (from->transport == TSOCK_TRANSPORT_LEGACY &&
		    !tsi_geometry_margin(ring, i))
			return tsi_err(
				TSOCK_EPROTO,
				"the producer's GPU ring is to be mapped "
				"twice, which its kind of memory can't");
	return 0;
}

static int open_field(struct tsi_import *m,
		      const struct tsi_import_source *from,
		      const struct tsi_geometry *ring, int fd)
{
	unsigned i = m->opened;
	int err = tsi_gpu_mem_open(from->device, from->transport, fd,
				   from->handle ? from->handle[i] : NULL,
				   tsi_geometry_map_bytes(ring, i),
				   !tsi_geometry_margin(ring, i), &m->mem[i]);

	m->sample_bytes[i] = tsi_geometry_bytes(ring, i, 1);
	m->opened += !err;
	return err;
}

static int open_fields(struct tsi_import *m,
		       const struct tsi_import_source *from,
		       const struct tsi_geometry *ring, const int *fd)
{
	int err = check_margins(from, ring);

	m->nfields = ring->nfields;
	m->capacity = ring->capacity;
	for (unsigned i = 0; i < ring->nfields && !err; i++)
		err = open_field(m, from, ring, fd[i]);
	return err;
}

int tsi_import_open(const struct tsi_import_source *from,
		    const struct tsi_geometry *ring, const int *fd,
		    struct tsi_import **out)
{
	struct tsi_import *m = calloc(1, sizeof(*m));
	int err = m ? open_fields(m, from, ring, fd)
		    : tsi_err(TSOCK_ENOMEM, "no memory to read a stream");

	/* The memory stays open without them. */
	tsi_mapping_close_fds(ring, fd);
	if (err)
		tsi_import_close(m);
	else
		*out = m;
	return err;
}

void tsi_import_close(struct tsi_import *m)
{
	if (!m)
		return;
	for (unsigned i = 0; i < m->opened; i++)
		tsi_gpu_mem_close(&m->mem[i]);
	free(m);
}

void tsi_import_place(const struct tsi_import *m, uint64_t first, void **data)
{
	uint64_t slot = first % m->capacity;

	for (unsigned i = 0; i < m->nfields; i++)
		data[i] = (uint8_t *)tsi_gpu_mem_base(&m->mem[i]) +
			  slot * m->sample_bytes[i];
}
