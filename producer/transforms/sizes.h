/* SPDX-License-Identifier: MIT */
/*
 * sizes.h - arguments that several operations have, and what they mean.
 */
#ifndef TSI_TRANSFORMS_SIZES_H
#define TSI_TRANSFORMS_SIZES_H

#include "pixel/image.h"
#include "transforms/op.h"

/* Largest edge that an argument may ask for. */
#define TSI_SIZE_MAX ((int)TSI_IMAGE_SIZE_MAX)

/* size: one number for both edges, or (height, width). */
#define TSI_ARG_SIZE \
	{ \
		.name = "size", .kind = TSI_ARG_WHOLE, .least = 1, .most = 2, \
		.min = 1, .max = TSI_SIZE_MAX \
	}

/* Always on: Pillow's resize has no other way. */
#define TSI_ARG_ANTIALIAS \
	{ \
		.name = "antialias", .kind = TSI_ARG_SWITCH, .value = "True", \
		.none = true \
	}

/* A filter, or one of two by chance: the first of these words. */
#define TSI_ARG_RANDOM_FILTER(default) \
	{ \
		.name = "interpolation", .kind = TSI_ARG_WORD, \
		.value = default, .words = "random|" TSI_FILTER_WORDS \
	}

/* How likely it is that the operation is done. */
#define TSI_ARG_P(default) \
	{ \
		.name = "p", .kind = TSI_ARG_NUMBER, .value = default, \
		.min = 0, .max = 1 \
	}

/* A colour: one number for all channels, or red, green and blue. */
#define TSI_ARG_FILL \
	{ \
		.name = "fill", .kind = TSI_ARG_NUMBER, .value = "0", \
		.least = 1, .most = 3, .min = 0, .max = 255, .none = true, \
		.colour = true \
	}

/* The number that a mask gets beyond the picture; None: as the picture. */
#define TSI_ARG_MASK_FILL \
	{ \
		.name = "mask_fill", .kind = TSI_ARG_WHOLE, .value = "None", \
		.min = 0, .max = 255, .none = true \
	}

#define TSI_ARG_PADDING_MODE \
	{ \
		.name = "padding_mode", .kind = TSI_ARG_WORD, \
		.value = "constant", \
		.words = "constant|edge|reflect|symmetric" \
	}

/* One number becomes two of the same. */
bool tsi_sizes_pair(struct tsi_arg_value *v);

/*
 * Where the middle of an edge begins, for torchvision and timm: Python's
 * int(round((edge - size) / 2.0)), or the border before a smaller edge, negative.
 */
int64_t tsi_sizes_centre(uint32_t edge, uint32_t size);

/*
 * The enum tsi_filter of an argument TSI_ARG_RANDOM_FILTER: bilinear or bicubic
 * where it is random.
 */
unsigned tsi_sizes_draw_filter(const struct tsi_op *op, unsigned arg,
			       struct tsi_words *w);

/* The antialias argument: None is True, False is refused. */
bool tsi_sizes_antialias(struct tsi_arg_value *v, const char **why);

/* The bytes of a fill argument. */
void tsi_sizes_fill(const struct tsi_arg_value *v, uint8_t *fill);

/*
 * The mask_fill argument: if there is none the number of a fill that has one,
 * and 0 for a colour, which is no class.
 */
uint8_t tsi_sizes_mask_fill(const struct tsi_arg_value *v,
			    const struct tsi_arg_value *fill);

/*
 * For unboxed: v2 has no boxes in a border that isn't of one colour.  Looks at
 * the argument TSI_ARG_PADDING_MODE.
 */
const char *tsi_sizes_unboxed(const struct tsi_op *op);

/* As struct tsi_op_type's size, of an operation with the size (h, w). */
void tsi_sizes_fixed(const struct tsi_arg_value *v, struct tsi_op_size *size);

/* For a count: an operation that draws one number. */
unsigned tsi_sizes_one(const struct tsi_op *op);

#endif
