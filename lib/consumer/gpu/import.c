/*
 * import.c - the samples of a ring in a GPU's memory as this process sees
 * them.
 *
 * Each field's memory is opened once, when the ring is mapped, and stays open
 * until the last batch of its reader is gone.  Nothing here reads or writes a
 * sample.
 */
#include "consumer/mapping.h"

#include <unistd.h>

#include "base/err.h"

static int check(const struct tsi_import_source *from,
		 const struct tsi_ring_shared *ring)
{
	for (unsigned i = 0; i < ring->nfields; i++)
		if (from->transport == TSOCK_TRANSPORT_LEGACY &&
		    !ring->field[i].margin)
			return tsi_err(
				TSOCK_EPROTO,
				"the producer's GPU ring is to be mapped "
				"twice, which its kind of memory can't");
	return 0;
}

static int open_field(struct tsi_mapping *m,
		      const struct tsi_import_source *from, unsigned i)
{
	struct tsi_mapping_field *f = &m->field[i];
	int err = tsi_gpu_mem_open(from->device, from->transport, f->fd,
				   from->handle ? from->handle[i] : NULL,
				   f->map_bytes, f->twice, &m->gpu[i]);

	if (!err)
		f->plain = m->gpu[i].base;
	return err;
}

int tsi_import_open(struct tsi_mapping *m, const struct tsi_import_source *from,
		    const struct tsi_ring_shared *ring, uint64_t batch,
		    const int *fd)
{
	int err;

	*m = (struct tsi_mapping){
		.mode = TSI_MAP_GPU,
		.nfields = ring->nfields,
		.capacity = ring->capacity,
		.batch = batch,
		.pagemap = -1,
	};
	for (unsigned i = 0; i < m->nfields; i++) {
		m->field[i] = (struct tsi_mapping_field){
			.sample_bytes = ring->field[i].sample_bytes,
			.map_bytes = ring->field[i].map_bytes,
			.twice = !ring->field[i].margin,
			.fd = fd[i],
		};
		m->field[i].span =
			m->field[i].map_bytes * (m->field[i].twice ? 2 : 1);
	}
	err = check(from, ring);
	for (unsigned i = 0; i < m->nfields && !err; i++)
		err = open_field(m, from, i);
	if (err)
		tsi_mapping_fini(m);
	else
		tsi_mapping_seal(m); /* the memory is open without them */
	return err;
}

void tsi_import_close(struct tsi_mapping *m)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		if (m->field[i].plain)
			tsi_gpu_mem_close(&m->gpu[i]);
		m->field[i].plain = NULL;
	}
}
