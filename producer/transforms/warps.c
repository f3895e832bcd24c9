/* SPDX-License-Identifier: MIT */
/*
 * warps.c - arguments of operations that turn, shear and move a picture.
 */
#include "transforms/warps.h"

bool tsi_warps_filter(const struct tsi_arg_value *v, const char **why)
{
	enum tsi_filter f = (enum tsi_filter)v->v[0];

	if (f == TSI_FILTER_NEAREST || f == TSI_FILTER_BILINEAR ||
	    f == TSI_FILTER_BICUBIC)
		return true;
	*why = "interpolation is nearest, bilinear or bicubic";
	return false;
}

bool tsi_warps_range(struct tsi_arg_value *v, const char **why)
{
	if (v->n == 1 && v->v[0] >= 0) {
		v->v[1] = v->v[0];
		v->v[0] = -v->v[0];
		v->n = 2;
	}
	if (v->n >= 2 && v->v[0] <= v->v[1])
		return true;
	*why = "a range is a number from 0 on, or (least, most)";
	return false;
}

double tsi_warps_draw(struct tsi_words *w, const struct tsi_arg_value *v,
		      unsigned first)
{
	return (double)tsi_words_uniform(w, (float)v->v[first],
					 (float)v->v[first + 1]);
}
