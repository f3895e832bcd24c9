/*
 * gpuwindow.c - the samples of a ring in a GPU's memory as this process sees
 * them.
 *
 * Each field's memory is opened once, when the ring is mapped, and stays open
 * until the last batch of its reader is gone.  Nothing here reads or writes a
 * sample.
 */
#include "consumer/window.h"

#include <unistd.h>

#include "base/err.h"

static int check(const struct tsi_gpu_ring *from,
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

static int open_field(struct tsi_windows *w, const struct tsi_gpu_ring *from,
		      unsigned i)
{
	struct tsi_map_field *f = &w->field[i];
	int err = tsi_gpu_mem_open(from->device, from->transport, f->fd,
				   from->handle ? from->handle[i] : NULL,
				   f->map_bytes, f->twice, &w->gpu[i]);

	if (!err)
		f->plain = w->gpu[i].base;
	return err;
}

int tsi_windows_open_gpu(struct tsi_windows *w, const struct tsi_gpu_ring *from,
			 const struct tsi_ring_shared *ring, uint64_t batch,
			 const int *fd)
{
	int err;

	*w = (struct tsi_windows){
		.mode = TSI_MAP_GPU,
		.nfields = ring->nfields,
		.capacity = ring->capacity,
		.batch = batch,
		.pagemap = -1,
	};
	for (unsigned i = 0; i < w->nfields; i++) {
		w->field[i] = (struct tsi_map_field){
			.sample_bytes = ring->field[i].sample_bytes,
			.map_bytes = ring->field[i].map_bytes,
			.twice = !ring->field[i].margin,
			.fd = fd[i],
		};
		w->field[i].span =
			w->field[i].map_bytes * (w->field[i].twice ? 2 : 1);
	}
	err = check(from, ring);
	for (unsigned i = 0; i < w->nfields && !err; i++)
		err = open_field(w, from, i);
	if (err)
		tsi_windows_fini(w);
	else
		tsi_windows_seal(w); /* the memory is open without them */
	return err;
}

void tsi_windows_close_gpu(struct tsi_windows *w)
{
	for (unsigned i = 0; i < w->nfields; i++) {
		if (w->field[i].plain)
			tsi_gpu_mem_close(&w->gpu[i]);
		w->field[i].plain = NULL;
	}
}
