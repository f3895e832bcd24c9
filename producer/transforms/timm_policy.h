/* SPDX-License-Identifier: MIT */
/*
 * timm_policy.h - the operations that timm's policies choose from, and what
 * their levels mean: timm's AugmentOp.
 *
 * Formulas: timm/data/auto_augment.py (AugmentOp, *_level_to_arg).
 */
#ifndef TSI_TRANSFORMS_TIMM_POLICY_H
#define TSI_TRANSFORMS_TIMM_POLICY_H

#include "transforms/op.h"

/* Those of its RandAugment in timm's order, then those of the policy 3a. */
enum tsi_timm_op {
	TSI_TIMM_AUTO_CONTRAST,
	TSI_TIMM_EQUALIZE,
	TSI_TIMM_INVERT,
	TSI_TIMM_ROTATE,
	TSI_TIMM_POSTERIZE,
	TSI_TIMM_SOLARIZE,
	TSI_TIMM_SOLARIZE_ADD,
	TSI_TIMM_COLOR,
	TSI_TIMM_CONTRAST,
	TSI_TIMM_BRIGHTNESS,
	TSI_TIMM_SHARPNESS,
	TSI_TIMM_SHEAR_X,
	TSI_TIMM_SHEAR_Y,
	TSI_TIMM_TRANSLATE_X,
	TSI_TIMM_TRANSLATE_Y,
	TSI_TIMM_RAND_OPS,
	TSI_TIMM_DESATURATE = TSI_TIMM_RAND_OPS,
	TSI_TIMM_BLUR,
};

/* How a level grows, of those operations for which timm has several ways. */
enum tsi_timm_way {
	TSI_TIMM_PLAIN,
	TSI_TIMM_INCREASING, /* more is done at higher levels */
	TSI_TIMM_ORIGINAL,   /* of posterize: 4 to 8 bits are kept */
};

/* What is drawn for each operation. */
enum {
	TSI_TIMM_OP,   /* -1: none is done */
	TSI_TIMM_BY,   /* its argument */
	TSI_TIMM_WITH, /* enum tsi_filter */
	TSI_TIMM_EACH,
};

#define TSI_TIMM_DRAWS \
	"which operation, of timm's 15 from 0, or -1 if none is done; its " \
	"argument; its interpolation, of bilinear, nearest, box, hamming and " \
	"bicubic from 0"

/* How levels are drawn. */
struct tsi_timm_levels {
	double std;       /* INFINITY: all levels from 0 on are as likely */
	double most;      /* the highest level */
	double translate; /* part of the edge at level 10 */
	unsigned filter;  /* the argument interpolation */
};

/* The levels' highest one, and how far pictures are moved, unless it is said. */
#define TSI_TIMM_MOST 10
#define TSI_TIMM_TRANSLATE 0.45

/* Bilinear or bicubic by chance, or one of them, or nearest. */
#define TSI_TIMM_ARG_FILTER \
	{ \
		.name = "interpolation", .kind = TSI_ARG_WORD, \
		.value = "random", .words = "random|nearest|bilinear|bicubic" \
	}

/* ImageNet's mean, as bytes. */
#define TSI_TIMM_ARG_FILL \
	{ \
		.name = "fill", .kind = TSI_ARG_NUMBER, \
		.value = "(124, 116, 104)", .least = 1, .most = 3, .min = 0, \
		.max = 255, .colour = true \
	}

/* The standard deviation of levels; None: uniform from 0 to the level. */
#define TSI_TIMM_ARG_STD(default) \
	{ \
		.name = "mstd", .kind = TSI_ARG_NUMBER, .value = default, \
		.min = 0, .max = 1e6, .none = true \
	}

/* Draw for an operation that is done, around this level. */
void tsi_timm_draw(const struct tsi_timm_levels *l, enum tsi_timm_op chosen,
		   enum tsi_timm_way way, double level, struct tsi_words *w,
		   double *draws);

/* Do what was drawn.  Fails with TSOCK_ENOMEM. */
int tsi_timm_apply(const double *draws, const uint8_t *fill,
		   struct tsi_canvas *c);

#endif
