/* SPDX-License-Identifier: MIT */
/*
 * jpeg_blocks.h - the coefficients of a JPEG image, between the code that reads
 * them and the code that makes pixels of them.
 *
 * A frame says how an image is divided: into MCUs (minimum coded units), which
 * hold h * v blocks of 8 * 8 samples of each component.  Blocks hold quantised
 * coefficients, not multiplied by the quantisation table yet, in natural order
 * (row by row, not zigzag).
 */
#ifndef TSI_IMAGE_JPEG_BLOCKS_H
#define TSI_IMAGE_JPEG_BLOCKS_H

#include <stdint.h>

#define TSI_JPEG_COMPS 3

enum tsi_jpeg_color {
	TSI_JPEG_GRAY = 0, /* one component */
	TSI_JPEG_YCC = 1,  /* three, as JFIF has them */
	TSI_JPEG_RGB = 2,  /* three */
};

struct tsi_jpeg_comp {
	uint8_t h; /* sampling factors; 1 and 1 if there is one component */
	uint8_t v;
	uint16_t quant[64]; /* natural order */
};

struct tsi_jpeg_frame {
	uint32_t width; /* pixels */
	uint32_t height;
	uint32_t mcus_across; /* the last column and row may be padded */
	uint32_t mcus_down;
	uint8_t h_max;
	uint8_t v_max;
	uint8_t comps; /* 1 or 3 */
	enum tsi_jpeg_color color;
	struct tsi_jpeg_comp comp[TSI_JPEG_COMPS];
};

/* Blocks in an MCU at most, of the files that our decoder takes. */
#define TSI_JPEG_UNITS_MAX 6

/* A block of an MCU: whose it is, and where in the MCU it lies. */
struct tsi_jpeg_unit {
	uint8_t comp;
	uint8_t x; /* blocks */
	uint8_t y;
};

/* The blocks of an MCU in the order of their codes; returns how many. */
static inline unsigned tsi_jpeg_units(const struct tsi_jpeg_frame *f,
				      struct tsi_jpeg_unit *unit)
{
	unsigned n = 0;

	for (uint8_t c = 0; c < f->comps; c++)
		for (unsigned i = 0; i < f->comp[c].h * f->comp[c].v; i++)
			unit[n++] = (struct tsi_jpeg_unit){
				c, (uint8_t)(i % f->comp[c].h),
				(uint8_t)(i / f->comp[c].h)
			};
	return n;
}

/* A rectangle of MCUs. */
struct tsi_jpeg_area {
	uint32_t left;
	uint32_t top;
	uint32_t across;
	uint32_t down;
};

/*
 * The blocks of an area.  Component k has h * across blocks in a row and v *
 * down rows of them: the block in row y and column x is coef[k][y * stride[k] +
 * x], and last[k] at the same place is the zigzag position of its last
 * coefficient that is not zero (0: none, or the first alone).
 */
struct tsi_jpeg_blocks {
	struct tsi_jpeg_area area;
	int16_t (*coef[TSI_JPEG_COMPS])[64]; /* aligned to 64 bytes */
	uint8_t *last[TSI_JPEG_COMPS];
	uint32_t stride[TSI_JPEG_COMPS]; /* blocks */
};

#endif
