/* SPDX-License-Identifier: MIT */
/*
 * canvas.c - two buffers, one of which holds the picture.
 */
#include "ops/canvas.h"

void tsi_canvas_init(struct tsi_canvas *c, enum tsi_simd level)
{
	*c = (struct tsi_canvas){ 0 };
	tsi_warp_kernel_init(&c->warp, level);
	tsi_colour_kernel_init(&c->colour, level);
}

static unsigned current(const struct tsi_canvas *c)
{
	return c->pixels && c->pixels == c->buffer[1].p;
}

static size_t room(uint32_t width, uint32_t height, unsigned channels)
{
	return (size_t)width * height * channels + TSI_CANVAS_SLACK;
}

static void take(struct tsi_canvas *c, unsigned i, uint32_t width,
		 uint32_t height, unsigned channels)
{
	c->pixels = c->buffer[i].p;
	c->width = width;
	c->height = height;
	c->channels = channels;
}

int tsi_canvas_begin(struct tsi_canvas *c, uint32_t width, uint32_t height,
		     unsigned channels)
{
	int err = tsi_scratch_grow(&c->buffer[0], room(width, height, channels),
				   "a picture");

	if (!err)
		take(c, 0, width, height, channels);
	return err;
}

int tsi_canvas_other(struct tsi_canvas *c, uint32_t width, uint32_t height,
		     unsigned channels, uint8_t **out)
{
	struct tsi_scratch *s = &c->buffer[!current(c)];
	int err =
		tsi_scratch_grow(s, room(width, height, channels), "a picture");

	if (!err)
		*out = s->p;
	return err;
}

void tsi_canvas_turn(struct tsi_canvas *c, uint32_t width, uint32_t height,
		     unsigned channels)
{
	take(c, !current(c), width, height, channels);
}

void tsi_canvas_trim(struct tsi_canvas *c)
{
	tsi_scratch_trim(&c->buffer[0]);
	tsi_scratch_trim(&c->buffer[1]);
	tsi_scratch_trim(&c->room);
	tsi_scratch_trim(&c->original);
	tsi_scratch_trim(&c->mixed);
	c->pixels = NULL;
}

void tsi_canvas_fini(struct tsi_canvas *c)
{
	tsi_scratch_fini(&c->buffer[0]);
	tsi_scratch_fini(&c->buffer[1]);
	tsi_scratch_fini(&c->room);
	tsi_scratch_fini(&c->original);
	tsi_scratch_fini(&c->mixed);
	c->pixels = NULL;
}
