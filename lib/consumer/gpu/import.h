/* SPDX-License-Identifier: MIT */
/*
 * import.h - a ring in a GPU's memory, opened in this process.
 *
 * Each field's memory is opened once, and stays open until the last batch of
 * its reader is gone.  Nothing here reads or writes a sample.
 */
#ifndef TSI_CONSUMER_GPU_IMPORT_H
#define TSI_CONSUMER_GPU_IMPORT_H

#include <stdint.h>

#include "mem/gpu.h"
#include "ring/geometry.h"

struct tsi_import;

/* How the memory is opened. */
struct tsi_import_source {
	unsigned device;
	enum tsock_transport transport;          /* VMM or LEGACY */
	const uint8_t (*handle)[TSI_GPU_HANDLE]; /* LEGACY: one per field */
};

/*
 * Opens the fields of a ring that tsi_ring_read() has found good, by its
 * descriptors (VMM; LEGACY: -1) or handles.  The nfields descriptors are closed
 * here, also when it fails.
 */
int tsi_import_open(const struct tsi_import_source *from,
		    const struct tsi_geometry *ring, const int *fd,
		    struct tsi_import **out);
void tsi_import_close(struct tsi_import *m);

/* Where each field of the samples from first on is, up to a whole batch. */
void tsi_import_place(const struct tsi_import *m, uint64_t first, void **data);

#endif
