/* SPDX-License-Identifier: MIT */
/*
 * pixels.c - which blocks are transformed, which rows are held, and how
 * samples become pixels; a kernel does the arithmetic.
 *
 * Each component has a window of sample rows: those of the last row of MCUs,
 * and the one above them.  A row of pixels reaches from its own chroma row to
 * the next one above or below, so it may have to wait for one more row of MCUs.
 */
#include "jpeg/pixels.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "jpeg/kernel.h"
#include "pixel/scratch.h"

/* How a component's samples become as many as there are pixels. */
enum way {
	FULL = 0,
	H2V1, /* twice as many in a row */
	H1V2, /* twice as many rows */
	H2V2,
	/* Repeated: libjpeg does so, too, where two or fewer are in a row. */
	H2V1_BOX,
	H1V2_BOX,
	H2V2_BOX,
};

/* The samples of a component; columns and rows are the component's. */
struct window {
	enum way way;
	uint32_t edge;  /* samples of a block's: 8, 4, 2 or 1 */
	uint32_t width; /* of the image */
	uint32_t height;
	uint32_t from; /* columns needed: [from, to) */
	uint32_t to;
	uint32_t top; /* rows needed: [top, bottom) */
	uint32_t bottom;
	uint32_t left; /* first column held, that of a block */
	uint32_t base; /* first row of the last row of MCUs */
	uint8_t *row;  /* that of base, at column left */
	size_t stride;
};

struct tsi_jpeg_pixels {
	struct tsi_jpeg_kernel kernel;
	struct tsi_jpeg_frame frame;
	struct tsi_rect rect;
	struct tsi_jpeg_area area;
	uint32_t edge; /* pixels of the smallest block's */
	struct window window[TSI_JPEG_COMPS];
	bool waits;     /* a row of pixels may need the next row of MCUs */
	uint32_t next;  /* the next row of MCUs */
	uint32_t ready; /* rows of pixels that can be made: [done, ready) */
	uint32_t done;
	uint32_t first; /* column of the first pixel made, an even one */
	uint8_t *up[TSI_JPEG_COMPS];
	uint32_t repeated[TSI_JPEG_COMPS]; /* the row of samples in there */
	uint8_t *strip;
	size_t stride; /* of its rows */
	size_t plane;  /* of its rows, or 0 */
	struct tsi_scratch memory;
};

static uint32_t divide_up(uint32_t a, uint32_t b)
{
	return (uint32_t)(((uint64_t)a + b - 1) / b);
}

static size_t round_up(size_t n)
{
	return (n + 63) / 64 * 64;
}

static bool is_wide(enum way way)
{
	return way == H2V1 || way == H2V1_BOX || way == H2V2 || way == H2V2_BOX;
}

static bool is_high(enum way way)
{
	return way == H1V2 || way == H1V2_BOX || way == H2V2 || way == H2V2_BOX;
}

static bool is_fancy(enum way way)
{
	return way == H2V1 || way == H1V2 || way == H2V2;
}

static enum way way_of(const struct tsi_jpeg_frame *f, unsigned k, bool fast)
{
	const struct tsi_jpeg_comp *c = &f->comp[k];
	bool box = fast || divide_up(f->width * c->h, f->h_max) <= 2;

	if (c->h == f->h_max && c->v == f->v_max)
		return FULL;
	if (c->h == f->h_max)
		return fast ? H1V2_BOX : H1V2;
	if (c->v == f->v_max)
		return box ? H2V1_BOX : H2V1;
	return box ? H2V2_BOX : H2V2;
}

/* Samples on the edge of the smallest block. */
static uint32_t edge_of(unsigned fast)
{
	return fast ? 8 / fast : 8;
}

/* Samples [*from, *to) of n, which the pixels [from, to) depend on. */
static void reach(bool doubled, bool fancy, uint32_t n, uint32_t from,
		  uint32_t to, uint32_t *first, uint32_t *end)
{
	if (!doubled || !fancy) {
		*first = doubled ? from / 2 : from;
		*end = doubled ? (to + 1) / 2 : to;
		return;
	}
	*first = from ? (from - 1) / 2 : 0;
	*end = to / 2 + 1 < n ? to / 2 + 1 : n;
}

