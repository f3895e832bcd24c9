/* SPDX-License-Identifier: MIT */
/*
 * host.h - batches in host memory: a mapping of the ring as a backend.
 */
#ifndef TSI_CONSUMER_HOST_H
#define TSI_CONSUMER_HOST_H

#include "consumer/backend.h"
#include "consumer/mapping.h"

struct tsi_host_backend {
	struct tsi_backend base;
	struct tsi_mapping mapping;
};

/* As tsi_mapping_init(); the descriptors become its own, also on failure. */
int tsi_host_backend_create(enum tsi_mapping_mode mode,
			    const struct tsi_geometry *ring, uint64_t batch,
			    const int *fd, struct tsi_backend **out);

#endif
