/* SPDX-License-Identifier: MIT */
/*
 * made_image.h - small image files by hand: JPEGs of every process, sampling
 * and number of scans with noise for data, and PNGs with stored blocks.
 *
 * They are seeds: whether a decoder likes them is its own affair.
 */
#ifndef TEST_LIB_MADE_IMAGE_H
#define TEST_LIB_MADE_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct made {
	uint8_t bytes[65536];
	size_t len;
	uint32_t noise;
};

struct made_image_jpeg {
	unsigned sof; /* 0xc0, 0xc1, 0xc2, 0xc9, 0xca */
	unsigned width, height, parts;
	unsigned sampling; /* of the first component: 0x11, 0x21, 0x22, ... */
	unsigned scans;    /* progressive: how often all is scanned */
	unsigned data;     /* bytes of each scan */
	unsigned restart;
};

void made_image_8(struct made *m, unsigned v);

void made_image_16(struct made *m, unsigned v);

void made_image_32(struct made *m, uint32_t v);

void made_image_jpeg(struct made *m, const struct made_image_jpeg *j);

size_t made_image_chunk(struct made *m, const char *type, uint32_t len);

void made_image_chunk_end(struct made *m, size_t at);

/* At most 60000 bytes of rows; type and depth as in its header. */
void made_image_png(struct made *m, unsigned width, unsigned height,
		    unsigned type, unsigned depth, unsigned interlaced);

#endif