static void plan(const struct tsi_jpeg_frame *f, const struct tsi_rect *r,
		 unsigned fast, unsigned k, struct window *p)
{
	const struct tsi_jpeg_comp *c = &f->comp[k];
	const bool fancy = !fast;

	p->way = way_of(f, k, fast);
	p->edge = edge_of(fast);
	/* As libjpeg has it: rather a larger transform than upsampling. */
	if (fast > 1 && p->way == H2V2_BOX) {
		p->way = FULL;
		p->edge *= 2;
	}
	p->width = divide_up(f->width * c->h * p->edge, 8 * f->h_max);
	p->height = divide_up(f->height * c->v * p->edge, 8 * f->v_max);
	reach(is_wide(p->way), fancy, p->width, r->left, r->left + r->width,
	      &p->from, &p->to);
	reach(is_high(p->way), fancy, p->height, r->top, r->top + r->height,
	      &p->top, &p->bottom);
	p->left = p->from / p->edge * p->edge;
}

bool tsi_jpeg_pixels_can(const struct tsi_jpeg_frame *f)
{
	if (f->comps == 1)
		return f->color == TSI_JPEG_GRAY;
	if (f->comps != 3 || f->color == TSI_JPEG_GRAY)
		return false;
	for (unsigned k = 0; k < 3; k++) {
		const struct tsi_jpeg_comp *c = &f->comp[k];

		if (c->h != f->h_max && c->h * 2 != f->h_max)
			return false;
		if (c->v != f->v_max && c->v * 2 != f->v_max)
			return false;
	}
	return true;
}

void tsi_jpeg_pixels_area(const struct tsi_jpeg_frame *f,
			  const struct tsi_rect *rect, unsigned fast,
			  struct tsi_jpeg_area *area)
{
	uint32_t left = UINT32_MAX, top = UINT32_MAX, right = 0, bottom = 0;

	for (unsigned k = 0; k < f->comps; k++) {
		uint32_t across, down;
		struct window p;

		plan(f, rect, fast, k, &p);
		across = p.edge * f->comp[k].h;
		down = p.edge * f->comp[k].v;
		if (p.from / across < left)
			left = p.from / across;
		if (p.top / down < top)
			top = p.top / down;
		if (divide_up(p.to, across) > right)
			right = divide_up(p.to, across);
		if (divide_up(p.bottom, down) > bottom)
			bottom = divide_up(p.bottom, down);
	}
	*area = (struct tsi_jpeg_area){ left, top, right - left, bottom - top };
}

/* ------------------------------------------------------------------------
 * Memory
 */

static size_t window_stride(uint32_t columns)
{
	return TSI_JPEG_SLACK + round_up(columns) + TSI_JPEG_SLACK;
}

static size_t strip_stride(uint32_t pixels)
{
	return round_up((size_t)pixels * 4 + TSI_ROW_SLACK + TSI_JPEG_SLACK);
}

static size_t strip_plane(uint32_t pixels)
{
	return round_up((size_t)pixels + TSI_PLANE_SLACK);
}

/* Bytes for a rectangle of this width. */
static size_t room(const struct tsi_jpeg_frame *f, uint32_t width)
{
	size_t whole = strip_stride(width + 1);
	size_t planes = 3 * strip_plane(width + 1);
	size_t bytes = TSI_STRIP_ROWS * (whole > planes ? whole : planes);

	for (unsigned k = 0; k < f->comps; k++) {
		/* A block more on either side, and what fancy upsampling adds.
		 */
		bytes += (8u * f->comp[k].v + 1) * window_stride(width + 24);
		bytes += window_stride(width + 2);
	}
	return bytes;
}

uint64_t tsi_jpeg_pixels_need(const struct tsi_jpeg_frame *f)
{
	return tsi_scratch_need(room(f, f->width));
}

