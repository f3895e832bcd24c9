/* SPDX-License-Identifier: MIT */
/*
 * blur_taps.c - torchvision's Gaussian blur: rows are filtered along x as float
 * numbers, and those that an output row reaches over are kept for y.
 */
#include "ops/blur.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Numbers behind a row that a kernel may read and write. */
#define SLACK 64

/* The middle tap, and those on either side of it. */
struct taps {
	uint32_t radius;
	float tap[TSI_WARP_REACH];
};

/*
 * As transforms.functional makes them: float numbers, of which the exponential
 * function is rounded once here.
 */
static void make_taps(struct taps *t, uint32_t size, double sigma)
{
	double sum = 0;

	t->radius = size / 2;
	for (uint32_t i = 0; i <= t->radius; i++) {
		float x = (float)i / (float)sigma;

		t->tap[i] = (float)exp(-0.5F * (x * x));
		sum += (i ? 2 : 1) * (double)t->tap[i];
	}
	for (uint32_t i = 0; i <= t->radius; i++)
		t->tap[i] /= (float)sum;
}

/* Place i of n, mirrored at the first and the last until it is inside. */
static uint32_t mirrored(int64_t i, uint32_t n)
{
	int64_t period = 2 * ((int64_t)n - 1);

	if (n == 1)
		return 0;
	i %= period;
	if (i < 0)
		i += period;
	return (uint32_t)(i < n ? i : period - i);
}

struct blur {
	const struct tsi_canvas *c;
	struct taps x;
	struct taps y;
	uint32_t kept; /* rows in `rows` */
	size_t stride; /* numbers from one of them to the next */
	float *rows;   /* row y is at y % kept */
	float *padded; /* a row, and radius pixels on either side */
	const float *near[2 * TSI_WARP_REACH];
};

/* Row y along x, which is kept. */
static void filter_row(const struct blur *b, uint32_t y)
{
	const struct tsi_canvas *c = b->c;
	size_t n = tsi_canvas_row(c), step = c->channels;
	float *first = b->padded + b->x.radius * step;
	int64_t radius = b->x.radius;

	c->warp.floats(c->pixels + y * n, n, first);
	for (int64_t i = 1; i <= radius; i++) {
		const float *left = first + mirrored(-i, c->width) * step;
		const float *right =
			first + mirrored(c->width - 1 + i, c->width) * step;

		for (size_t k = 0; k < step; k++) {
			*(first - (size_t)i * step + k) = left[k];
			first[n + (size_t)(i - 1) * step + k] = right[k];
		}
	}
	c->warp.across(first, step, b->x.tap, b->x.radius,
		       b->rows + (y % b->kept) * b->stride, n);
}

static void filter(struct blur *b, uint8_t *dst)
{
	const struct tsi_canvas *c = b->c;
	size_t n = tsi_canvas_row(c);
	int64_t radius = b->y.radius;
	uint32_t done = 0;

	for (uint32_t y = 0; y < c->height; y++, dst += n) {
		uint64_t end = (uint64_t)y + b->y.radius + 1;

		for (; done < end && done < c->height; done++)
			filter_row(b, done);
		for (int64_t i = -radius; i <= radius; i++)
			b->near[radius + i] =
				b->rows +
				(mirrored(y + i, c->height) % b->kept) *
					b->stride;
		c->warp.down(b->near + radius, b->y.tap, b->y.radius, dst, n);
	}
}

int tsi_blur_torchvision(struct tsi_canvas *c, uint32_t size_x, uint32_t size_y,
			 double sigma_x, double sigma_y)
{
	struct blur b = { .c = c };
	size_t n = tsi_canvas_row(c), padded;
	uint8_t *dst;
	int err;

	make_taps(&b.x, size_x, sigma_x);
	make_taps(&b.y, size_y, sigma_y);
	b.kept = size_y < c->height ? size_y : c->height;
	b.stride = (n + 31) / 32 * 32;
	padded = n + (size_t)2 * b.x.radius * c->channels;
	err = tsi_scratch_grow(
		&c->room, (b.kept * b.stride + padded + SLACK) * sizeof(float),
		"a blur");
	if (!err)
		err = tsi_canvas_other(c, c->width, c->height, c->channels,
				       &dst);
	if (err)
		return err;
	b.rows = (float *)(void *)c->room.p;
	b.padded = b.rows + b.kept * b.stride;
	/* Behind a row, too, there are numbers that are quick to add. */
	memset(b.padded + padded, 0, SLACK * sizeof(float));
	filter(&b, dst);
	tsi_canvas_turn(c, c->width, c->height, c->channels);
	return 0;
}
