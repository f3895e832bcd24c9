/* SPDX-License-Identifier: MIT */
/*
 * warps.h - arguments of operations that turn, shear and move a picture.
 */
#ifndef TSI_TRANSFORMS_WARPS_H
#define TSI_TRANSFORMS_WARPS_H

#include "ops/warp.h"
#include "transforms/op.h"

/* How Image.transform resamples: nearest, bilinear or bicubic. */
#define TSI_ARG_WARP_FILTER(default) \
	{ \
		.name = "interpolation", .kind = TSI_ARG_FILTER, \
		.value = default \
	}

/* x and y, in pixels from the top left corner; None is the middle. */
#define TSI_ARG_CENTER \
	{ \
		.name = "center", .kind = TSI_ARG_NUMBER, .value = "None", \
		.least = 2, .most = 2, .min = -1e6, .max = 1e6, .none = true \
	}

/* The filter argument is one of the three. */
bool tsi_warps_filter(const struct tsi_arg_value *v, const char **why);

/* One number n, at least 0, becomes (-n, n); of two the first is the less. */
bool tsi_warps_range(struct tsi_arg_value *v, const char **why);

/* torch's uniform_() of float32 between numbers first and first + 1. */
double tsi_warps_draw(struct tsi_words *w, const struct tsi_arg_value *v,
		      unsigned first);

#endif
