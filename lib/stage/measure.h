/* SPDX-License-Identifier: MIT */
/*
 * measure.h - is another GPU's ring a good source?  How fast are copies from
 * it, and do they arrive as they were sent?
 */
#ifndef TSI_STAGE_MEASURE_H
#define TSI_STAGE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"

/*
 * Time copies of a few MiB into a ring that is still unused: from host memory
 * (page-locked or not) and from another GPU's.  Nanoseconds for each.
 */
int tsi_stage_measure(const struct tsi_ring *to, unsigned to_device,
		      unsigned from_device, bool locked, int64_t *host_ns,
		      int64_t *peer_ns);

/*
 * Copy into a ring that is still unused from another GPU, and compare by way of
 * the host.  0: what arrives is what was sent; ESYS, naming a byte: it isn't.
 */
int tsi_stage_verify(const struct tsi_ring *to, unsigned to_device,
		     const struct tsi_ring *from, unsigned from_device);

#endif