static void lay_out_rows(struct tsi_jpeg_pixels *p, bool planes)
{
	const struct tsi_jpeg_frame *f = &p->frame;
	uint8_t *at = p->memory.p;

	p->plane = planes ? strip_plane(p->rect.width + 1) : 0;
	p->stride = planes ? 3 * p->plane : strip_stride(p->rect.width + 1);
	p->strip = at;
	at += TSI_STRIP_ROWS * p->stride;
	for (unsigned k = 0; k < f->comps; k++) {
		struct window *w = &p->window[k];

		w->stride = window_stride((w->to - w->left + 7) / 8 * 8);
		w->row = at + w->stride + TSI_JPEG_SLACK;
		p->repeated[k] = UINT32_MAX;
		at += (8u * f->comp[k].v + 1) * w->stride;
		p->up[k] = at;
		at += window_stride(p->rect.width + 2);
	}
	assert(at <= p->memory.p + p->memory.len);
}

int tsi_jpeg_pixels_begin(struct tsi_jpeg_pixels *p,
			  const struct tsi_jpeg_frame *f,
			  const struct tsi_rect *rect, unsigned fast,
			  bool planes)
{
	int err = tsi_scratch_grow(&p->memory, room(f, rect->width),
				   "JPEG samples");

	if (err)
		return err;
	p->frame = *f;
	p->rect = *rect;
	p->edge = edge_of(fast);
	p->waits = false;
	tsi_jpeg_pixels_area(f, rect, fast, &p->area);
	for (unsigned k = 0; k < f->comps; k++) {
		plan(f, rect, fast, k, &p->window[k]);
		p->waits = p->waits || p->window[k].way == H1V2 ||
			   p->window[k].way == H2V2;
	}
	p->next = p->area.top;
	p->done = rect->top;
	p->ready = rect->top;
	p->first = rect->left / 2 * 2;
	lay_out_rows(p, planes);
	return 0;
}

/* ------------------------------------------------------------------------
 * Blocks to samples
 */

/* Beyond the image its edge goes on. */
static void extend(struct window *w, uint8_t *row)
{
	if (w->left == 0)
		row[-1] = row[0];
	if (w->to == w->width)
		row[w->width - w->left] = row[w->width - w->left - 1];
}

static tsi_jpeg_idct_fn *idct_of(const struct tsi_jpeg_kernel *k, uint32_t edge)
{
	return edge == 8   ? k->idct
	       : edge == 4 ? k->idct4
	       : edge == 2 ? k->idct2
			   : k->idct1;
}

/* Row y of blocks in b is row `down` of those of this row of MCUs. */
static void transform(struct tsi_jpeg_pixels *p, unsigned k,
		      const struct tsi_jpeg_blocks *b, uint32_t y,
		      uint32_t down)
{
	const struct tsi_jpeg_comp *c = &p->frame.comp[k];
	struct window *w = &p->window[k];
	uint32_t blocks = divide_up(w->to - w->left, w->edge);
	uint8_t *row = w->row + w->edge * down * w->stride;
	size_t at = (size_t)y * b->stride[k] + w->left / w->edge -
		    b->area.left * c->h;

	idct_of(&p->kernel, w->edge)((const int16_t(*)[64])b->coef[k] + at,
				     b->last[k] + at, blocks, c->quant, row,
				     w->stride);
	if (w->way == H2V1 || w->way == H2V2)
		for (int i = 0; i < 8; i++)
			extend(w, row + (size_t)i * w->stride);
}

void tsi_jpeg_pixels_push(struct tsi_jpeg_pixels *p,
			  const struct tsi_jpeg_blocks *b, uint32_t row)
{
	uint32_t end = p->rect.top + p->rect.height;

	assert(b->area.top + row == p->next);
	for (unsigned k = 0; k < p->frame.comps; k++) {
		struct window *w = &p->window[k];
		uint32_t v = p->frame.comp[k].v;

		/* The last row so far stays, above those that come. */
		memcpy(w->row - TSI_JPEG_SLACK - w->stride,
		       w->row - TSI_JPEG_SLACK + (w->edge * v - 1) * w->stride,
		       w->stride);
		w->base = p->next * w->edge * v;
		for (uint32_t i = 0; i < v; i++) {
			uint32_t at = w->base + w->edge * i;

			if (at < w->bottom && at + w->edge > w->top)
				transform(p, k, b, row * v + i, i);
		}
	}
	p->next++;
	p->ready = p->next * p->edge * p->frame.v_max - p->waits;
	if (p->ready > end || p->next == p->area.top + p->area.down)
		p->ready = end;
}

/* ------------------------------------------------------------------------
 * Samples to pixels
 */

