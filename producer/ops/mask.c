/* SPDX-License-Identifier: MIT */
/*
 * mask.c - columns and rows of a mask, and where they come from.
 */
#include "ops/mask.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

static int32_t *places_of(const struct tsi_scratch *s)
{
	return (int32_t *)(void *)s->p;
}

static int grow(struct tsi_scratch *s, uint32_t n)
{
	return tsi_scratch_grow(s, (size_t)n * sizeof(int32_t),
				"the geometry of a mask");
}

/* What was worked out in m->other is the axis from now on. */
static void turn(struct tsi_mask *m, struct tsi_scratch *axis)
{
	struct tsi_scratch before = *axis;

	*axis = m->other;
	m->other = before;
}

static int begin_axis(struct tsi_scratch *s, uint32_t n)
{
	int err = grow(s, n);

	for (uint32_t i = 0; i < n && !err; i++)
		places_of(s)[i] = (int32_t)i;
	return err;
}

int tsi_mask_begin(struct tsi_mask *m, const uint8_t *from, size_t stride,
		   uint32_t width, uint32_t height)
{
	int err = begin_axis(&m->x, width);

	if (!err)
		err = begin_axis(&m->y, height);
	m->from = from;
	m->stride = stride;
	m->width = width;
	m->height = height;
	m->fills = 0;
	return err;
}

/*
 * The number of a new step's fill.  A recipe has fewer steps than there is room
 * for; the last place is taken again rather than one that isn't there.
 */
static int32_t add_fill(struct tsi_mask *m, uint8_t fill)
{
	if (m->fills == TSI_MASK_FILLS)
		m->fills--;
	m->fill[m->fills] = fill;
	return -1 - (int32_t)m->fills++;
}

/* One axis of a framing. */
struct window {
	uint32_t part; /* where the part begins, and its size, */
	uint32_t len;
	uint32_t to;  /* which is resized to this one */
	int32_t from; /* where the window begins in there */
	uint32_t n;
	bool mirror;
};

/* The place in the part of place `at` of what it is resized to. */
static uint32_t nearest(const struct window *w, int64_t at)
{
	/* In single precision, as torch does. */
	const float scale = (float)w->len / (float)w->to;
	const float place = floorf((float)at * scale);
	const uint32_t last = w->len - 1;

	return place < (float)last ? (uint32_t)place : last;
}

static int frame_axis(struct tsi_mask *m, struct tsi_scratch *axis,
		      const struct window *w, int32_t outside)
{
	int err = grow(&m->other, w->n);
	const int32_t *from = places_of(axis);

	if (err)
		return err;
	for (uint32_t i = 0; i < w->n; i++) {
		int64_t at = (int64_t)w->from + (w->mirror ? w->n - 1 - i : i);
		int32_t *to = &places_of(&m->other)[i];

		if (at < 0 || at >= w->to)
			*to = outside;
		else
			*to = from[w->part + (w->to == w->len
						      ? (uint32_t)at
						      : nearest(w, at))];
	}
	turn(m, axis);
	return 0;
}

int tsi_mask_frame(struct tsi_mask *m, const struct tsi_framing *g,
		   uint8_t fill)
{
	const struct window x = { g->part.left, g->part.width, g->to_width,
				  g->left,      g->width,      g->mirror_x };
	const struct window y = { g->part.top, g->part.height, g->to_height,
				  g->top,      g->height,      g->mirror_y };
	const int32_t outside = add_fill(m, fill);
	int err = frame_axis(m, &m->x, &x, outside);

	if (!err)
		err = frame_axis(m, &m->y, &y, outside);
	m->width = g->width;
	m->height = g->height;
	return err;
}

static int pad_axis(struct tsi_mask *m, struct tsi_scratch *axis,
		    const struct tsi_pad_axis *a, int32_t outside)
{
	int err = grow(&m->other, (uint32_t)a->out);

	if (err)
		return err;
	for (int64_t i = 0; i < a->out; i++) {
		int64_t at = tsi_pad_place(a, i);

		places_of(&m->other)[i] =
			at < 0 ? outside : places_of(axis)[at];
	}
	turn(m, axis);
	return 0;
}

int tsi_mask_pad(struct tsi_mask *m, const struct tsi_pad_border *b,
		 enum tsi_pad_mode mode, uint8_t fill)
{
	struct tsi_pad_axis x, y;
	int err = tsi_pad_axes(m->width, m->height, b, mode, &x, &y);
	const int32_t outside = add_fill(m, fill);

	if (!err)
		err = pad_axis(m, &m->x, &x, outside);
	if (!err)
		err = pad_axis(m, &m->y, &y, outside);
	if (err)
		return err;
	m->width = (uint32_t)x.out;
	m->height = (uint32_t)y.out;
	return 0;
}

/* The number of a place outside; where x and y are, the later step's. */
static uint8_t number_of(const struct tsi_mask *m, int32_t x, int32_t y)
{
	return m->fill[-1 - (x < y ? x : y)];
}

/* A row whose place is y. */
static void fetch_row(const struct tsi_mask *m, int32_t y, uint8_t *to)
{
	const int32_t *x = places_of(&m->x);
	const uint8_t *row = y < 0 ? NULL : m->from + (size_t)y * m->stride;
	uint32_t i = 0;

	while (i < m->width) {
		for (; row && i < m->width && x[i] >= 0; i++)
			to[i] = row[x[i]];
		for (; i < m->width && (!row || x[i] < 0); i++)
			to[i] = number_of(m, x[i], y);
	}
}

void tsi_mask_fetch(const struct tsi_mask *m, uint8_t *to)
{
	const int32_t *y = places_of(&m->y);

	for (uint32_t j = 0; j < m->height; j++, to += m->width)
		if (j > 0 && y[j] == y[j - 1])
			memcpy(to, to - m->width, m->width);
		else
			fetch_row(m, y[j], to);
}

int tsi_mask_turn(struct tsi_mask *m)
{
	struct tsi_framing g = tsi_framing_of(m->width, m->height);

	tsi_framing_flip(&g, true, true);
	return tsi_mask_frame(m, &g, 0);
}

int tsi_mask_settle(struct tsi_mask *m, uint8_t **to)
{
	const size_t bytes = (size_t)m->width * m->height;
	/* The source may be in the second one, and isn't in the first. */
	int err = tsi_scratch_grow(&m->picture[0], bytes, "a mask");

	if (err)
		return err;
	tsi_mask_fetch(m, m->picture[0].p);
	err = tsi_scratch_grow(&m->picture[1], bytes, "a mask");
	if (err)
		return err;
	*to = m->picture[1].p;
	return tsi_mask_begin(m, m->picture[0].p, m->width, m->width,
			      m->height);
}

uint64_t tsi_mask_need(uint32_t width, uint32_t height)
{
	return 2 * tsi_scratch_need((uint64_t)width * height) +
	       2 * sizeof(int32_t) * ((uint64_t)width + height);
}

void tsi_mask_trim(struct tsi_mask *m)
{
	tsi_scratch_trim(&m->picture[0]);
	tsi_scratch_trim(&m->picture[1]);
	tsi_scratch_trim(&m->x);
	tsi_scratch_trim(&m->y);
	tsi_scratch_trim(&m->other);
}

void tsi_mask_fini(struct tsi_mask *m)
{
	tsi_scratch_fini(&m->picture[0]);
	tsi_scratch_fini(&m->picture[1]);
	tsi_scratch_fini(&m->x);
	tsi_scratch_fini(&m->y);
	tsi_scratch_fini(&m->other);
}
