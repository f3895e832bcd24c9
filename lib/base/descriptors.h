/* SPDX-License-Identifier: MIT */
/*
 * descriptors.h - how many descriptors this process has open, and may open.
 */
#ifndef TSI_BASE_DESCRIPTORS_H
#define TSI_BASE_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * kept is a reserve: so many descriptors are left for uses that can't be
 * refused, because the process would end if there were none (ZeroMQ's).
 */
struct tsi_descriptors {
	uint64_t open, limit, kept;
};

struct tsi_descriptors tsi_descriptors(void);

/* May so many more be opened, if quarters/4 of the reserve stay untouched? */
bool tsi_descriptors_room(const struct tsi_descriptors *d, uint64_t more,
			  unsigned quarters);

#endif
