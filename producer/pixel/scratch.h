/* SPDX-License-Identifier: MIT */
/*
 * scratch.h - memory that grows and is kept from image to image.
 */
#ifndef TSI_PIXEL_SCRATCH_H
#define TSI_PIXEL_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/* Begins as zeros; p is aligned to 64. */
struct tsi_scratch {
	uint8_t *p;
	size_t len;
};

/*
 * At least len bytes; new ones are zeros, the old content is lost.  Fails with
 * TSOCK_ENOMEM, which says that it was memory for this.
 */
int tsi_scratch_grow(struct tsi_scratch *s, size_t len, const char *what);

/* What tsi_scratch_grow() takes for len bytes, at most. */
uint64_t tsi_scratch_need(uint64_t len);

/* Free it if it has grown beyond TSI_SCRATCH_KEEP. */
void tsi_scratch_trim(struct tsi_scratch *s);

void tsi_scratch_fini(struct tsi_scratch *s);

#endif
