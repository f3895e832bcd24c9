/*
 * descriptors.h - how many descriptors this process has open, and may.
 */
#ifndef TSI_BASE_DESCRIPTORS_H
#define TSI_BASE_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * kept is the reserve: of the descriptors below the limit so many are left to
 * what can't be refused, since running out of them ends the process.
 */
struct tsi_descriptors {
	uint64_t open, limit, kept;
};

struct tsi_descriptors tsi_descriptors(void);

/* May so many more be opened, if of every four that are kept quarters stay? */
bool tsi_descriptors_room(const struct tsi_descriptors *d, uint64_t more,
			  unsigned quarters);

#endif
