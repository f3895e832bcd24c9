/* SPDX-License-Identifier: MIT */
/*
 * download.h - samples in a GPU's memory, copied into a ring in host memory.
 */
#ifndef TSI_STAGE_DOWNLOAD_H
#define TSI_STAGE_DOWNLOAD_H

#include "ring/ring.h"
#include "stage/resident.h"

struct tsi_downloads; /* streams and events for copies; any thread */

int tsi_downloads_create(struct tsi_downloads **out);
/* NULL is allowed.  No copy is under way. */
void tsi_downloads_destroy(struct tsi_downloads *d);

/*
 * Copy what is in the GPU's memory into the ring, when the work queued so far
 * in that stream is done, and wait for the end of the copy.
 */
int tsi_download(struct tsi_downloads *d, const struct tsi_resident *r,
		 void *stream, const struct tsi_ring *to);

#endif
