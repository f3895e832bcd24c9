/* SPDX-License-Identifier: MIT */
/*
 * sniff.h - what a file holds, by its first bytes or its name.
 */
#ifndef TSI_IMAGE_SNIFF_H
#define TSI_IMAGE_SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_image_head {
	unsigned format; /* index in tsi_decoders[] (formats.h) */
	uint32_t width;
	uint32_t height;
};

/*
 * Look at the head of a file.  data[0..len) is its beginning, or, if whole is
 * set, all of it.  TSOCK_EAGAIN: more bytes are needed to tell (a head may
 * carry any amount of metadata).  TSOCK_EDATA: bad, and the message says why.
 * What passes here may still turn out bad when it is loaded.  Any thread.
 */
int tsi_image_sniff(const void *data, size_t len, bool whole,
		    struct tsi_image_head *out);

/*
 * A number below UINT32_MAX for the formats that this build reads: what one
 * build calls bad another may read.
 */
uint32_t tsi_image_formats_read(void);

/* Does a file of this name hold an image of a format that isn't read? */
bool tsi_image_foreign(const char *name);

#endif