static const uint8_t *row_of(const struct window *w, uint32_t y)
{
	if (y >= w->height)
		y = w->height - 1;
	return w->row +
	       ((ptrdiff_t)y - (ptrdiff_t)w->base) * (ptrdiff_t)w->stride;
}

/* Samples of component k for n pixels of row y, from column p->first on. */
static const uint8_t *samples(struct tsi_jpeg_pixels *p, unsigned k, uint32_t y,
			      size_t n)
{
	const struct tsi_jpeg_kernel *kernel = &p->kernel;
	struct window *w = &p->window[k];
	bool wide = is_wide(w->way), high = is_high(w->way);
	ptrdiff_t x = (ptrdiff_t)(p->first >> wide) - (ptrdiff_t)w->left;
	uint32_t c = y >> high, next = y % 2 ? c + 1 : c - !!c;
	const uint8_t *near = row_of(w, c) + x;
	const uint8_t *far = is_fancy(w->way) ? row_of(w, next) + x : near;
	size_t half = (n + 1) / 2;

	switch (w->way) {
	case FULL:
	case H1V2_BOX:
		return near;
	case H2V1:
		kernel->h2v1(near, p->up[k], half);
		break;
	case H1V2:
		kernel->h1v2(near, far, 1 + y % 2, p->up[k], n);
		break;
	case H2V2:
		kernel->h2v2(near, far, p->up[k], half);
		break;
	case H2V1_BOX:
	case H2V2_BOX:
		if (p->repeated[k] != c)
			kernel->twice(near, p->up[k], half);
		p->repeated[k] = c;
		break;
	}
	return p->up[k];
}

/* A row of the strip, from n samples of each of three components. */
static void colour(struct tsi_jpeg_pixels *p, const uint8_t *const in[],
		   uint8_t *out, size_t n)
{
	bool ycc = p->frame.color == TSI_JPEG_YCC;

	if (ycc && p->plane)
		p->kernel.ycc_planes(in[0], in[1], in[2], out, p->plane, n);
	else if (ycc)
		p->kernel.ycc(in[0], in[1], in[2], out, n);
	else if (!p->plane)
		p->kernel.rgb(in[0], in[1], in[2], out, n);
	else
		for (unsigned k = 0; k < 3; k++)
			memcpy(out + k * p->plane, in[k], n);
}

bool tsi_jpeg_pixels_read(struct tsi_jpeg_pixels *p, struct tsi_strip *strip)
{
	uint32_t rows = p->ready > p->done ? p->ready - p->done : 0;
	size_t n = p->rect.left + p->rect.width - p->first;

	if (rows > TSI_STRIP_ROWS)
		rows = TSI_STRIP_ROWS;
	for (uint32_t i = 0; i < rows; i++) {
		uint8_t *out = p->strip + i * p->stride;
		const uint8_t *in[TSI_JPEG_COMPS];

		/* Gray is a red, green and blue of its own. */
		in[0] = samples(p, 0, p->done + i, n);
		for (unsigned k = 1; k < TSI_JPEG_COMPS; k++)
			in[k] = k < p->frame.comps
					? samples(p, k, p->done + i, n)
					: in[0];
		colour(p, in, out, n);
	}
	p->done += rows;
	strip->pixels = p->strip +
			(size_t)(p->rect.left - p->first) * (p->plane ? 1 : 4);
	strip->stride = p->stride;
	strip->rows = rows;
	strip->plane = p->plane;
	return rows > 0;
}

/* ------------------------------------------------------------------------
 * The object
 */

int tsi_jpeg_pixels_create(enum tsi_simd simd, struct tsi_jpeg_pixels **out)
{
	struct tsi_jpeg_pixels *p;
	enum tsi_simd level;
	int err = tsi_simd_choose(simd, &level);

	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for JPEG samples");
	tsi_jpeg_kernel_init(&p->kernel, level);
	*out = p;
	return 0;
}

void tsi_jpeg_pixels_destroy(struct tsi_jpeg_pixels *p)
{
	if (!p)
		return;
	tsi_scratch_fini(&p->memory);
	free(p);
}

bool tsi_jpeg_pixels_has_planes(const struct tsi_jpeg_pixels *p)
{
	return p->kernel.ycc_planes != NULL;
}
