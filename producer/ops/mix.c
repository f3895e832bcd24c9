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

int tsi_mix_begin(struct tsi_mix *m, const struct tsi_canvas *c)
{
	size_t n = tsi_canvas_bytes(c) + TSI_CANVAS_SLACK;
	int err = tsi_scratch_grow(&m->original, n, "a picture");

	if (!err)
		err = tsi_scratch_grow(&m->mixed, n * sizeof(float), "a mix");
	if (err)
		return err;
	m->bytes = tsi_canvas_bytes(c);
	m->begun = false;
	memcpy(m->original.p, c->pixels, m->bytes);
	return 0;
}

void tsi_mix_original(const struct tsi_mix *m, struct tsi_canvas *c)
{
	memcpy(c->pixels, m->original.p, m->bytes);
}

static float *sums(const struct tsi_mix *m)
{
	return (float *)(void *)m->mixed.p;
}

void tsi_mix_add(struct tsi_mix *m, const struct tsi_canvas *c, float weight)
{
	if (!m->begun)
		memset(m->mixed.p, 0,
		       (m->bytes + TSI_CANVAS_SLACK) * sizeof(float));
	m->begun = true;
	c->colour.weigh(weight, c->pixels, sums(m), m->bytes);
}

void tsi_mix_sum(const struct tsi_mix *m, struct tsi_canvas *c)
{
	c->colour.truncate(sums(m), c->pixels, m->bytes);
}

void tsi_mix_blend(struct tsi_mix *m, struct tsi_canvas *c, float alpha)
{
	tsi_colour_blend_with(c, m->begun ? m->mixed.p : m->original.p,
			      (double)alpha);
	memcpy(m->mixed.p, c->pixels, m->bytes);
	m->begun = true;
}

void tsi_mix_trim(struct tsi_mix *m)
{
	tsi_scratch_trim(&m->original);
	tsi_scratch_trim(&m->mixed);
}

void tsi_mix_fini(struct tsi_mix *m)
{
	tsi_scratch_fini(&m->original);
	tsi_scratch_fini(&m->mixed);
}
