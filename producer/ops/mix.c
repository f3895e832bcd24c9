/* SPDX-License-Identifier: MIT */
/*
 * mix.c - versions of a picture, added in float32 or blended in bytes.
 *
 * Formulas: torchvision.transforms.AugMix, timm.data.auto_augment's
 * AugMixAugment.
 */
#include "ops/mix.h"

#include <string.h>

#include "ops/colour.h"

uint64_t tsi_mix_need(uint64_t pixels)
{
	uint64_t n = pixels * 3 + TSI_CANVAS_SLACK;

	return tsi_scratch_need(n) + tsi_scratch_need(n * sizeof(float));
}

int tsi_mix_begin(struct tsi_canvas *c)
{
	size_t n = tsi_canvas_bytes(c) + TSI_CANVAS_SLACK;
	int err = tsi_scratch_grow(&c->original, n, "a picture");

	if (!err)
		err = tsi_scratch_grow(&c->mixed, n * sizeof(float), "a mix");
	if (err)
		return err;
	c->mixing = false;
	memcpy(c->original.p, c->pixels, tsi_canvas_bytes(c));
	return 0;
}

void tsi_mix_original(struct tsi_canvas *c)
{
	memcpy(c->pixels, c->original.p, tsi_canvas_bytes(c));
}

static float *sums(const struct tsi_canvas *c)
{
	return (float *)(void *)c->mixed.p;
}

void tsi_mix_add(struct tsi_canvas *c, float weight)
{
	if (!c->mixing)
		memset(c->mixed.p, 0,
		       (tsi_canvas_bytes(c) + TSI_CANVAS_SLACK) *
			       sizeof(float));
	c->mixing = true;
	c->colour.weigh(weight, c->pixels, sums(c), tsi_canvas_bytes(c));
}

void tsi_mix_sum(struct tsi_canvas *c)
{
	c->colour.truncate(sums(c), c->pixels, tsi_canvas_bytes(c));
}

void tsi_mix_blend(struct tsi_canvas *c, float alpha)
{
	tsi_colour_blend_with(c, c->mixing ? c->mixed.p : c->original.p,
			      (double)alpha);
	memcpy(c->mixed.p, c->pixels, tsi_canvas_bytes(c));
	c->mixing = true;
}

void tsi_mix_with_original(struct tsi_canvas *c, float alpha)
{
	tsi_colour_blend_with(c, c->original.p, (double)alpha);
}
