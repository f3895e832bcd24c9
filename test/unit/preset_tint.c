/* SPDX-License-Identifier: MIT */
/*
 * preset_tint.c - a preset for tests: a square of the image, made redder.
 *
 * The square is as large as fits; where it lies, and how much red is added, is
 * drawn.  This is all that a new preset takes; nothing in producer/ knows of
 * it.
 */
#include "preset_tint.h"

#include "base/err.h"
#include "pixel/draw.h"

#define OP_PLACE 0xaf01
#define OP_RED 0xaf02

static const struct tsi_draw_op draws[] = {
	{ "place", OP_PLACE },
	{ "red", OP_RED },
	{ 0 },
};

static int check_size(const struct tsi_image_opts *o)
{
	if (o->size % 2)
		return tsi_err(TSOCK_EARG, "tint: size is %u, must be even",
			       o->size);
	return 0;
}

static uint32_t square(uint32_t width, uint32_t height)
{
	return width < height ? width : height;
}

static int plan(const struct tsi_preset_sample *s, uint32_t width,
		uint32_t height, struct tsi_box *box,
		struct tsi_preset_plan *out)
{
	struct tsi_philox_ctr r =
		tsi_draw(s->opts->seed, s->epoch, s->index, OP_PLACE, 0);
	const uint32_t edge = square(width, height), size = s->opts->size;

	*out = (struct tsi_preset_plan){
		.x = { .in = edge, .out = size, .count = size },
		.y = { .in = edge, .out = size, .count = size },
		.left = r.v[0] % (width - edge + 1),
		.top = r.v[1] % (height - edge + 1),
	};
	*box = (struct tsi_box){ .top = (int32_t)out->top,
				 .left = (int32_t)out->left,
				 .height = (int32_t)edge,
				 .width = (int32_t)edge };
	return 0;
}

static void apply(const struct tsi_preset_sample *s, uint8_t *pixels)
{
	struct tsi_philox_ctr r =
		tsi_draw(s->opts->seed, s->epoch, s->index, OP_RED, 0);
	const uint32_t more = r.v[0] % 100;

	for (uint32_t i = 0; i < s->opts->size * s->opts->size; i++) {
		uint32_t red = pixels[3 * i] + more;

		pixels[3 * i] = red < 255 ? (uint8_t)red : 255;
	}
}

const struct tsi_preset tsi_preset_tint = {
	.name = "tint",
	.no_resize = "which takes a square of the whole image",
	.draws = draws,
	.check = check_size,
	.plan = plan,
	.least_bottom = square,
	.apply = apply,
};
