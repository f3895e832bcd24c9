/* SPDX-License-Identifier: MIT */
/*
 * descriptors.h - how many descriptors this process may still open.
 */
#ifndef TSI_BASE_DESCRIPTORS_H
#define TSI_BASE_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The descriptors that this process has open, and how many it may open.  kept is
 * a reserve for uses that can't be refused because the process would end without
 * a descriptor (ZeroMQ's).
 */
struct tsi_descriptors {
	uint64_t open, limit, kept;
};

struct tsi_descriptors tsi_descriptors(void);

/* "N of LIMIT are in use, KEPT are kept back", written to text. */
#define TSI_DESCRIPTORS_TEXT 128
const char *tsi_descriptors_text(const struct tsi_descriptors *d,
				 char text[TSI_DESCRIPTORS_TEXT]);

/* May that many more be opened, with quarters/4 of the reserve left free? */
bool tsi_descriptors_room(const struct tsi_descriptors *d, uint64_t more,
			  unsigned quarters);

#endif
