/* SPDX-License-Identifier: MIT */
/*
 * blocks.h - the coefficients of a JPEG image, between the code that reads
 * them and the code that makes pixels of them.
 *
 * A frame says how an image is divided: into MCUs (minimum coded units), which
 * hold h * v blocks of 8 * 8 samples of each component.  Blocks hold quantised
 * coefficients, not multiplied by the quantisation table yet, in natural order
 * (row by row, not zigzag).
 */
#ifndef TSI_JPEG_BLOCKS_H
#define TSI_JPEG_BLOCKS_H

#include <stddef.h>
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

/*
 * Where the blocks of an MCU go: those of each unit, with the place of its
 * last[], and by how many blocks both grow from one MCU to the next.
 */
struct tsi_jpeg_cursor {
	int16_t *to[TSI_JPEG_UNITS_MAX];
	uint8_t *last[TSI_JPEG_UNITS_MAX];
	uint32_t step[TSI_JPEG_UNITS_MAX];
};

/* To the MCUs of row y of the area, from column x of it on; n units. */
static inline void tsi_jpeg_cursor_set(struct tsi_jpeg_cursor *to,
				       const struct tsi_jpeg_blocks *b,
				       const struct tsi_jpeg_frame *f,
				       const struct tsi_jpeg_unit *unit,
				       unsigned n, uint32_t x, uint32_t y)
{
	for (unsigned u = 0; u < n; u++) {
		unsigned k = unit[u].comp;
		const struct tsi_jpeg_comp *c = &f->comp[k];
		size_t row = (size_t)y * c->v + unit[u].y;
		size_t at = row * b->stride[k] + (size_t)x * c->h + unit[u].x;

		to->to[u] = b->coef[k][at];
		to->last[u] = b->last[k] + at;
		to->step[u] = c->h;
	}
}

/* All of them to one block, whose content nobody wants. */
static inline void tsi_jpeg_cursor_set_spare(struct tsi_jpeg_cursor *to,
					     int16_t *block, uint8_t *last,
					     unsigned n)
{
	for (unsigned u = 0; u < n; u++) {
		to->to[u] = block;
		to->last[u] = last;
		to->step[u] = 0;
	}
}

#endif
