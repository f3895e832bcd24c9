/* SPDX-License-Identifier: MIT */
/*
 * mask_warp.c - the nearest pixel, as torch's grid_sample() finds it.
 *
 * Formulas: torchvision/transforms/v2/functional/_geometry.py
 * (_get_inverse_affine_matrix, _affine_grid, _perspective_grid) and torch's
 * grid_sampler with align_corners=False.  Compiled without fused sums.
 */
#include "ops/mask_warp.h"

#include <math.h>
#include <stddef.h>

/* A place: x and y by the row's and the column's, from -1 to 1 in the mask. */
struct grid {
	float x[3];
	float y[3];
	float by[3];   /* of a perspective: both are divided by this, */
	bool divided;  /* and the middle is 1 */
	float first_x; /* the place of the first column and row; the next ones */
	float first_y; /* are 1 further */
};

static float sum(const float f[3], float x, float y)
{
	return (f[0] * x + f[1] * y) + f[2];
}

static float unit(const struct grid *g, const float f[3], float x, float y)
{
	return g->divided ? sum(f, x, y) / sum(g->by, x, y) - 1.0F
			  : sum(f, x, y);
}

/* The pixel of `edge` ones that a place lies in; false: none of them. */
static bool pixel_at(float place, uint32_t edge, uint32_t *at)
{
	float p = rintf((place + 1.0F) * ((float)edge / 2.0F) - 0.5F);

	if (!(p >= 0 && p < (float)edge))
		return false;
	*at = (uint32_t)p;
	return true;
}

static void sample(const struct tsi_mask *m, const struct grid *g, uint8_t fill,
		   uint8_t *to)
{
	for (uint32_t j = 0; j < m->height; j++) {
		float y = g->first_y + (float)j;

		for (uint32_t i = 0; i < m->width; i++) {
			float x = g->first_x + (float)i;
			uint32_t from_x, from_y;
			bool inside = pixel_at(unit(g, g->x, x, y), m->width,
					       &from_x) &&
				      pixel_at(unit(g, g->y, x, y), m->height,
					       &from_y);

			*to++ = inside ? m->from[from_y * m->stride + from_x]
				       : fill;
		}
	}
}

static int warp(struct tsi_mask *m, const struct grid *g, uint8_t fill)
{
	uint8_t *to;
	int err = tsi_mask_settle(m, &to);

	if (err)
		return err;
	sample(m, g, fill, to);
	return tsi_mask_begin(m, to, m->width, m->width, m->height);
}

static double radians(double degrees)
{
	return degrees * (M_PI / 180.0);
}

/* v2's _get_inverse_affine_matrix(): in another order than v1's. */
static void invert(const struct tsi_warp_affinity *a, double cx, double cy,
		   double m[6])
{
	const double rot = radians(a->degrees);
	const double sx = radians(a->shear[0]), sy = radians(a->shear[1]);
	const double right = cx + a->translate[0], down = cy + a->translate[1];
	const double cos_sy = cos(sy), tan_sx = tan(sx);
	const double p = cos(rot - sy) / cos_sy;
	const double q = -(p * tan_sx + sin(rot));
	const double r = sin(rot - sy) / cos_sy;
	const double s = cos(rot) - r * tan_sx;

	m[0] = s / a->scale;
	m[1] = -q / a->scale;
	m[3] = -r / a->scale;
	m[4] = p / a->scale;
	m[2] = cx - m[0] * right - m[1] * down;
	m[5] = cy - m[3] * right - m[4] * down;
}

/* Three numbers of a map, for places from -1 to 1. */
static void scale_row(const double *from, uint32_t edge, float *to)
{
	for (unsigned k = 0; k < 3; k++)
		to[k] = (float)from[k] / (float)(0.5 * edge);
}

int tsi_mask_affine(struct tsi_mask *m, const struct tsi_warp_affinity *a,
		    const double *centre, uint8_t fill)
{
	struct grid g = {
		.first_x = (float)((1.0 - m->width) * 0.5),
		.first_y = (float)((1.0 - m->height) * 0.5),
	};
	double map[6];

	/* Seen from the middle. */
	invert(a, centre ? centre[0] - m->width * 0.5 : 0,
	       centre ? centre[1] - m->height * 0.5 : 0, map);
	scale_row(map, m->width, g.x);
	scale_row(map + 3, m->height, g.y);
	return warp(m, &g, fill);
}

int tsi_mask_rotate(struct tsi_mask *m, double degrees, const double *centre,
		    uint8_t fill)
{
	struct tsi_warp_affinity a = { .scale = 1 };

	degrees = fmod(degrees, 360);
	if (degrees < 0)
		degrees += 360;
	if (!centre && degrees == 0)
		return 0;
	if (!centre && degrees == 180)
		return tsi_mask_turn(m);
	a.degrees = -degrees;
	return tsi_mask_affine(m, &a, centre, fill);
}

int tsi_mask_perspective(struct tsi_mask *m, const double map[8], uint8_t fill)
{
	struct grid g = {
		.by = { (float)map[6], (float)map[7], 1 },
		.divided = true,
		.first_x = 0.5F,
		.first_y = 0.5F,
	};

	scale_row(map, m->width, g.x);
	scale_row(map + 3, m->height, g.y);
	return warp(m, &g, fill);
}
