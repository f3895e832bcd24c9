/* SPDX-License-Identifier: MIT */
/*
 * warp_map.c - the maps of operations, in double, in the order of the packages'
 * own arithmetic.
 */
#include "ops/warp_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* As Python's math.radians() and math.degrees(). */
static double radians(double degrees)
{
	return degrees * (M_PI / 180.0);
}

static double degrees_of(double angle)
{
	return angle * (180.0 / M_PI);
}

/* Python's round(v, 15), which rounds the decimal number. */
static double round15(double v)
{
	char text[64];

	snprintf(text, sizeof(text), "%.15f", v);
	return strtod(text, NULL);
}

static double map_x(const double m[6], double x, double y)
{
	return m[0] * x + m[1] * y + m[2];
}

static double map_y(const double m[6], double x, double y)
{
	return m[3] * x + m[4] * y + m[5];
}

/* The place that the point is mapped to becomes the map's translation. */
static void move_by(double m[6], double x, double y)
{
	double to_x = map_x(m, x, y), to_y = map_y(m, x, y);

	m[2] = to_x;
	m[5] = to_y;
}

/* Grow to what the corners of the old picture are mapped to. */
static void grow(double m[6], uint32_t *width, uint32_t *height)
{
	double w = *width, h = *height;
	const double corner[4][2] = { { 0, 0 }, { w, 0 }, { w, h }, { 0, h } };
	double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
	double new_w, new_h;

	for (int i = 0; i < 4; i++) {
		double x = map_x(m, corner[i][0], corner[i][1]);
		double y = map_y(m, corner[i][0], corner[i][1]);

		x0 = fmin(x0, x);
		x1 = fmax(x1, x);
		y0 = fmin(y0, y);
		y1 = fmax(y1, y);
	}
	new_w = ceil(x1) - floor(x0);
	new_h = ceil(y1) - floor(y0);
	move_by(m, -(new_w - w) / 2.0, -(new_h - h) / 2.0);
	*width = (uint32_t)new_w;
	*height = (uint32_t)new_h;
}

void tsi_warp_map_rotation(double degrees, const double *centre, bool expand,
			   uint32_t *width, uint32_t *height, double m[6])
{
	double angle = -radians(degrees);
	double cx = centre ? centre[0] : *width / 2.0;
	double cy = centre ? centre[1] : *height / 2.0;

	m[0] = round15(cos(angle));
	m[1] = round15(sin(angle));
	m[2] = 0;
	m[3] = round15(-sin(angle));
	m[4] = m[0];
	m[5] = 0;
	move_by(m, -cx, -cy);
	m[2] += cx;
	m[5] += cy;
	if (expand)
		grow(m, width, height);
}

void tsi_warp_map_affine(const struct tsi_warp_affinity *p, double m[6])
{
	double rot = radians(p->degrees);
	double sx = radians(p->shear[0]), sy = radians(p->shear[1]);
	double cx = p->centre[0], cy = p->centre[1];
	double tx = p->translate[0], ty = p->translate[1];
	double a = cos(rot - sy) / cos(sy);
	double b = -cos(rot - sy) * tan(sx) / cos(sy) - sin(rot);
	double c = sin(rot - sy) / cos(sy);
	double d = -sin(rot - sy) * tan(sx) / cos(sy) + cos(rot);

	m[0] = d / p->scale;
	m[1] = -b / p->scale;
	m[2] = 0;
	m[3] = -c / p->scale;
	m[4] = a / p->scale;
	m[5] = 0;
	m[2] += m[0] * (-cx - tx) + m[1] * (-cy - ty);
	m[5] += m[3] * (-cx - tx) + m[4] * (-cy - ty);
	m[2] += cx;
	m[5] += cy;
}

void tsi_warp_map_shear_x(double magnitude, double m[6])
{
	struct tsi_warp_affinity a = {
		.scale = 1, .shear = { degrees_of(atan(magnitude)), 0 }
	};

	tsi_warp_map_affine(&a, m);
}

void tsi_warp_map_shear_y(double magnitude, double m[6])
{
	struct tsi_warp_affinity a = {
		.scale = 1, .shear = { 0, degrees_of(atan(magnitude)) }
	};

	tsi_warp_map_affine(&a, m);
}

void tsi_warp_map_translate(uint32_t width, uint32_t height, double x, double y,
			    double m[6])
{
	struct tsi_warp_affinity a = {
		.scale = 1,
		.translate = { trunc(x), trunc(y) },
		.centre = { width * 0.5, height * 0.5 },
	};

	tsi_warp_map_affine(&a, m);
}

void tsi_warp_map_plain_shear(double x, double y, double m[6])
{
	m[0] = 1;
	m[1] = x;
	m[2] = 0;
	m[3] = y;
	m[4] = 1;
	m[5] = 0;
}

void tsi_warp_map_plain_translate(double x, double y, double m[6])
{
	m[0] = 1;
	m[1] = 0;
	m[2] = x;
	m[3] = 0;
	m[4] = 1;
	m[5] = y;
}

/* Eight equations, and behind each its right side. */
struct equations {
	double a[8][9];
};

static void swap_rows(struct equations *e, int i, int k)
{
	for (int j = 0; j < 9; j++) {
		double v = e->a[i][j];

		e->a[i][j] = e->a[k][j];
		e->a[k][j] = v;
	}
}

/* The largest number of column i goes to row i; 0 is none. */
static bool choose_pivot(struct equations *e, int i)
{
	int best = i;

	for (int k = i + 1; k < 8; k++)
		if (fabs(e->a[k][i]) > fabs(e->a[best][i]))
			best = k;
	swap_rows(e, i, best);
	return fabs(e->a[i][i]) > 1e-9;
}

static bool solve(struct equations *e, double out[8])
{
	for (int i = 0; i < 8; i++) {
		if (!choose_pivot(e, i))
			return false;
		for (int k = i + 1; k < 8; k++) {
			double f = e->a[k][i] / e->a[i][i];

			for (int j = i; j < 9; j++)
				e->a[k][j] -= f * e->a[i][j];
		}
	}
	for (int i = 7; i >= 0; i--) {
		double v = e->a[i][8];

		for (int j = i + 1; j < 8; j++)
			v -= e->a[i][j] * out[j];
		out[i] = v / e->a[i][i];
	}
	return true;
}

bool tsi_warp_map_perspective(const tsi_warp_point start[4],
			      const tsi_warp_point end[4], double m[8])
{
	struct equations e = { 0 };

	for (int i = 0; i < 4; i++) {
		double u = end[i][0], v = end[i][1];

		for (int k = 0; k < 2; k++) {
			double *row = e.a[2 * i + k];
			double to = start[i][k];

			row[3 * k] = u;
			row[3 * k + 1] = v;
			row[3 * k + 2] = 1;
			row[6] = -to * u;
			row[7] = -to * v;
			row[8] = to;
		}
	}
	if (!solve(&e, m))
		return false;
	for (int i = 0; i < 8; i++)
		m[i] = (float)m[i];
	return true;
}
