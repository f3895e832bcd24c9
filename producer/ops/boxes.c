/* SPDX-License-Identifier: MIT */
/*
 * boxes.c - bounding boxes, moved.
 *
 * Formulas: torchvision/transforms/v2/functional/_geometry.py
 * (crop_bounding_boxes, resize_bounding_boxes, _affine_bounding_boxes_with_expand,
 * perspective_bounding_boxes) and _meta.py.  Compiled without fused sums.
 */
#include "ops/boxes.h"

#include <math.h>

static float clamp(float v, uint32_t most)
{
	/* Not a number stays that, as in torch. */
	if (v < 0)
		return 0;
	return v > (float)most ? (float)most : v;
}

void tsi_boxes_clamp(struct tsi_boxes *b)
{
	for (uint32_t i = 0; i < b->n; i++)
		for (unsigned k = 0; k < 4; k++)
			b->box[i][k] = clamp(b->box[i][k],
					     k % 2 ? b->height : b->width);
}

bool tsi_boxes_keeps(const struct tsi_boxes *b, const tsi_boxes_edges box)
{
	const float width = box[2] - box[0], height = box[3] - box[1];

	for (unsigned k = 0; k < 4; k++)
		if (!(box[k] >= 0 &&
		      box[k] <= (float)(k % 2 ? b->height : b->width)))
			return false;
	return width >= 1 && height >= 1 && width * height >= 1;
}

/* The part of this size that begins at left, top is the picture. */
static void crop(struct tsi_boxes *b, int64_t left, int64_t top, uint32_t width,
		 uint32_t height)
{
	for (uint32_t i = 0; i < b->n; i++)
		for (unsigned k = 0; k < 4; k++)
			b->box[i][k] -= (float)(k % 2 ? top : left);
	b->width = width;
	b->height = height;
	tsi_boxes_clamp(b);
}

static void resize(struct tsi_boxes *b, uint32_t width, uint32_t height)
{
	const float x = (float)((double)width / b->width);
	const float y = (float)((double)height / b->height);

	for (uint32_t i = 0; i < b->n; i++)
		for (unsigned k = 0; k < 4; k++)
			b->box[i][k] *= k % 2 ? y : x;
	b->width = width;
	b->height = height;
}

/* Edges k and k + 2 change sides in a picture whose edge is this long. */
static void mirror(struct tsi_boxes *b, unsigned k, uint32_t edge)
{
	for (uint32_t i = 0; i < b->n; i++) {
		float first = b->box[i][k];

		b->box[i][k] = -(b->box[i][k + 2] - (float)edge);
		b->box[i][k + 2] = -(first - (float)edge);
	}
}

static bool is_whole(const struct tsi_rect *r, uint32_t width, uint32_t height)
{
	return !r->left && !r->top && r->width == width && r->height == height;
}

void tsi_boxes_frame(struct tsi_boxes *b, const struct tsi_framing *g)
{
	if (!is_whole(&g->part, b->width, b->height))
		crop(b, g->part.left, g->part.top, g->part.width,
		     g->part.height);
	if (g->to_width != b->width || g->to_height != b->height)
		resize(b, g->to_width, g->to_height);
	if (g->left || g->top || g->width != b->width || g->height != b->height)
		crop(b, g->left, g->top, g->width, g->height);
	if (g->mirror_x)
		mirror(b, 0, b->width);
	if (g->mirror_y)
		mirror(b, 1, b->height);
}

void tsi_boxes_pad(struct tsi_boxes *b, const struct tsi_pad_border *p)
{
	crop(b, -p->left, -p->top, (uint32_t)(b->width + p->left + p->right),
	     (uint32_t)(b->height + p->top + p->bottom));
}

/* A point's place after a warp. */
struct place {
	const float *x; /* three numbers of a row each */
	const float *y;
	const float *by; /* NULL: nothing is divided */
};

static float sum(const float f[3], float x, float y)
{
	return (f[0] * x + f[1] * y) + f[2];
}

/* What encloses the four corners, where they are now. */
static void warp_box(tsi_boxes_edges box, const struct place *p)
{
	tsi_boxes_edges to = { INFINITY, INFINITY, -INFINITY, -INFINITY };

	for (unsigned k = 0; k < 4; k++) {
		const float x = box[k % 3 ? 2 : 0], y = box[k / 2 ? 3 : 1];
		const float by = p->by ? sum(p->by, x, y) : 1;
		const float at[2] = { sum(p->x, x, y) / by,
				      sum(p->y, x, y) / by };

		for (unsigned j = 0; j < 2; j++) {
			/* Not a number stays that. */
			to[j] = at[j] >= to[j] ? to[j] : at[j];
			to[j + 2] = at[j] <= to[j + 2] ? to[j + 2] : at[j];
		}
	}
	for (unsigned k = 0; k < 4; k++)
		box[k] = to[k];
}

static void warp(struct tsi_boxes *b, const struct place *p)
{
	for (uint32_t i = 0; i < b->n; i++)
		warp_box(b->box[i], p);
	tsi_boxes_clamp(b);
}

static double radians(double degrees)
{
	return degrees * (M_PI / 180.0);
}

/* Where points go: _get_inverse_affine_matrix() with inverted=False. */
void tsi_boxes_affine(struct tsi_boxes *b, const struct tsi_warp_affinity *a,
		      const double *centre)
{
	const double cx = centre ? centre[0] : b->width * 0.5;
	const double cy = centre ? centre[1] : b->height * 0.5;
	const double rot = radians(a->degrees);
	const double sx = radians(a->shear[0]), sy = radians(a->shear[1]);
	const double cos_sy = cos(sy), tan_sx = tan(sx);
	const double p = cos(rot - sy) / cos_sy;
	const double q = -(p * tan_sx + sin(rot));
	const double r = sin(rot - sy) / cos_sy;
	const double s = cos(rot) - r * tan_sx;
	const double m[4] = { p * a->scale, q * a->scale, r * a->scale,
			      s * a->scale };
	const float x[3] = { (float)m[0], (float)m[1],
			     (float)(cx + a->translate[0] - m[0] * cx -
				     m[1] * cy) };
	const float y[3] = { (float)m[2], (float)m[3],
			     (float)(cy + a->translate[1] - m[2] * cx -
				     m[3] * cy) };

	warp(b, &(struct place){ .x = x, .y = y });
}

void tsi_boxes_rotate(struct tsi_boxes *b, double degrees, const double *centre)
{
	const struct tsi_warp_affinity a = { .degrees = -degrees, .scale = 1 };

	tsi_boxes_affine(b, &a, centre);
}

/* The map leads from the new picture to the old one; points go back. */
void tsi_boxes_perspective(struct tsi_boxes *b, const double m[8])
{
	const double d = m[0] * m[4] - m[1] * m[3];
	const float x[3] = { (float)((m[4] - m[5] * m[7]) / d),
			     (float)((-m[1] + m[2] * m[7]) / d),
			     (float)((m[1] * m[5] - m[2] * m[4]) / d) };
	const float y[3] = { (float)((-m[3] + m[5] * m[6]) / d),
			     (float)((m[0] - m[2] * m[6]) / d),
			     (float)((-m[0] * m[5] + m[2] * m[3]) / d) };
	const float by[3] = { (float)((-m[4] * m[6] + m[3] * m[7]) / d),
			      (float)((-m[0] * m[7] + m[1] * m[6]) / d), 1 };

	warp(b, &(struct place){ .x = x, .y = y, .by = by });
}
